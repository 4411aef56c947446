"""Release: a client that gave up a begin whose answer it lost says that it never started the tool."""

from collections.abc import Generator

import msgspec

from guard.core.admission import makes_room
from guard.core.effects import AttemptToken, Effect, Instant, TenantId
from guard.core.lifecycle import decide
from guard.core.situation import Event
from guard.ports.steps import Found, HoldGone, Look, Overruled, Replace, RunClosed, Sibling, Step, StepResult, Written
from guard.service.gates import Gates
from guard.service.intake import Intake
from guard.service.naming import NamedCall, Naming
from guard.service.outcomes import Refused, ReportOutcome, Settled
from guard.service.verdicts import nothing_to_release, only_reads
from twiceshy_contract.effects import BeginRequest


class Release:
    """Ends a token: the lease it may hold is free, and a begin that still comes with it gets none."""

    def __init__(self, naming: Naming, gates: Gates, intake: Intake) -> None:
        self._naming = naming
        self._gates = gates
        self._intake = intake

    async def __call__(self, tenant: TenantId, request: BeginRequest) -> ReportOutcome:
        """Take begin's own body. Raises Refusal for what cannot be understood, StoreUnavailable."""
        call = await self._naming.name(tenant, request)
        if isinstance(call, Refused):
            return call
        if call.rules.effect_class == "read":
            return only_reads(request.tool)
        passed = call if call.is_plain else await self._gates.early(call)
        if not isinstance(passed, NamedCall):
            return nothing_to_release(request.tool)
        found = await self._gates.instance(passed)
        return await self._intake.do(call.lane, release(found.call), tenant)


def release(call: NamedCall) -> Generator[Step, StepResult, ReportOutcome]:
    """Find the instance that the begin would have named, and write down that the token ended.

    A final effect keeps the token too: it may make room for a later instance before the begin comes. Where it has done
    so while this was written, the begin may have been faster, and the token ends in the later instance as well.
    """
    rank = call.start
    event = Event(name="release", token=AttemptToken(call.request.attempt))
    found = yield Look(key=call.key(rank))
    while True:
        if not isinstance(found, Found | Written):
            return _barred(call, found)
        effect, at = found.effect, found.at
        if effect is None:
            ended = Effect(version=0, intent=call.intent(rank), life=decide(None, event, call.rules, at).life)
            found = yield Replace(seen=0, effect=ended)
        elif effect.intent.tool != call.request.tool:
            return Settled(effect=effect, at=at)
        elif _makes_room(call, effect, event, at):
            rank += 1
            found = yield Look(key=call.key(rank))
        else:
            after = msgspec.structs.replace(effect, life=decide(effect.life, event, call.rules_for(effect), at).life)
            if after == effect:
                return Settled(effect=effect, at=at)
            found = yield Replace(seen=effect.version, effect=after)


def _barred(call: NamedCall, found: RunClosed | Sibling | HoldGone | Overruled) -> Refused:
    if isinstance(found, RunClosed):
        return Refused(code="run-finished", detail=f"Run {call.request.run!r} is finished.")
    return Refused(code="not-possible", detail="The release was taken for a begin.")


def _makes_room(call: NamedCall, effect: Effect, event: Event, at: Instant) -> bool:
    return makes_room(call.as_read_now(effect), call.compared, event, call.rules_for(effect), at)
