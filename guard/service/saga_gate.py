"""The gate of sagas: a step is enlisted before it begins, and a compensation begins when it is due, as it is due."""

from typing import Final, Literal

import msgspec

from guard.core.effects import AttemptToken, Effect, Key
from guard.core.sagas import Due, Stuck, Wait, due_of
from guard.ports.sagas import NewStep, SagaStore
from guard.service.gates import Instance, Over, find
from guard.service.intake import Intake
from guard.service.naming import NamedCall
from guard.service.outcomes import BeginOutcome, Granted, Refused
from guard.service.release import release
from guard.service.sagas import Looked, Sagas, no_saga, over
from twiceshy_contract.refusals import Refusal

_TAKING_BACK_SECONDS: Final = 1.0
_NEW: Final = 1
"""The version of an effect that was made just now."""


class SagaGate:
    """Lets a call of a saga pass, or says why it may not begin."""

    def __init__(self, store: SagaStore, sagas: Sagas, intake: Intake) -> None:
        self._store: Final = store
        self._sagas: Final = sagas
        self._intake: Final = intake

    async def __call__(self, found: Instance) -> NamedCall | BeginOutcome:
        """Let the call pass, or answer it. Raises Refusal, StoreUnavailable."""
        request = found.call.request
        if request.saga is None:
            return found.call
        if request.compensates is None:
            return await self._step(found, request.saga)
        return await self._compensation(found, request.saga, request.compensates)

    async def confirm(self, call: NamedCall, granted: Granted) -> BeginOutcome:
        """Take a new step's first lease away again where its saga ended while it was begun. Raises StoreUnavailable."""
        request = call.request
        if request.saga is None or request.compensates is not None or granted.effect.version != _NEW:
            return granted
        saga = await self._store.find(call.tenant, request.saga)
        if saga is None or saga.state == "running":
            return granted
        await self._intake.do(call.lane, release(call), call.tenant)
        return over(saga, f"takes no step of tool {request.tool!r} any more")

    async def _step(self, found: Instance, saga: str) -> NamedCall | BeginOutcome:
        """Enlist a step. An instance that another saga has taken back is over: the next one is meant."""
        while True:
            call = found.call
            declared = call.named_by.tool.declaration
            step = NewStep(
                key=call.key(call.start),
                run=call.request.run,
                tool=call.request.tool,
                compensation=declared.compensation,
            )
            enlisted = await self._store.enlist(call.tenant, saga, step)
            if enlisted is None:
                return no_saga(saga)
            match enlisted.became:
                case "enlisted":
                    return call
                case "of_another":
                    standing = await self._of_another(call, step.key, enlisted.other)
                    if standing != "taken_back":
                        return standing
                    found = await self._next(call)
                case "of_another_run":
                    raise Refusal(f"the saga belongs to run {enlisted.saga.run!r}: its steps do too", ("run",))
                case "taken_back":
                    found = await self._next(call)
                case "over":
                    may_pass = enlisted.is_known and _may_pass(found, is_completed=enlisted.saga.state == "completed")
                    return call if may_pass else over(enlisted.saga, f"takes no step of tool {step.tool!r} any more")

    async def _of_another(
        self, call: NamedCall, key: Key, other: str | None
    ) -> NamedCall | Refused | Literal["taken_back"]:
        """Say what the step of another saga is to a call: its record, while that saga does not take it back."""
        looked = None if other is None else await self._sagas.look_again(call.tenant, other)
        step = None if looked is None else looked.record.step(key)
        if looked is None or step is None or looked.move is None:
            return call
        if step.state == "compensated":
            return "taken_back"
        if step.state != "enlisted":
            return call
        return Refused(
            code="retry-later",
            detail=f"Effect {key.hex()} of tool {call.request.tool!r} is a step of saga {other!r}, which takes it back "
            "now; begin again when it has.",
            retry_after=_TAKING_BACK_SECONDS,
        )

    async def _next(self, call: NamedCall) -> Instance:
        """Find the instance of the slot after the one that the call names."""
        rank = call.start
        while True:
            call = msgspec.structs.replace(call, start=rank + 1)
            found = await self._intake.do(call.lane, find(call), call.tenant)
            if not isinstance(found, Over):
                return found
            rank = found.rank

    async def _compensation(self, found: Instance, saga: str, step: str) -> NamedCall | BeginOutcome:
        """Let the compensation of a step pass that is the one due, with the arguments that the record gives."""
        looked = await self._sagas.look_after(found.call.tenant, saga)
        if looked is None:
            return no_saga(saga)
        if _is_own(found, found.effect):
            return found.call
        move = looked.move
        if not isinstance(move, Due | Wait | Stuck) or move.key.hex() != step:
            return over(looked.saga, f"does not take back effect {step} now")
        due = due_of(move)
        if due is None:
            known = looked.record.step(move.key)
            is_begun = known is not None and known.compensation_key == found.call.key(found.call.start)
            return found.call if is_begun else over(looked.saga, f"does not take back effect {step} now: {_why(move)}")
        refused = _misfit(found.call, looked, due)
        if refused is not None:
            return refused
        key = found.call.key(found.call.start)
        if due.standing.step.compensation_key != key:
            await self._store.pursue(looked.saga.id, due.key, key)
        return found.call


def _why(move: Due | Wait | Stuck) -> str:
    return "it is due" if isinstance(move, Due) else move.why


def _misfit(call: NamedCall, looked: Looked, due: Due) -> Refused | None:
    """Say in what a call differs from the compensation that is due."""
    step, request = due.standing.step, call.request
    template = step.compensation
    if due.purpose != "compensate" or template is None:
        return over(looked.saga, f"does not take back effect {step.key.hex()} before it is known whether it was done")
    if request.run != looked.saga.run:
        raise Refusal(f"the saga belongs to run {looked.saga.run!r}: its compensations do too", ("run",))
    if request.tool != template.tool or request.occurrence != step.round:
        return over(
            looked.saga,
            f"takes back effect {step.key.hex()} with tool {template.tool!r} as occurrence {step.round}",
        )
    reader = call.named_by.reader
    if reader.read(due.arguments).arguments_digest == call.reading.arguments_digest:
        return None
    differing = (
        *reader.differing_identity(due.arguments, request.arguments),
        *reader.differing_content(due.arguments, request.arguments),
    )
    paths = tuple(f"/arguments{path}" for path in differing)
    return Refused(
        code="arguments-changed",
        detail=f"Saga {looked.saga.name!r} takes back effect {step.key.hex()} with other arguments; they differ at "
        f"{', '.join(paths)}.",
        paths=paths,
    )


def _may_pass(found: Instance, *, is_completed: bool) -> bool:
    """Say whether a step that is known may be asked for still: for the record, or to learn whether it was done."""
    effect = found.effect
    if effect is None:
        return False
    if is_completed:
        return effect.is_final
    return _is_own(found, effect) or (not effect.is_final and bool(effect.life.unresolved()))


def _is_own(found: Instance, effect: Effect | None) -> bool:
    """Say whether the call's attempt was granted a lease of the effect before: it asks again."""
    token = AttemptToken(found.call.request.attempt)
    return effect is not None and effect.life.attempt(token) is not None
