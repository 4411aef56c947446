"""Values on their way into a run's log: small ones as they are, large ones by their content, each only once.

A list is kept as what it adds to one that was kept before: a conversation that re-sends all of itself with every call
costs only its increments.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from twiceshy_contract.events import (
    BLOB,
    INLINE_BYTES,
    LIST,
    MAX_APPEND_BYTES,
    MAX_BLOB_BYTES,
    MAX_EVENT_BYTES,
    ListNode,
)
from twiceshy_contract.refusals import JsonValue, Refusal

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_encode_as_it_is: Final = msgspec.json.Encoder().encode
_MOST_LISTS: Final = 8
_MOST_KNOWN: Final = 100_000
_LONGEST_CHAIN: Final = 64
"""As many nodes a list may have: so many blobs are read to see one of its calls."""
_SMALL_ITEM: Final = 200
_MOST_ITEMS: Final = 20_000
"""Of one node, so that no text names more values than one append may."""
_MOST_INLINE: Final = MAX_EVENT_BYTES // 4
"""Arguments with very many members are kept by their content as a whole."""
_CHECKED_BYTES: Final = MAX_BLOB_BYTES * 3 // 4
_LARGEST_IN_BODY: Final = MAX_APPEND_BYTES - 2**17
"""A text is sent as a string of JSON, in which quotes and control characters take more room."""
NOTHING: Final = hashlib.sha256(b"{}").hexdigest()
"""The digest of a call without arguments."""


class Written(NamedTuple):
    """A value in payload form, and the digest that calls are matched by."""

    payload: JsonValue
    digest: str


class Keeper(Protocol):
    """Where large values go."""

    def put(self, text: bytes) -> str:
        """Keep a text; return its digest. Raises Refusal for one that is too large."""
        ...

    def put_list(self, items: Sequence[bytes], digests: Sequence[str]) -> str:
        """Keep a list of texts; return the digest of its node."""
        ...


class Kept:
    """What one log keeps by content. `pending` are the texts that the service may not have yet, by their digests.

    It has no lock of its own: whoever uses it holds that of its log, or is alone with it.
    """

    def __init__(self) -> None:
        self.pending: dict[str, str] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self._lists: OrderedDict[str, _List] = OrderedDict()

    def put(self, text: bytes) -> str:
        """Keep a text; return its digest. Raises Refusal for one that is too large."""
        if len(text) > _CHECKED_BYTES:
            _require_fit(text)
        digest = hashlib.sha256(text).hexdigest()
        if digest not in self._known:
            self._known[digest] = None
            self.pending[digest] = text.decode()
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return digest

    def put_list(self, items: Sequence[bytes], digests: Sequence[str]) -> str:
        """Keep a list of texts as what it adds to one that it begins with; return the digest of its node."""
        found = self._longest(digests)
        after, begun, nodes = (None, 0, 0) if found is None else (found.node, len(found.digests), found.nodes)
        if found is not None and begun == len(digests):
            return found.node
        self._lists.pop(after or "", None)
        first, *others = (items[start : start + _MOST_ITEMS] for start in range(begun, len(items), _MOST_ITEMS))
        node = self._node(first, after)
        for part in others:
            node = self._node(part, node)
        self._lists[node] = _List(tuple(digests), node, nodes + 1 + len(others))
        if len(self._lists) > _MOST_LISTS:
            self._lists.popitem(last=False)
        return node

    def take_back(self, count: int) -> None:
        """Keep no more than the first texts that are pending: what the others were for was not written."""
        for digest in list(self.pending)[count:]:
            del self.pending[digest]
            self._known.pop(digest, None)
        self._lists.clear()

    def _node(self, items: Sequence[bytes], after: str | None) -> str:
        return self.put(_encode(ListNode(items=tuple(map(self._item, items)), after=after)))

    def _item(self, text: bytes) -> JsonValue:
        if len(text) <= _SMALL_ITEM:
            small: JsonValue = msgspec.json.decode(text)
            return small
        return {BLOB: self.put(text)}

    def _longest(self, digests: Sequence[str]) -> "_List | None":
        beginnings = [
            known
            for known in self._lists.values()
            if known.nodes < _LONGEST_CHAIN and known.digests == tuple(digests[: len(known.digests)])
        ]
        return max(beginnings, key=lambda known: len(known.digests), default=None)


class Nowhere:
    """Keeps nothing, so that any number of threads may share it: for who wants a digest alone."""

    def put(self, text: bytes) -> str:
        """Return a text's digest. Raises Refusal for one that is too large."""
        if len(text) > _CHECKED_BYTES:
            _require_fit(text)
        return hashlib.sha256(text).hexdigest()

    def put_list(self, items: Sequence[bytes], digests: Sequence[str]) -> str:
        """Return a digest that is that of the list, as nothing else has it. Raises Refusal for an item too large."""
        for text in items:
            if len(text) > _CHECKED_BYTES:
                _require_fit(text)
        return hashlib.sha256("".join(digests).encode()).hexdigest()


