"""Strict JSON: what two readers could understand differently is refused, with its place.

Refused are duplicate keys, NaN and infinities, numbers that overflow, lone surrogates, bytes that are not
UTF-8, and nesting that could exhaust a reader. What does not come back to the byte when it is written again is
decoded by the standard library with three hooks; only when that refuses does a slower scanner read the text once
more to say where.
"""

import json
import math
import re
from typing import Final, NoReturn, cast

import msgspec

from twiceshy_contract.refusals import JsonValue, Refusal, Step

MAX_DEPTH: Final = 64
"""Containers within containers that a value may have (the outermost counts as one)."""
ENVELOPE_DEPTH: Final = 6
"""What a request body, and a batch around it, may add around such a value."""
MAX_DIGITS: Final = 4300
"""Digits of an integer: what Python reads without being told otherwise."""

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:"
    r'(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![0-9A-Za-z.+-])"
    r"|(?P<word>-?[A-Za-z]+)"
    r"|(?P<mark>[\[\]{}:,])"
    r"|(?P<end>\Z))"
)
_WORDS = {"true", "false", "null"}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}


class _Doubtful(ValueError):
    """One of the hooks refused; the scanner will say where."""


def _pairs(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Doubtful
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _Doubtful
    return value


def _constant(name: str) -> NoReturn:
    raise _Doubtful(name)


_UNPROVEN: Final = cast("JsonValue", object())
_fast_decoder: Final = msgspec.json.Decoder()
_fast_encoder: Final = msgspec.json.Encoder()
_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_constant)


def decode(body: bytes, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """Decode one JSON text. Raises Refusal with the place of the first thing that is wrong."""
    value = _decoded_at_once(body, max_depth)
    return _decoded_with_care(body, max_depth) if value is _UNPROVEN else value


def _decoded_at_once(body: bytes, max_depth: int) -> JsonValue:
    """Decode a text that reads the same when it is written again, which is proof that nothing of it was passed over.

    A key that stands twice, another spelling of a number or an escape would not come back; neither does white space,
    so that only what a compact encoder wrote is proven here. _UNPROVEN is the answer for all else.
    """
    try:
        value = cast("JsonValue", _fast_decoder.decode(body))
        is_proven = _fast_encoder.encode(value) == body and not _is_deeper(body, value, max_depth)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _UNPROVEN
    return value if is_proven else _UNPROVEN


def _decoded_with_care(body: bytes, max_depth: int) -> JsonValue:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(f"byte {error.start} is not UTF-8", _steps_before(body, error.start)) from error
    try:
        value: JsonValue = _decoder.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
        if _is_deeper(body, value, max_depth):
            raise _Doubtful
    except (ValueError, RecursionError) as error:
        _Scanner(text, max_depth).run()
        raise Refusal("this is not JSON") from error
    return value


def _is_deeper(body: bytes, value: JsonValue, depth: int) -> bool:
    """Say whether a value has containers within containers beyond a depth. Few containers cannot."""
    if body.count(b"[") + body.count(b"{") <= depth:
        return False
    level: list[JsonValue] = [value] if isinstance(value, (list, dict)) else []
    while level and depth:
        depth -= 1
        inner = [part if isinstance(part, list) else part.values() for part in level if isinstance(part, (list, dict))]
        level = [member for members in inner for member in members if isinstance(member, (list, dict))]
    return bool(level)


def _steps_before(body: bytes, at: int) -> tuple[Step, ...]:
    """Say in which value the byte at `at` stands, as far as the text before it can be read."""
    scanner = _Scanner(body[:at].decode("utf-8"), MAX_DEPTH)
    try:
        scanner.run()
    except Refusal as refusal:
        return refusal.steps
    return scanner.steps()


class _Container:
    """One open object or array of the scanner."""

    __slots__ = ("is_object", "keys", "step")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.keys: set[str] = set()
        self.step: Step | None = None if is_object else 0


class _Scanner:
    """Read a JSON text token by token without recursion, and raise the first refusal."""

    def __init__(self, text: str, max_depth: int) -> None:
        self._text = text
        self._max_depth = max_depth
        self._at = 0
        self._open: list[_Container] = []

    def steps(self) -> tuple[Step, ...]:
        """Name the place that is being read."""
        return tuple(container.step for container in self._open if container.step is not None)

    def run(self) -> None:
        """Read the whole text; return where nothing is wrong."""
        self._value(*self._next())
        while self._open:
            kind, token = self._next()
            if token == ("}" if self._open[-1].is_object else "]"):
                self._open.pop()
            elif token == ",":
                self._member_after_comma()
            else:
                self._refuse(f"expected ',' or the end of the {self._container_name()}, found {_shown(kind, token)}")
        kind, token = self._next()
        if kind != "end":
            self._refuse(f"something follows the value: {_shown(kind, token)}")

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            rest = self._text[self._at :].lstrip(" \t\n\r")
            what = "a string that is not closed or has a bad escape" if rest.startswith('"') else "a bad token"
            self._refuse(f"{what} at character {len(self._text) - len(rest)}")
        self._at = match.end()
        return match.lastgroup, match[match.lastgroup]

    def _value(self, kind: str, token: str) -> None:
        match kind:
            case "string":
                self._string(token)
            case "number":
                self._number(token)
            case "word" if token in _NOT_FINITE:
                self._refuse(f"{token} is not a JSON number")
            case "word" if token in _WORDS:
                pass
            case "mark" if token in "[{":
                self._enter(is_object=token == "{")
            case _:
                self._refuse(f"expected a value, found {_shown(kind, token)}")

    def _enter(self, *, is_object: bool) -> None:
        if len(self._open) == self._max_depth:
            self._refuse(f"nested more than {self._max_depth} deep")
        self._open.append(_Container(is_object=is_object))
        kind, token = self._next()
        if token == ("}" if is_object else "]"):
            self._open.pop()
        elif is_object:
            self._member(kind, token)
        else:
            self._value(kind, token)

    def _member_after_comma(self) -> None:
        container = self._open[-1]
        if isinstance(container.step, int):
            container.step += 1
            self._value(*self._next())
        else:
            self._member(*self._next())

    def _member(self, kind: str, token: str) -> None:
        container = self._open[-1]
        if kind != "string":
            self._refuse(f"expected a key, found {_shown(kind, token)}")
        key = self._string(token)
        container.step = key
        if key in container.keys:
            self._refuse("the key stands twice in one object")
        container.keys.add(key)
        kind, token = self._next()
        if token != ":":
            self._refuse(f"expected ':' after the key, found {_shown(kind, token)}")
        self._value(*self._next())

    def _string(self, token: str) -> str:
        text: str = json.loads(token)
        try:
            text.encode()
        except UnicodeEncodeError:
            self._refuse("a lone surrogate is not a character")
        return text

    def _number(self, token: str) -> None:
        if token.lstrip("-").isdigit():
            if len(token.lstrip("-")) > MAX_DIGITS:
                self._refuse(f"the integer has more than {MAX_DIGITS} digits")
        elif math.isinf(float(token)):
            self._refuse("the number is larger than any double")

    def _container_name(self) -> str:
        return "object" if self._open[-1].is_object else "array"

    def _refuse(self, reason: str) -> NoReturn:
        raise Refusal(reason, self.steps())


def _shown(kind: str, token: str) -> str:
    return "the end of the text" if kind == "end" else "a string" if kind == "string" else repr(token[:20])
