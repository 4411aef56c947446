"""Ask the service until it answers: what cannot be read is not an answer, and no answer is never a yes."""

from typing import Generic, TypeVar

import msgspec

from twiceshy._environment import Environment
from twiceshy._steps import Flow, send, sleep
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.problems import Problem

T = TypeVar("T")
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """The service did what was asked. `sent_at` is from before the request that was answered."""

    value: T
    sent_at: float


class Unanswered(msgspec.Struct, frozen=True):
    """The service gave no answer that can be read; `reason` is the last thing that happened."""

    reason: str


def ask(
    environment: Environment, request: Request, decoder: msgspec.json.Decoder[T], *, until: float
) -> Flow[Answered[T] | Problem | Unanswered]:
    """Send a request again and again until it is answered or the time is up. It is sent at least once."""
    pause = _FIRST_PAUSE
    while True:
        sent_at = environment.clock()
        left = max(0.1, until - sent_at)
        reply = yield from send(msgspec.structs.replace(request, timeout_seconds=min(request.timeout_seconds, left)))
        answer = read(reply, decoder)
        if not isinstance(answer, Unanswered):
            return answer if isinstance(answer, Problem) else Answered(answer, sent_at)
        wait = pause * (0.5 + environment.chance() / 2)
        if environment.clock() + wait >= until:
            return answer
        yield from sleep(wait)
        pause = min(pause * 2, _LONGEST_PAUSE)


def read(reply: Reply | NoReply, decoder: msgspec.json.Decoder[T]) -> T | Problem | Unanswered:
    """Read a reply: the body, a Problem that is the service's last word, or Unanswered."""
    if isinstance(reply, NoReply):
        return Unanswered(reply.reason)
    if 200 <= reply.status < 300:
        try:
            return decoder.decode(reply.body)
        except (msgspec.DecodeError, RecursionError) as error:
            return Unanswered(f"status {reply.status} with a body that cannot be read: {error}")
    problem = read_problem(reply)
    if problem is None:
        return Unanswered(f"status {reply.status} ({reply.content_type or 'no content type'}), not from the guard")
    return problem if 400 <= reply.status < 500 else Unanswered(f"status {reply.status}: {problem.detail}")


def read_problem(reply: Reply) -> Problem | None:
    """Read a problem; the Retry-After header fills in for the member."""
    if not reply.content_type.startswith("application/problem+json"):
        return None
    try:
        problem = msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.DecodeError, RecursionError):
        return None
    if problem.retry_after_seconds is None and (reply.retry_after or "").isdigit():
        return msgspec.structs.replace(problem, retry_after_seconds=float(reply.retry_after or 0))
    return problem
