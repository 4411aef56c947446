"""What an exception says of the world: not applied, rejected, or unknown. Silence means unknown."""

import errno
import logging
import socket
from collections.abc import Iterator, Sequence
from typing import Final, Literal

from twiceshy._effect import SeenRequest, SendingState
from twiceshy._options import ToolSpec, Verdict
from twiceshy.exceptions import NotApplied, Rejected

Judgement = Literal["not_applied", "rejected", "unknown", "succeeded"]

_REJECTED_STATUS: Final = frozenset({400, 404, 405, 410, 413, 415, 422})
_NOT_APPLIED_STATUS: Final = frozenset({401, 403, 429})
_VERDICTS: Final = ("not_applied", "rejected", "unknown")
_LONGEST_CHAIN: Final = 10
_HARMLESS: Final = ("GET", "HEAD", "OPTIONS")
_log = logging.getLogger("twiceshy")


def judge(
    error: BaseException, spec: ToolSpec, sending: SendingState, requests: Sequence[SeenRequest] = ()
) -> Judgement:
    """Say what became of an effect whose tool raised. What an unknown one means, its class says, at the service.

    `requests` are those that an adapter saw the tool send.
    """
    try:
        return _judged(error, spec, sending, requests)
    except Exception:  # noqa: BLE001 - an exception's attributes are the tool's own code
        _log.exception("What %s raised cannot be read; the outcome counts as unknown.", spec.name)
        return "unknown"


def _judged(error: BaseException, spec: ToolSpec, sending: SendingState, requests: Sequence[SeenRequest]) -> Judgement:
    verdict = _hooked(error, spec) or _told(error) or _marked(spec, sending)
    if verdict is not None:
        return verdict
    if not isinstance(error, Exception) or not _is_of_one_request(error, spec, requests):
        return "unknown"
    return _of_one_request(error) or "unknown"


def _hooked(error: BaseException, spec: ToolSpec) -> Verdict | None:
    if spec.rules.classify is None:
        return None
    try:
        verdict = spec.rules.classify(error)
    except Exception:  # noqa: BLE001 - whatever the hook does, the outcome must be reported
        _log.exception("The classify hook of %s raised; the outcome counts as unknown.", spec.name)
        return "unknown"
    if verdict is not None and verdict not in _VERDICTS:
        _log.error("The classify hook of %s returned %r; the outcome counts as unknown.", spec.name, verdict)
        return "unknown"
    return verdict


def _told(error: BaseException) -> Verdict | None:
    if issubclass(type(error), NotApplied):
        return "not_applied"
    return "rejected" if issubclass(type(error), Rejected) else None


def _marked(spec: ToolSpec, sending: SendingState) -> Judgement | None:
    match sending:
        case "sent":
            return "succeeded"
        case "sending":
            return "unknown"
        case "not_yet":
            return "not_applied" if spec.marks_sending else None


def _is_of_one_request(error: BaseException, spec: ToolSpec, requests: Sequence[SeenRequest]) -> bool:
    """Say whether an error is that of the one request that the tool sent.

    The tool's own word counts unless two were seen that may change something. Without it, exactly one request was seen
    and the error is what it met: a tool may fail at something else after its request has succeeded.
    """
    if spec.rules.one_request:
        return sum(request.method not in _HARMLESS for request in requests) <= 1
    if len(requests) != 1:
        return False
    (seen,) = requests
    return any(
        link is seen.error or (seen.status is not None and _status(link) == seen.status) for link in _chain(error)
    )


def _of_one_request(error: BaseException) -> Verdict | None:
    """Read an error as that of the one request that was sent. None where it says nothing."""
    for link in _chain(error):
        status = _status(link)
        if status is not None:
            return _of_status(status)
        if isinstance(link, socket.gaierror) or _is_refused_connection(link):
            return "not_applied"
        if isinstance(link, TimeoutError):
            return "unknown"
    return None


def _of_status(status: int) -> Verdict | None:
    if status in _REJECTED_STATUS:
        return "rejected"
    if status in _NOT_APPLIED_STATUS:
        return "not_applied"
    return "unknown" if status >= 400 else None


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for holder, name in (
        (response, "status_code"),
        (response, "status"),
        (error, "status"),
        (error, "status_code"),
        (error, "code"),
    ):
        value = getattr(holder, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599:
            return value
    return None


def _is_refused_connection(error: BaseException) -> bool:
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and error.errno == errno.ECONNREFUSED
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Follow what an exception names as its cause; what it was merely raised beside proves nothing."""
    link: object = error
    for _ in range(_LONGEST_CHAIN):
        if not isinstance(link, BaseException):
            return
        yield link
        link = (
            link.__cause__
            or getattr(link, "reason", None)
            or getattr(link, "os_error", None)
            or (link.args[0] if link.args else None)
        )
