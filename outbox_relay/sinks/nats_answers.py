"""What an answer to a message that was published to a subject of NATS proves.

Whoever subscribes to the subject can answer. Only what a stream alone says is taken for its answer; after any other,
nobody knows whether a stream has the message too.
"""

from typing import Final

import msgspec

from outbox_relay.sinks.base import Delivered, Permanent, Result, Retryable, Unknown
from outbox_relay.sinks.connected import bounded, told
from twiceshy_contract.destinations import NatsDestination

_NEVER: Final = frozenset({10053, 10054, 10060})
"""A stream that refuses the subject, the size, or is not the one expected."""
_IN_PROCESS: Final = 10158
_FULL: Final = frozenset({10023, 10047, 10077})
_OF_STREAMS: Final = 10_000
"""Errors of JetStream are numbered from here on."""


class _Error(msgspec.Struct):
    code: int
    err_code: int = 0
    description: str = ""


class _Answer(msgspec.Struct):
    """What a stream says of a message that was published to it."""

    stream: str = ""
    seq: int = 0
    duplicate: bool = False
    error: _Error | None = None


def judged(answer: bytes, settings: NatsDestination) -> Result:
    """Return what an answer proves: little, where it is none that a stream gives."""
    try:
        read = msgspec.json.decode(answer, type=_Answer)
    except msgspec.DecodeError as error:
        return Unknown(why=f"{_stranger(settings)} ({told(error)})")
    if read.error is not None:
        return _refusal(read.error, settings)
    if not read.stream or read.seq < 1:
        return Unknown(why=_stranger(settings))
    if settings.stream not in (None, read.stream):
        return Unknown(why=f"{bounded(read.stream)} answered for the subject {settings.subject}, not {settings.stream}")
    return Delivered(receipt=f"{read.stream} {read.seq}", is_duplicate=read.duplicate)


def _refusal(error: _Error, settings: NatsDestination) -> Result:
    if error.err_code < _OF_STREAMS:
        return Unknown(why=_stranger(settings))
    why = f"the stream answers: {bounded(error.description)} ({error.err_code})"
    if error.err_code == _IN_PROCESS:
        return Unknown(why=why)
    if error.err_code in _NEVER:
        return Permanent(why=why)
    return Retryable(why=why, is_throttled=error.err_code in _FULL)


def _stranger(settings: NatsDestination) -> str:
    return (
        f"who answered is no stream: a client subscribes to {settings.subject} and replies. Whether a stream has the "
        "message is not known: give it a subject that streams alone take"
    )
