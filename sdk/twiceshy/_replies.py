"""Replies as the SDK believes them: what cannot be read is not an answer, and no answer is never a yes."""

from typing import Final, TypeVar

import msgspec

from twiceshy._transports.base import NoReply, Reply
from twiceshy_contract.problems import Problem

T = TypeVar("T")
TOO_MANY: Final = 429
"""The status of who wants to be spared for a while: mostly something between us and the service."""
_PASSING: Final = frozenset({401, 403})


class Unanswered(msgspec.Struct, frozen=True):
    """The service gave no answer that can be read; `reason` is the last thing that happened.

    `is_said` says that the service itself gave the reason; `is_final`, that to ask again is of no use. `retry_after`
    is for how many seconds whoever answered wants to be spared.
    """

    reason: str
    is_said: bool = False
    is_final: bool = False
    retry_after: float = 0.0


def read(reply: Reply | NoReply, decoder: msgspec.json.Decoder[T]) -> T | Problem | Unanswered:
    """Read a reply: the body, a Problem that is the service's last word, or Unanswered."""
    if isinstance(reply, NoReply):
        return Unanswered(reply.reason, is_final=reply.is_final)
    if 200 <= reply.status < 300:
        try:
            return decoder.decode(reply.body)
        except (msgspec.DecodeError, RecursionError) as error:
            return Unanswered(f"status {reply.status} with a body that cannot be read: {error}")
    problem = read_problem(reply)
    if problem is None:
        reason = f"status {reply.status} ({reply.content_type or 'no content type'}), not from the guard"
        return Unanswered(reason, retry_after=_retry_after(reply) or 0.0)
    if 400 <= reply.status < 500 and reply.status != TOO_MANY:
        return problem
    reason = f"status {reply.status}: {problem.detail}"
    return Unanswered(reason, is_said=True, retry_after=problem.retry_after_seconds or 0.0)


def read_problem(reply: Reply) -> Problem | None:
    """Read a problem; the Retry-After header fills in for the member."""
    if not reply.content_type.startswith("application/problem+json"):
        return None
    try:
        problem = msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.DecodeError, RecursionError):
        return None
    if problem.retry_after_seconds is None:
        return msgspec.structs.replace(problem, retry_after_seconds=_retry_after(reply))
    return problem


def _retry_after(reply: Reply) -> float | None:
    """Read the header; one that is a date, or anything else, says nothing."""
    said = reply.retry_after or ""
    return float(said) if said.isdecimal() else None


def contract_of(reply: Reply | NoReply) -> int:
    """Return the version of the contract that whoever replied speaks; 0 where that is not said."""
    said = reply.contract if isinstance(reply, Reply) else None
    return int(said[:9]) if said is not None and said.isdecimal() else 0


def is_passing(problem: Problem) -> bool:
    """Tell whether a refusal is about the sender, not about what was sent: the same request may be taken later."""
    return problem.status in _PASSING


def is_about_the_body(problem: Problem) -> bool:
    """Tell whether the service cannot take the body as it is, so that a smaller or plainer one may be taken."""
    return problem.code in ("invalid-request", "too-large")
