"""One try to deliver an undelivered outcome, and what its answer means for it."""

from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from twiceshy._answers import Effect
from twiceshy._lesser import lesser
from twiceshy._replies import TOO_MANY, Unanswered, is_about_the_body, is_passing, read
from twiceshy._said import clean, ended
from twiceshy._spool_record import Undelivered
from twiceshy._transports.base import NoReply, Request, Transport
from twiceshy_contract.problems import Problem

_EFFECT: Final = msgspec.json.Decoder(Effect)


class Taken(msgspec.Struct, frozen=True):
    """The service has it; the effect is now in this state."""

    state: str


class Refused(msgspec.Struct, frozen=True):
    """The service will never take it."""

    problem: Problem


class Stuck(msgspec.Struct, frozen=True):
    """It was not taken and may be later, not before `retry_after` seconds where the service said so.

    `is_for_all` says that no other would be taken now: nobody answers, or the sender is not let in.
    """

    reason: str
    retry_after: float = 0.0
    is_for_all: bool = False


Sent: TypeAlias = Taken | Refused | Stuck


def send(transport: Transport, outcome: Undelivered, timeout_seconds: float) -> Sent:
    """Send an outcome once; where the service cannot take the body as it is, once more without the result or data."""
    body = bytes(outcome.body)
    answer = _sent(transport, outcome, body, timeout_seconds)
    if isinstance(answer, Refused) and is_about_the_body(answer.problem):
        less = lesser(outcome.verb, body, f"the service refused it: {answer.problem.detail}")
        return answer if less is None else _sent(transport, outcome, less, timeout_seconds)
    return answer


def refusal(outcome: Undelivered, problem: Problem, path: Path | None) -> str:
    """Say what was refused, why, and where it is kept; the report is cut where it is longer than a log takes."""
    where = "" if path is None else f"It is kept in {path}; "
    return (
        f"The service refused the outcome of {outcome.tool} for good ({problem.code}): {ended(problem.detail)} It was "
        f"{outcome.kind}, of {outcome.since:%Y-%m-%d %H:%M:%S} UTC. Look with `twiceshy effects show {outcome.key}`; "
        f"{where}the report was {clean(bytes(outcome.body).decode(errors='replace'))}"
    )


def _sent(transport: Transport, outcome: Undelivered, body: bytes, timeout_seconds: float) -> Sent:
    request = Request(method="POST", path=outcome.path, body=body, timeout_seconds=timeout_seconds)
    reply = transport.send(request)
    answer = read(reply, _EFFECT)
    match answer:
        case Unanswered(reason):
            is_for_all = isinstance(reply, NoReply) or reply.status == TOO_MANY
            return Stuck(reason, answer.retry_after, is_for_all=is_for_all)
        case Problem() if is_passing(answer):
            return Stuck(f"{answer.code}: {answer.detail}", answer.retry_after_seconds or 0.0, is_for_all=True)
        case Problem():
            return Refused(answer)
        case Effect():
            return Taken(answer.state)
