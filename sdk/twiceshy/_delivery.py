"""How an attempt's outcome reaches the service: told until it is heard, and on disk once it was not heard at first."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from twiceshy._answers import Effect
from twiceshy._ask import Answered, ask
from twiceshy._effect import CurrentEffect
from twiceshy._environment import Environment
from twiceshy._replies import Unanswered, is_passing
from twiceshy._spool_record import Kind, Undelivered, Verb
from twiceshy._spool_record import now as now_for_people
from twiceshy._spooler import Spooler, waits
from twiceshy._steps import Flow, blocking
from twiceshy._transports.base import Request
from twiceshy_contract.problems import Problem

_log = logging.getLogger("twiceshy")
_EFFECT: Final = msgspec.json.Decoder(Effect)
_HURRIED_SECONDS = 2.0


class Spooled(msgspec.Struct, frozen=True):
    """Nobody heard it yet: the outcome waits in a file, and is sent until the service takes it."""

    reason: str
    path: Path


Delivery: TypeAlias = Answered[Effect] | Problem | Unanswered | Spooled


def deliver(
    environment: Environment, effect: CurrentEffect, kind: Kind, body: bytes, *, is_hurried: bool
) -> Flow[Delivery]:
    """Send an outcome until it is taken, finally refused, or the time for it is up; then it waits in the spool."""
    effect.is_reported = True
    now = environment.clock()
    patience = max(environment.limits.deliver_seconds, effect.lease.seconds_left(now))
    until = now + (_HURRIED_SECONDS if is_hurried else patience)
    verb: Verb = "commit" if kind == "succeeded" else "fail"
    token = environment.credential_of(effect.reference.run)
    request = Request(method="POST", path=f"/v1/effects/{effect.key}/{verb}", body=body, joins=True, token=token)
    if environment.spooler is None:
        return (yield from ask(environment, request, _EFFECT, until=until))
    spooling = _Spooling(
        environment.spooler,
        lambda: Undelivered(
            url=environment.url,
            key=effect.key,
            tool=effect.reference.tool,
            run=effect.reference.run,
            attempt=effect.attempt,
            fence=effect.fence,
            verb=verb,
            kind=kind,
            since=now_for_people(),
            body=msgspec.Raw(body),
        ),
    )
    return (yield from spooling.deliver(environment, request, until))


class _Spooling:
    """The delivery of one outcome with the spool behind it; it is written down only where it was not heard at once."""

    def __init__(self, spooler: Spooler, outcome: Callable[[], Undelivered]) -> None:
        self._spooler = spooler
        self._write = outcome
        self._outcome: Undelivered | None = None
        self._kept: Path | OSError | None = None

    def deliver(self, environment: Environment, request: Request, until: float) -> Flow[Delivery]:
        """Deliver; whoever is interrupted leaves the outcome on disk, heard or not."""
        try:
            answer = yield from ask(environment, request, _EFFECT, until=until, on_silence=self._keep_off_loop)
        except GeneratorExit:  # the caller's coroutine is thrown away: nothing can be awaited any more
            self._leave()
            raise
        except BaseException:
            yield from blocking(self._leave)
            raise
        if isinstance(answer, Unanswered):
            return self._given_up(answer.reason)
        if isinstance(answer, Problem) and is_passing(answer):
            yield from self._keep_off_loop()
            return self._given_up(f"{answer.code}: {answer.detail}")
        if self._outcome is not None:
            yield from blocking(self._settle)
        return answer

    def _keep_off_loop(self) -> Flow[None]:
        yield from blocking(self._keep)

    def _keep(self) -> None:
        if self._outcome is None:
            self._outcome = self._write()
        try:
            self._kept = self._spooler.keep(self._outcome)
        except OSError as error:
            self._kept = error

    def _settle(self) -> None:
        if self._outcome is not None:
            self._spooler.settle(self._outcome.attempt)

    def _leave(self) -> None:
        """Keep the outcome where it is not kept yet, and leave it to the spool."""
        self._keep()
        self._given_up("the call was interrupted")

    def _given_up(self, reason: str) -> Unanswered | Spooled:
        if self._outcome is None or self._kept is None:
            return Unanswered(reason)
        if isinstance(self._kept, OSError):
            _log.error("The spool could not keep the outcome of effect %s: %s", self._outcome.key, self._kept)
            return Unanswered(f"{reason}; and the spool could not keep it: {self._kept}")
        waits(self._outcome, self._kept, reason)
        self._spooler.hand_over(self._outcome.attempt)
        return Spooled(reason, self._kept)
