"""Stage: begin and commit in one. An intent is done by staging its messages, under the key and the rules of a begin.

Where a begin would be granted a lease, this writes the effect as succeeded and its messages in one transaction: there
is no lease, and so no doubt. Whoever is killed meanwhile has staged all or nothing, and asks again under the same key.

What a begin confirms behind its grant cannot be taken back here, and need not be. The writer of a recorded run is
looked at before the write, see `Writers.still`. A saga that fails between its gate and the write knows the step, for
it was enlisted by the gate: it takes the effect back as one that was done just before, and where it had passed it
over, it enlists it again. Until it is known what becomes of it, the relay sends none of its messages: see the verdict.
"""

from collections.abc import Generator
from typing import Final, assert_never

import msgspec

from guard.core.effects import AttemptToken, Effect, Life, TenantId
from guard.core.lifecycle import decide
from guard.core.outbox import Staging
from guard.core.situation import Event
from guard.ports.steps import Found, Look, Overruled, Replace, Step, StepResult, Written
from guard.service.begin import Begin, Overtaken, meant
from guard.service.gates import Gates, Over
from guard.service.intake import Intake
from guard.service.naming import NamedCall, Naming
from guard.service.outcomes import (
    Awaiting,
    Granted,
    MessagesStaged,
    Refused,
    RenderAnew,
    Replayed,
    StageOutcome,
    Stubbed,
)
from guard.service.ruling import Ruling, barred, lease_of, rule, rule_on_new
from guard.service.runs import Runs
from guard.service.staging import Source, Stagings, check_messages
from guard.service.verdicts import refusal
from twiceshy_contract.canonical import canonical
from twiceshy_contract.effects import Outcome
from twiceshy_contract.outbox import StageRequest
from twiceshy_contract.refusals import Refusal


class Stage:
    """The use case."""

    def __init__(
        self, begin: Begin, naming: Naming, gates: Gates, intake: Intake, runs: Runs, stagings: Stagings
    ) -> None:
        self._begin: Final = begin
        self._naming: Final = naming
        self._gates: Final = gates
        self._intake: Final = intake
        self._runs: Final = runs
        self._stagings: Final = stagings

    async def __call__(self, tenant: TenantId, request: StageRequest) -> StageOutcome:
        """Answer as a begin is answered; what it would let run is staged.

        Raises Refusal for what cannot be understood, or not be delivered as it is meant, before anything is written;
        StoreUnavailable when the outcome is unknown.
        """
        check_messages(request.messages, "messages")
        _check_rendered_from(request)

        async def write(passed: NamedCall) -> StageOutcome | Over | Overtaken:
            source = Source(tenant=tenant, key=passed.key(passed.start), run=request.run, is_known=True)
            rows = await self._stagings.rows(source, request.messages, strict=True)
            token = AttemptToken(request.attempt)
            staging = Staging(tenant=tenant, rows=rows, token=token, admitted=True)
            last = await self._gates.last(passed)
            if isinstance(last, Granted):
                raise AssertionError("no gate grants a lease")
            if not isinstance(last, NamedCall):
                return last
            return await self._intake.admit(passed.lane, stage(passed, request, staging), passed.tenant)

        try:
            await self._stagings.check(tenant, request.messages, "messages")
        except Refusal as misfit:
            return await self._on_record(tenant, request, misfit)
        outcome = await self._begin.along(tenant, request, write)
        if isinstance(outcome, Granted):
            raise AssertionError("staging grants no lease")
        if isinstance(outcome, MessagesStaged):
            self._stagings.tell(len(outcome.messages))
        return outcome

    async def _on_record(self, tenant: TenantId, request: StageRequest, misfit: Refusal) -> StageOutcome:
        """Answer from the record what was staged before its destination went away; else raise the misfit."""
        if request.run is not None and await self._runs.find(tenant, request.run) is None:
            raise misfit
        call = await self._naming.name(tenant, request)
        passed = call if isinstance(call, Refused) or call.is_plain else await self._gates.early(call)
        if isinstance(passed, Granted):
            raise AssertionError("no gate grants a lease")
        if not isinstance(passed, NamedCall):
            return passed
        found = await self._gates.instance(passed)
        event = Event(name="begin", token=AttemptToken(request.attempt), lease=passed.rules.lease)
        ruling = None if found.effect is None else rule(found.call, found.effect, event, found.at)
        if ruling is None or not isinstance(ruling.outcome, Replayed):
            raise misfit
        return ruling.outcome


