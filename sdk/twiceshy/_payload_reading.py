"""Payloads of a log, made whole: what they keep by its content is put back in its place.

A payload is tagged JSON in which `{"$blob": digest}` stands for a value and `{"$list": digest}` for a list that is
kept as a chain of nodes. A key of the user's own never looks like that: it is written with one `$` more.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from twiceshy_contract.events import ListNode
from twiceshy_contract.payloads import Reference, may_name, reference_of, references
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import MAX_DEPTH

ReadBlob: TypeAlias = Callable[[str], bytes | str]
"""Returns the text of a blob by its digest. What it raises for one that is not kept passes through."""

MAX_DEEP: Final = 4 * MAX_DEPTH
"""Values within values, those of blobs within blobs among them."""
MAX_WHOLE_BYTES: Final = 2**28
"""The most text that one payload may name, counted as often as it is named: a few blobs can name each other often."""
_node_decoder: Final = msgspec.json.Decoder(ListNode)


def read_payload(payload: object, read_blob: ReadBlob) -> JsonValue:
    """Return a payload whole, in tagged form. Raises Refusal for blobs that are no JSON, and for a bomb of blobs."""
    return _Reading(read_blob).value(payload, 1)


def references_of_blob(text: bytes, *, is_list: bool) -> list[Reference]:
    """Return what a blob names, and where it is named as a list, the rest of that list first."""
    if is_list:
        node = node_of(text)
        if node is None:
            raise Refusal("it is named as a list and holds none")
        before = [] if node.after is None else [Reference(node.after, is_list=True)]
        return before + references(node.items)
    return references(_decoded(text)) if may_name(text) else []


def node_of(text: bytes) -> ListNode | None:
    """Read a blob as the node of a list; None where it has not that form."""
    try:
        return _node_decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


class _Reading:
    """Make one payload whole."""

    __slots__ = ("_left", "_read_blob")

    def __init__(self, read_blob: ReadBlob) -> None:
        self._read_blob = read_blob
        self._left = MAX_WHOLE_BYTES

    def value(self, value: object, depth: int) -> JsonValue:
        match value:
            case dict():
                named = reference_of(value)
                if named is not None:
                    _require(depth)
                    return self._named(named, depth + 1)
                _require(depth)
                return {key: self.value(member, depth + 1) for key, member in value.items()}
            case list() | tuple():
                _require(depth)
                return self._items(value, depth)
            case None | bool() | int() | float() | str():
                return value
            case _:
                raise Refusal(f"a {type(value).__name__} is not JSON")

    def _items(self, items: Iterable[object], depth: int) -> list[JsonValue]:
        return [self.value(item, depth + 1) for item in items]

    def _named(self, named: Reference, depth: int) -> JsonValue:
        if not named.is_list:
            return self.value(_decoded(self._text(named.digest)), depth)
        nodes: list[ListNode] = []
        digest: str | None = named.digest
        while digest is not None:
            node = node_of(self._text(digest))
            if node is None:
                raise Refusal(f"blob {digest} is named as a list and holds none")
            nodes.append(node)
            digest = node.after
        return [item for node in reversed(nodes) for item in self._items(node.items, depth)]

    def _text(self, digest: str) -> bytes:
        text = self._read_blob(digest)
        body = text.encode() if isinstance(text, str) else text
        self._left -= len(body)
        if self._left < 0:
            raise Refusal(f"whole, it is larger than {MAX_WHOLE_BYTES} bytes")
        return body


def _require(depth: int) -> None:
    if depth > MAX_DEEP:
        raise Refusal(f"nested more than {MAX_DEEP} deep")


def _decoded(text: bytes) -> object:
    try:
        value: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refusal(f"a blob is not JSON: {error}") from error
    return value
