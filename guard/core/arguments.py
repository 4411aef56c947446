"""Arguments as a tool's roles see them: what names the call, what may be rephrased, what is not looked at."""

import hashlib
from typing import Final, Literal, cast

import msgspec

from guard.core.normalisers.declared import Normalise, normaliser_of
from twiceshy_contract.canonical import canonical, canonical_of_json, is_tag, normal_form
from twiceshy_contract.refusals import JsonValue, Refusal, Step, pointer, steps_of
from twiceshy_contract.tools import ArgumentRoles, Normaliser

Role = Literal["identity", "content", "ignored"]
_ANY_ITEM: Final = "*"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a call's arguments say: canonical texts of identity and content, and their digests.

    `arguments_digest` covers both; two calls with the same one are the same to the letter that matters.
    """

    identity: bytes
    content: bytes
    identity_digest: bytes
    arguments_digest: bytes


class _Node:
    """What the declaration says of one place, and of the places below it."""

    __slots__ = ("below", "normalise", "role")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.role: Role | None = None
        self.normalise: Normalise | None = None

    def at(self, path: str) -> "_Node":
        node = self
        for step in steps_of(path):
            node = node.below.setdefault(step, _Node())
        return node

    def member(self, step: Step) -> "_Node":
        """Return what is said of a member; of a list's item by number, else of every item."""
        found = self.below.get(str(step))
        if found is None and isinstance(step, int):
            found = self.below.get(_ANY_ITEM)
        return _SILENT if found is None else found


_SILENT: Final = _Node()


class _Split(msgspec.Struct, frozen=True):
    """A value's part with identity, and its part with content; None where the value has no such part."""

    identity: tuple[JsonValue] | None = None
    content: tuple[JsonValue] | None = None


class ArgumentReader:
    """Reads arguments by the roles of one tool. Raises Refusal where the roles contradict each other."""

    def __init__(self, roles: ArgumentRoles) -> None:
        self._root = _Node()
        self._root.role = "content" if roles.identity else "identity"
        claims: tuple[tuple[Role, tuple[str, ...]], ...] = (
            ("identity", roles.identity),
            ("content", roles.content),
            ("ignored", roles.ignored),
        )
        for role, paths in claims:
            for index, path in enumerate(paths):
                node = self._root.at(path)
                if node.role not in (None, role):
                    raise Refusal(f"{path} is {node.role} already; a path has one role", ("arguments", role, index))
                node.role = role
        for path, normaliser in roles.normalisers.items():
            self._root.at(path).normalise = _declared(normaliser, path)
        for path in roles.normalisers:
            if self._root.at(path).below:
                raise Refusal("what a normaliser writes is one value; no path leads below it", _place(path))
        self._is_plain = not self._root.below

    def read(self, arguments: dict[str, object]) -> Reading:
        """Understand a call's arguments, decoded from JSON. Raises Refusal with the place, seen from the arguments."""
        if self._is_plain:
            identity, content = canonical_of_json(cast("JsonValue", arguments)), b"{}"
        else:
            identity, content = (canonical(part) for part in self._parts(arguments))
        both = hashlib.sha256(len(identity).to_bytes(4, "big") + identity + content)
        return Reading(
            identity=identity,
            content=content,
            identity_digest=hashlib.sha256(identity).digest(),
            arguments_digest=both.digest(),
        )

    def differing_identity(self, one: dict[str, object], other: dict[str, object]) -> tuple[str, ...]:
        """Name the places where two calls differ in identity."""
        return tuple(pointer(steps) for steps in _differences(self._parts(one)[0], self._parts(other)[0], ()))

    def differing_content(self, one: dict[str, object], other: dict[str, object]) -> tuple[str, ...]:
        """Name the places where two calls differ in content."""
        return tuple(pointer(steps) for steps in _differences(self._parts(one)[1], self._parts(other)[1], ()))

    def _parts(self, arguments: dict[str, object]) -> tuple[JsonValue, JsonValue]:
        split = self._split(normal_form(arguments), self._root, "identity", ())
        return (split.identity or ({},))[0], (split.content or ({},))[0]

    def _split(self, value: JsonValue, node: _Node, inherited: Role, steps: tuple[Step, ...]) -> _Split:
        role = node.role or inherited
        if node.normalise is not None and value is not None:
            value = _normalised(value, node.normalise, steps)
        if isinstance(value, dict) and not is_tag(value):
            parts = {k: self._split(v, node.member(k), role, (*steps, k)) for k, v in value.items()}
            identity: JsonValue = {k: part.identity[0] for k, part in parts.items() if part.identity}
            content: JsonValue = {k: part.content[0] for k, part in parts.items() if part.content}
        elif isinstance(value, list):
            items = [self._split(v, node.member(i), role, (*steps, i)) for i, v in enumerate(value)]
            identity = [part.identity[0] for part in items if part.identity]
            content = [part.content[0] for part in items if part.content]
        else:
            return _Split((value,) if role == "identity" else None, (value,) if role == "content" else None)
        return _Split(
            identity=(identity,) if role == "identity" or identity else None,
            content=(content,) if role == "content" or content else None,
        )


def _declared(normaliser: Normaliser, path: str) -> Normalise:
    try:
        return normaliser_of(normaliser)
    except Refusal as refusal:
        raise refusal.under(*_place(path)) from refusal


def _place(path: str) -> tuple[str, ...]:
    return ("arguments", "normalisers", path)


def _normalised(value: JsonValue, normalise: Normalise, steps: tuple[Step, ...]) -> JsonValue:
    try:
        return normalise(value)
    except ValueError as error:
        raise Refusal(str(error), steps) from error


def _differences(one: JsonValue, other: JsonValue, steps: tuple[Step, ...]) -> list[tuple[Step, ...]]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys())
        lone = [(*steps, key) for key in keys if key not in one or key not in other]
        shared = (_differences(one[key], other[key], (*steps, key)) for key in keys if key in one and key in other)
        return lone + [place for places in shared for place in places]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = zip(one, other, strict=True)
        return [place for i, (a, b) in enumerate(pairs) for place in _differences(a, b, (*steps, i))]
    return [] if canonical(one) == canonical(other) else [steps]


def arguments_of(text: bytes) -> dict[str, object]:
    """Read recorded arguments: the JSON text of an object."""
    return cast("dict[str, object]", msgspec.json.decode(text))