def _check_rendered_from(request: StageRequest) -> None:
    if request.rendered_from is not None:
        try:
            canonical(request.rendered_from)
        except Refusal as refusal:
            raise refusal.under("rendered_from") from refusal


class _Planned(msgspec.Struct, frozen=True):
    """What is answered, once this is written (None: nothing is)."""

    outcome: StageOutcome
    step: Replace | None = None


def stage(
    call: NamedCall, request: StageRequest, staging: Staging
) -> Generator[Step, StepResult, StageOutcome | Over | Overtaken]:
    """Look at the effect, rule as on a begin, and write in one what it would grant and its success."""
    event = Event(name="begin", token=AttemptToken(request.attempt), lease=lease_of(call), reopen=request.reopen)
    found: StepResult = yield Look(key=call.key(call.start))
    while isinstance(found, Found):
        effect, at = found.effect, found.at
        ruling = rule_on_new(call, event, at) if effect is None else meant(call, call.start, effect, event, at)
        if isinstance(ruling, Over):
            return ruling
        planned = _planned(call, request, ruling, found, staging)
        if planned.step is None:
            return planned.outcome
        found = yield planned.step
        if isinstance(found, Written):
            return _as_written(planned.outcome, found)
    if isinstance(found, Written):
        raise AssertionError("a look writes nothing")
    return Overtaken() if isinstance(found, Overruled) else barred(call, found)


def _planned(call: NamedCall, request: StageRequest, ruling: Ruling, found: Found, staging: Staging) -> _Planned:
    """Return what is written in the place of what a begin would write: where it grants, the whole effect."""
    granted, effect = ruling.outcome, found.effect
    if not isinstance(granted, Granted):
        return _Planned(granted, ruling.planned)
    if effect is not None and _may_have_sent(call, effect, granted.token):
        return _Planned(refusal("in_doubt", effect, call.rules, found.at))
    wanted = request.arguments if granted.arguments is None else granted.arguments
    rendered_from = request.arguments if request.rendered_from is None else request.rendered_from
    if canonical(wanted) != canonical(rendered_from):
        return _Planned(RenderAnew(effect=effect or _unwritten(granted.effect), arguments=wanted))
    success = Event(name="success", token=granted.token, fence=granted.effect.life.fence)
    life = decide(granted.effect.life, success, call.rules, found.at).life
    ids = tuple(row.message for row in staging.rows)
    outcome = msgspec.json.encode(Outcome(result={"staged": [str(id_) for id_ in ids]}))
    done = msgspec.structs.replace(granted.effect, life=life, outcome=outcome)
    step = ruling.planned or Replace(seen=done.version, effect=done)
    return _Planned(
        MessagesStaged(effect=done, at=found.at, messages=ids),
        msgspec.structs.replace(step, effect=done, staging=staging),
    )


def _may_have_sent(call: NamedCall, effect: Effect, token: AttemptToken) -> bool:
    """Say whether an attempt of before, when the tool was not staged, may have acted under another identity."""
    is_harmless = call.rules_for(effect).effect_class == "idempotent"
    return not is_harmless and bool(effect.life.unresolved(besides=token))


def _unwritten(effect: Effect) -> Effect:
    """Return an effect that was only thought of, as it stands: nothing has begun."""
    return msgspec.structs.replace(effect, life=Life(state="pending"))


def _as_written(outcome: StageOutcome, written: Written) -> StageOutcome:
    """Return the outcome with the effect as the store wrote it."""
    match outcome:
        case MessagesStaged():
            return msgspec.structs.replace(outcome, effect=written.effect, at=written.at)
        case Replayed() | Refused() | Awaiting():
            return msgspec.structs.replace(outcome, effect=written.effect)
        case RenderAnew() | Stubbed():
            return outcome
    assert_never(outcome)
