"""A tool's exception as the service records it. An outcome that cannot be written in full is still reported."""

import logging
from typing import Final, Literal

import msgspec

from twiceshy._effect import CurrentEffect
from twiceshy._encode import encode
from twiceshy._said import clean, ended, kind_of, message_of, said
from twiceshy._seconds import seconds_of
from twiceshy.exceptions import NotApplied, Rejected
from twiceshy_contract.effects import FailRequest, ReportedError

_LARGEST_DATA: Final = 2**19
_LONGEST_NAME: Final = 200
_LONGEST_WAIT: Final = 86_400.0
_log = logging.getLogger("twiceshy")


def failure_body(
    effect: CurrentEffect, kind: Literal["not_applied", "rejected", "unknown"], error: BaseException
) -> bytes:
    """Write the report of a tool's exception."""
    failure = FailRequest(
        attempt=effect.attempt,
        fence=effect.fence,
        kind=kind,
        error=_written(error),
        retry_after=_retry_after(error) if kind == "not_applied" else None,
    )
    return msgspec.json.encode(failure)


def _written(error: BaseException) -> ReportedError:
    """Write down an exception's name, its message, and a rejection's data."""
    if not isinstance(error, Rejected):
        return ReportedError(type=kind_of(error)[:_LONGEST_NAME], message=message_of(error))
    return ReportedError(type=_type_of(error), message=message_of(error), data=_data_of(error))


def _type_of(rejection: Rejected) -> str:
    try:
        return clean(rejection.type)[:_LONGEST_NAME] or "Rejected"
    except Exception as broken:  # noqa: BLE001 - a subclass may define it anew
        _log.warning("The type of a rejection is not kept: %s", ended(said(broken)))
        return "Rejected"


def _data_of(rejection: Rejected) -> object:
    try:
        written = encode(rejection.data, depth=3)
        size = len(msgspec.json.encode(written))
    except Exception as broken:  # noqa: BLE001 - a property or model_dump of the tool's own may raise anything
        _log.warning("The data of a rejection is not kept: %s", ended(said(broken)))
        return None
    if size > _LARGEST_DATA:
        _log.warning("The data of a rejection is not kept: it is larger than %d bytes.", _LARGEST_DATA)
        return None
    return written


def _retry_after(error: BaseException) -> float | None:
    if not isinstance(error, NotApplied):
        return None
    try:
        seconds = seconds_of(error.retry_after)
    except Exception as broken:  # noqa: BLE001 - a subclass may define it anew
        _log.warning("The retry_after of a NotApplied is ignored: %s", ended(said(broken)))
        return None
    return None if seconds is None else min(seconds, _LONGEST_WAIT)
