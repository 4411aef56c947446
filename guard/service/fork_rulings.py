"""What a call may do in a fork: the pure rule over what the record, the registry and the terms say of it.

Nothing is written here. The gate of forks carries a ruling out; the policy's use case only shows it.
"""

import itertools
from typing import Final, cast

import msgspec

from guard.core.approvals import is_needed
from guard.core.effects import AttemptToken, Effect, Key, RunId
from guard.core.forks import Fork, Lineage, LiveTool, allowance, lineage
from guard.core.policy import ForkedCall, Recorded, Ruled, Simulated, Standing, rule_on
from guard.core.templates import Known, rendered
from guard.core.tools import UNDECLARED_VERSION
from guard.ports.forks import ForkStore, Given, Wanted
from guard.service.naming import NamedCall
from guard.service.recent import Recent
from twiceshy_contract.refusals import JsonValue, Refusal

MAX_KNOWN: Final = 10_000
"""Records of forks whose extent a process remembers; it never changes."""


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A fork with the extent of its record. Nothing is written of one that is only imagined."""

    id: RunId
    fork: Fork
    lineage: Lineage


class Imagined(msgspec.Struct, frozen=True):
    """What would have been given and let run by calls that were only thought of."""

    given: dict[Key, Given] = {}
    let: dict[str, set[Key]] = {}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the record has for a call, whose key in the fork is `key`; `given` is what it was given before."""

    key: Key
    recorded: Recorded
    origin: Effect | None = None
    given: Given | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A ruling with all that it is carried out by: the outcome of the record or of the simulator (JSON text)."""

    ruled: Ruled
    call: ForkedCall
    found: Found
    simulated: bytes | None
    terms: LiveTool | None


class ForkRulings:
    """Rules on calls in forks."""

    def __init__(self, store: ForkStore) -> None:
        self._store = store
        self._lineages: Recent[RunId, Lineage] = Recent(MAX_KNOWN)

    async def forked(self, run: RunId, fork: Fork) -> Forked:
        """Return a fork with the extent of its record. Raises StoreUnavailable."""
        known = self._lineages.get(run)
        if known is None:
            known = lineage(fork, await self._store.ancestors(fork.parent_id))
            self._lineages.keep(run, known)
        return Forked(id=run, fork=fork, lineage=known)

    async def imagined(self, run: RunId, fork: Fork) -> Forked:
        """Return a fork that need not exist, under an id that no run has. Raises StoreUnavailable."""
        return Forked(id=run, fork=fork, lineage=lineage(fork, await self._store.ancestors(fork.parent_id)))

    async def judge(
        self, call: NamedCall, forked: Forked, imagined: Imagined, approval: Standing = "missing"
    ) -> Judged:
        """Rule on a call. `approval` is how the one stands that it would need to really run."""
        let = {*await self._store.let(forked.id, call.request.tool), *imagined.let.get(call.request.tool, ())}
        found = await self._recorded(call, forked, imagined, let)
        terms = forked.fork.terms_of(call.request.tool)
        known = _known(call, found.key)
        simulated, outcome = _simulated(call, known)
        declared = (call.named_by.tool.declaration, call.held.tool.declaration)
        arguments = cast("JsonValue", call.request.arguments)
        asks = call.rules.effect_class == "side_effect" or any(is_needed(said.approval, arguments) for said in declared)
        forked_call = ForkedCall(
            classes=(declared[0].class_, declared[1].class_),
            rules=(declared[0].fork, declared[1].fork),
            is_registered=call.held.tool.version > UNDECLARED_VERSION,
            recorded=found.recorded,
            allowance=allowance(terms, known, len(let - {found.key})),
            simulated=simulated,
            approval=approval if asks else "not needed",
            reads=forked.fork.reads,
        )
        return Judged(ruled=rule_on(forked_call), call=forked_call, found=found, simulated=outcome, terms=terms)

    async def _recorded(self, call: NamedCall, forked: Forked, imagined: Imagined, let: set[Key]) -> Found:
        """Find what the record has for the instance that the call means in the fork."""
        for rank in itertools.count(1):
            key = call.key(rank)
            if key in let:
                return Found(key=key, recorded="nothing")
            given = imagined.given.get(key) or await self._store.given(forked.id, key)
            if given is None:
                return await self._fresh(call, key, forked, imagined)
            if not _is_over(given, call):
                recorded = _said(call, given.origin, forked.lineage)
                return Found(key=key, recorded=recorded, origin=given.origin, given=given)
        raise AssertionError("there is no last rank")

    async def _fresh(self, call: NamedCall, key: Key, forked: Forked, imagined: Imagined) -> Found:
        """Find what of the record answers a call that was given nothing yet."""
        wanted = _wanted(call)
        besides = [given.origin.intent.key for given in imagined.given.values()]
        origin = await self._store.find(forked.id, forked.lineage.head, wanted, besides, in_place=True)
        if origin is not None:
            return Found(key=key, recorded=_said(call, origin, forked.lineage), origin=origin)
        origin = await self._store.find(forked.id, forked.lineage.tail, wanted, besides, in_place=False)
        return Found(key=key, recorded="nothing" if origin is None else "after the cut", origin=origin)


def _said(call: NamedCall, origin: Effect, record: Lineage) -> Recorded:
    if origin.intent.identity_digest != call.reading.identity_digest:
        return "arguments differ"
    if origin.outcome is None or not origin.is_final:
        return "outcome unknown"
    return "before the cut" if record.repeats(origin.intent.run_id, origin.intent.step) else "after the cut"


def _is_over(given: Given, call: NamedCall) -> bool:
    """Say whether what was given is over for the call, as an effect of its own would be: a later one is meant."""
    if given.token == AttemptToken(call.request.attempt):
        return False
    origin, rules = given.origin, call.rules
    if origin.life.state == "failed":
        return origin.intent.arguments_digest != call.reading.arguments_digest
    return rules.repeat != "replay" or (rules.effect_class == "idempotent" and given.delivered)


def _wanted(call: NamedCall) -> Wanted:
    request = call.request
    return Wanted(
        tool=request.tool,
        rule=call.rule,
        step=None if request.step is None else str(request.step),
        business_key=request.business_key,
        occurrence=request.occurrence,
        identity_digest=call.reading.identity_digest,
        arguments_digest=call.reading.arguments_digest,
    )


def _known(call: NamedCall, key: Key) -> Known:
    request = call.request
    return {
        "arguments": cast("JsonValue", request.arguments),
        "key": key.hex(),
        "run": request.run,
        "step": request.step,
        "tool": request.tool,
    }


def _simulated(call: NamedCall, known: Known) -> tuple[Simulated, bytes | None]:
    """Let the simulator of today answer, or that of the version that names the call."""
    simulator = call.held.tool.declaration.simulator or call.named_by.tool.declaration.simulator
    if simulator is None:
        return "nothing", None
    try:
        result = rendered(simulator.result, known)
    except Refusal:
        return "a failure", None
    return "an outcome", msgspec.json.encode({"result": result})
