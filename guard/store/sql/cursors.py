"""Cursors of pages: the last row's place in the order, opaque to all but the store."""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

import msgspec
from msgspec.structs import astuple

_RUN_PLACE: Final = struct.Struct(">c16s")
_STEP_PLACE: Final = struct.Struct(">c16sq")
_KEY_PLACE: Final = struct.Struct(">cq")
_MESSAGE_PLACE: Final = struct.Struct(">cqq")


class AfterRun(msgspec.Struct, frozen=True):
    """A page of runs ended with this one."""

    run: UUID


class AfterStep(msgspec.Struct, frozen=True):
    """A page of effects ended within a run."""

    run: UUID
    step: int


class AfterKey(msgspec.Struct, frozen=True):
    """A page of effects ended among those that have no run."""

    began_at: int
    key: bytes


class AfterFlag(msgspec.Struct, frozen=True):
    """A page of flags ended with this one."""

    flag: UUID


class AfterApproval(msgspec.Struct, frozen=True):
    """A page of approvals ended with this one."""

    approval: UUID


class AfterSaga(msgspec.Struct, frozen=True):
    """A page of sagas ended with this one."""

    saga: UUID


class AfterEvent(msgspec.Struct, frozen=True):
    """A page of events of several runs ended with this one."""

    run: UUID
    seq: int


class AfterReply(msgspec.Struct, frozen=True):
    """A page of replies ended with this one."""

    reply: UUID


class AfterMessage(msgspec.Struct, frozen=True):
    """A page of messages ended with this one; `settled_at` is of those that are over, else 0."""

    settled_at: int
    message: int


Place = AfterRun | AfterStep | AfterKey | AfterFlag | AfterApproval | AfterSaga | AfterEvent | AfterReply | AfterMessage

_BY_ID: Final[Mapping[bytes, type[AfterRun | AfterFlag | AfterApproval | AfterSaga | AfterReply]]] = MappingProxyType(
    {b"r": AfterRun, b"f": AfterFlag, b"a": AfterApproval, b"g": AfterSaga, b"i": AfterReply}
)
"""The places that are one id, by the letter that their cursors begin with."""
_LETTERS: Final = {place: letter for letter, place in _BY_ID.items()}


def cursor_of(place: Place) -> str:
    """Return the cursor of a place."""
    return urlsafe_b64encode(_packed(place)).decode("ascii").rstrip("=")


def place_of(cursor: str) -> Place:
    """Return the place of a cursor. Raises ValueError for one that `cursor_of` did not make."""
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = _unpacked(raw)
    except (ValueError, struct.error) as error:
        raise _foreign(cursor) from error
    if cursor_of(place) != cursor:
        raise _foreign(cursor)
    return place


def _packed(place: Place) -> bytes:
    match place:
        case AfterStep() | AfterEvent():
            kind, number = (b"s", place.step) if isinstance(place, AfterStep) else (b"e", place.seq)
            return _STEP_PLACE.pack(kind, place.run.bytes, number)
        case AfterKey():
            return _KEY_PLACE.pack(b"k", place.began_at) + place.key
        case AfterMessage():
            return _MESSAGE_PLACE.pack(b"m", place.settled_at, place.message)
        case _:
            (id_,) = astuple(place)
            return _RUN_PLACE.pack(_LETTERS[type(place)], id_.bytes)


def _unpacked(raw: bytes) -> Place:
    match raw[:1]:
        case b"s" | b"e":
            kind, run, number = _STEP_PLACE.unpack(raw)
            return (AfterStep if kind == b"s" else AfterEvent)(UUID(bytes=run), number)
        case b"k":
            return AfterKey(_KEY_PLACE.unpack_from(raw)[1], raw[_KEY_PLACE.size :])
        case b"m":
            return AfterMessage(*_MESSAGE_PLACE.unpack(raw)[1:])
        case letter if letter in _BY_ID:
            return _BY_ID[letter](UUID(bytes=_RUN_PLACE.unpack(raw)[1]))
        case _:
            raise ValueError(raw[:1])


def _foreign(cursor: str) -> ValueError:
    return ValueError(f"{cursor!r} is not a cursor of this listing: take `next` of the page before.")
