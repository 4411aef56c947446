"""A run's log as parts that follow each other: blobs, each once and before what names it, and events.

Whoever takes the parts in their order never meets a name that it cannot resolve. Memory is bounded: of all blobs only
their digests stay.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from twiceshy._payload_reading import references_of_blob
from twiceshy._recording_sources import event_decoder
from twiceshy.exceptions import RecordingRefused
from twiceshy_contract.payloads import Reference, references, references_of_event
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import RunView

_AHEAD: Final = 100
"""Events whose blobs are asked for together."""
_HELD_BYTES: Final = 2**22
"""So much is read ahead."""
_MOST_BYTES: Final = 2**24
"""So much is held of lists whose beginnings are sought; what goes is read again."""


class BlobPart(msgspec.Struct, frozen=True):
    """A blob that what follows may name."""

    digest: str
    text: bytes


class EventPart(msgspec.Struct, frozen=True):
    """The next event, as it was recorded."""

    text: bytes


Part: TypeAlias = BlobPart | EventPart


class Blobs(Protocol):
    """Where blobs are read from."""

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Return some of these texts by their digests, the first of them at least. Raises for one that is missing."""
        ...


def parts(head: RunView, events: Iterable[bytes], blobs: Blobs) -> Iterator[Part]:
    """Return the parts of a log: what its head names, then its events with what they name before them."""
    closure = _Closure(blobs)
    if head.about is not None:
        yield from closure.of(references(head.about.input))
    for texts in _grouped(events):
        named = [references_of_event(event_decoder.decode(text)) for text in texts]
        closure.expect([reference for each in named for reference in each])
        for text, wanted in zip(texts, named, strict=True):
            yield from closure.of(wanted)
            yield EventPart(text)


def _named_by(text: bytes, reference: Reference) -> list[Reference]:
    try:
        return references_of_blob(text, is_list=reference.is_list)
    except Refusal as refusal:
        raise RecordingRefused(
            f"The log cannot be read whole. Blob {reference.digest}, which it names: {refusal.reason}. Look at its "
            "events one by one with GET /v1/runs/{run}/events.",
            reason=refusal.reason,
        ) from refusal


def _grouped(events: Iterable[bytes]) -> Iterator[list[bytes]]:
    group: list[bytes] = []
    size = 0
    for text in events:
        group.append(text)
        size += len(text)
        if len(group) >= _AHEAD or size >= _HELD_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class _Closure:
    """All that was named and given so far; `_given` says of each digest whether it was followed as a list.

    What is `_held` was read and is not given yet; what is `_ahead` comes next, in the order in which it is needed.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._given: dict[bytes, bool] = {}
        self._ahead: dict[str, None] = {}
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._held_bytes = 0

    def of(self, wanted: Sequence[Reference]) -> Iterator[BlobPart]:
        """Give what is named, and what that names in its turn before it."""
        stack = [*reversed(wanted)]
        while stack:
            reference = stack[-1]
            if self._is_given(reference):
                stack.pop()
                continue
            text = self._text(reference.digest)
            missing = [each for each in _named_by(text, reference) if not self._is_given(each)]
            if missing:
                self.expect(missing)
                stack += reversed(missing)
                continue
            stack.pop()
            is_new = _key(reference) not in self._given
            self._given[_key(reference)] = reference.is_list or self._given.get(_key(reference), False)
            self._held_bytes -= len(self._held.pop(reference.digest, b""))
            if is_new:
                yield BlobPart(reference.digest, text)

    def expect(self, wanted: Sequence[Reference]) -> None:
        """Hear of what is needed next, before what was said already: it is read together, as much as may be held."""
        digests = [each.digest for each in wanted if _key(each) not in self._given and each.digest not in self._held]
        self._ahead = dict.fromkeys(digests) | self._ahead if digests else self._ahead

    def _is_given(self, reference: Reference) -> bool:
        followed = self._given.get(_key(reference))
        return followed is not None and (followed or not reference.is_list)

    def _text(self, digest: str) -> bytes:
        text = self._held.get(digest)
        if text is None:
            others = [each for each in self._ahead if each != digest] if self._held_bytes < _HELD_BYTES else []
            found = self._blobs.read([digest, *others])
            for each in found:
                self._ahead.pop(each, None)
            self._hold(found)
            return found[digest]
        return text

    def _hold(self, found: dict[str, bytes]) -> None:
        for digest, text in found.items():
            self._held_bytes += len(text) - len(self._held.get(digest, b""))
            self._held[digest] = text
        while self._held_bytes > _MOST_BYTES and len(self._held) > 1:
            self._held_bytes -= len(self._held.popitem(last=False)[1])


def _key(reference: Reference) -> bytes:
    return bytes.fromhex(reference.digest)