NOWHERE: Final = Nowhere()


class _List(NamedTuple):
    """A list that was kept: the digests of its items, its node, and how many nodes it takes."""

    digests: tuple[str, ...]
    node: str
    nodes: int


def write_arguments(arguments: Mapping[str, JsonValue], kept: Keeper) -> Written:
    """Write arguments: inline where they are short; else each member by itself, and a list item by item.

    The digest depends on the arguments alone, not on how they are kept. Raises Refusal for one that is too large.
    """
    if not arguments:
        return Written({}, NOTHING)
    text = _encode(arguments)
    if len(text) <= INLINE_BYTES:
        return Written(dict(arguments), hashlib.sha256(text).hexdigest())
    payload: dict[str, JsonValue] = {}
    whole = hashlib.sha256()
    for name in sorted(arguments):
        try:
            member, digest = _member(arguments[name], kept)
        except Refusal as refusal:
            raise refusal.under(name) from None
        payload[name] = member
        whole.update(f"{len(name.encode())}:{name}{digest}".encode())
    text = _encode(payload)
    return Written(payload if len(text) <= _MOST_INLINE else {BLOB: kept.put(text)}, whole.hexdigest())


def write_value(value: JsonValue, kept: Keeper) -> JsonValue:
    """Write a result in payload form. Raises Refusal for one that is too large."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = _encode_as_it_is(value)  # the code gets it back, and may show a model the members in their order
    return value if len(text) <= INLINE_BYTES else {BLOB: kept.put(text)}


def digest_of(arguments: Mapping[str, JsonValue]) -> str:
    """Return the digest that a call is matched by."""
    return write_arguments(arguments, NOWHERE).digest


def _member(value: JsonValue, kept: Keeper) -> tuple[JsonValue, str]:
    if isinstance(value, list) and value:
        texts = [_encode(item) for item in value]
        digests = [hashlib.sha256(text).hexdigest() for text in texts]
        whole = hashlib.sha256("".join(digests).encode()).hexdigest()
        if sum(map(len, texts)) <= INLINE_BYTES:
            return value, whole
        return {LIST: kept.put_list(texts, digests)}, whole
    text = _encode(value)
    if len(text) <= INLINE_BYTES:
        return value, hashlib.sha256(text).hexdigest()
    digest = kept.put(text)
    return {BLOB: digest}, digest


def _require_fit(text: bytes) -> None:
    if len(text) > MAX_BLOB_BYTES:
        raise Refusal(f"it takes {len(text)} bytes as JSON, and {MAX_BLOB_BYTES} are the most")
    size = len(msgspec.json.encode(text.decode()))
    if size > _LARGEST_IN_BODY:
        raise Refusal(f"it takes {size} bytes within JSON, and {_LARGEST_IN_BODY} are the most")
