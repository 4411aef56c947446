"""Ask the service until it answers."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from twiceshy._environment import Environment
from twiceshy._replies import Unanswered, contract_of, read
from twiceshy._steps import Flow, send, sleep
from twiceshy._transports.base import Request
from twiceshy_contract.problems import Problem

T = TypeVar("T")
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0
_LAST_TRY_SECONDS = 1.0
_MORE = 0.25
"""By how much of a Retry-After the wait is longer at the most, so that not all come back at once."""


class Answered(msgspec.Struct, Generic[T], frozen=True):
    """The service did what was asked. `sent_at` is from before the request that was answered.

    `contract` is the version of the contract that the service speaks; 0 where it does not say.
    """

    value: T
    sent_at: float
    contract: int = 0


def ask(
    environment: Environment,
    request: Request,
    decoder: msgspec.json.Decoder[T],
    *,
    until: float,
    on_silence: Callable[[], Flow[None]] | None = None,
) -> Flow[Answered[T] | Problem | Unanswered]:
    """Send a request again and again until it is answered or the time is up. It is sent at least once.

    Who asks to be spared for a while (Retry-After) is spared so long; where that is longer than there is time, it is
    asked once more at the end. `on_silence` is done once, after the first try that was not answered.
    """
    pause = _FIRST_PAUSE
    said: Unanswered | None = None
    while True:
        sent_at = environment.clock()
        left = max(0.1, until - sent_at)
        reply = yield from send(msgspec.structs.replace(request, timeout_seconds=min(request.timeout_seconds, left)))
        answer = read(reply, decoder)
        if not isinstance(answer, Unanswered):
            return answer if isinstance(answer, Problem) else Answered(answer, sent_at, contract_of(reply))
        said = answer if answer.is_said else said
        if on_silence is not None:
            yield from on_silence()
            on_silence = None
        if answer.is_final:
            return answer
        chance, left = environment.chance(), until - environment.clock()
        wait = pause * (0.5 + chance / 2)
        if wait >= left:
            return _telling(answer, said)
        spared = answer.retry_after * (1 + _MORE * chance)
        yield from sleep(max(wait, min(spared, left - _LAST_TRY_SECONDS)))
        pause = min(pause * 2, _LONGEST_PAUSE)


def _telling(last: Unanswered, said: Unanswered | None) -> Unanswered:
    """Keep the reason that the service itself gave, where the last try, cut short, brought nothing but silence."""
    if said is None or last.is_said:
        return last
    return Unanswered(f"{said.reason}; then {last.reason}", is_said=True)
