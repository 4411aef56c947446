"""What a call may do in a fork: the pure rule over what the record, the registry and the terms say of it.

Nothing is written here. The gate of forks carries a ruling out; the policy's use case only shows it.
"""

import itertools
from typing import Final, cast

import msgspec

from guard.core.approvals import is_needed
from guard.core.effects import AttemptToken, Effect, Key, RunId
from guard.core.forks import Fork, Lineage, LiveTool, allowance, lineage
from guard.core.keys import downstream_key
from guard.core.pauses import Pause, Stop, answered, is_given
from guard.core.policy import ForkedCall, Recorded, Ruled, Simulated, Standing, rule_on
from guard.core.templates import Known, rendered
from guard.core.tools import UNDECLARED_VERSION, undeclared
from guard.ports.forks import ForkStore, Gave, Given, Wanted
from guard.ports.pauses import PauseStore
from guard.service.naming import NamedCall
from guard.service.recent import Recent
from guard.service.registry import Registry
from twiceshy_contract.canonical import canonical
from twiceshy_contract.policies import ApprovalRule
from twiceshy_contract.policy import PolicyRule
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.tools import ToolDeclaration

MAX_KNOWN: Final = 10_000
"""Records of forks whose extent a process remembers; it never changes."""
_AT_FIRST: Final = 16
_AT_ONCE: Final = 512
"""Instances of a slot that are looked at by one statement: a few at first, then as many again as before."""


class Forked(msgspec.Struct, frozen=True, kw_only=True):
    """A fork with the extent of its record. Nothing is written of one that is only imagined.

    `keepers` are the runs whose versions of tools it keeps to besides its own: those of its record, and those around.
    """

    id: RunId
    fork: Fork
    keepers: tuple[RunId, ...]
    lineage: Lineage

    @property
    def root(self) -> RunId:
        """The run that was forked, under which live calls are counted."""
        return self.fork.counted_in(self.id)


class Imagined(msgspec.Struct, frozen=True):
    """What would have been given and let run by calls that were only thought of."""

    given: dict[Key, Given] = {}
    let: dict[str, set[Key]] = {}


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What the record has for a call, whose key in the fork is `key`; `given` is what it was given before.

    It is the instance `rank` of its slot.
    """

    key: Key
    rank: int
    recorded: Recorded
    origin: Effect | None = None
    given: Given | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A ruling with all that it is carried out by: the outcome of the record or of the simulator (JSON text).

    `also_asked` are the rules of approvals that the runs of the record keep to; `pause` is what the fork stopped at
    before.
    """

    ruled: Ruled
    call: ForkedCall
    found: Found
    simulated: bytes | None
    terms: LiveTool | None
    also_asked: tuple[ApprovalRule, ...]
    pause: Pause | None = None


class ForkRulings:
    """Rules on calls in forks."""

    def __init__(self, store: ForkStore, pauses: PauseStore, registry: Registry) -> None:
        self._store = store
        self._pauses = pauses
        self._registry = registry
        self._known: Recent[RunId, Forked] = Recent(MAX_KNOWN)

    async def forked(self, run: RunId, fork: Fork) -> Forked:
        """Return a fork with the extent of its record. Raises StoreUnavailable."""
        known = self._known.get(run)
        if known is None:
            known = await self.imagined(run, fork)
            self._known.keep(run, known)
        return known

    async def imagined(self, run: RunId, fork: Fork) -> Forked:
        """Return a fork that need not exist, under an id that no run has. Raises StoreUnavailable."""
        found = await self._store.ancestors(fork.parent_id)
        keepers = [fork.parent_id, *(ancestor.parent_id for ancestor in found)]
        if fork.within:
            keepers += [*fork.within, *await self._store.behind(fork.within)]
        return Forked(id=run, fork=fork, keepers=tuple(dict.fromkeys(keepers)), lineage=lineage(fork, found))

    async def judge(
        self, call: NamedCall, forked: Forked, imagined: Imagined, approval: Standing = "missing"
    ) -> Judged:
        """Rule on a call. `approval` is how the one stands that it would need to really run."""
        let = {*await self._store.let(forked.root, call.request.tool), *imagined.let.get(call.request.tool, ())}
        found = await self._recorded(call, forked, imagined, let)
        terms = forked.fork.terms_of(call.request.tool)
        known = _known(call, found.key)
        simulated, outcome = _simulated(call, known)
        kept = await self._kept_to(call, forked)
        declared = (call.named_by.tool.declaration, call.held.tool.declaration, *kept)
        arguments = cast("JsonValue", call.request.arguments)
        pause = await self._pauses.find(forked.id, found.key)
        said_to_it = answered(pause, stop_of(call, forked.id, found.key), is_let=found.key in let)
        has_yes = said_to_it == "allowed"
        asks = any(
            (said.class_ == "side_effect" and not has_yes) or is_needed(said.approval, arguments) for said in declared
        )
        forked_call = ForkedCall(
            classes=tuple(said.class_ for said in declared),
            rules=tuple(said.fork for said in declared),
            is_registered=call.held.tool.version > UNDECLARED_VERSION,
            recorded=found.recorded,
            allowance=allowance(terms, known, len(let - {found.key})),
            simulated=simulated,
            approval=approval if asks else "not needed",
            reads=forked.fork.reads,
            answered=said_to_it,
        )
        return Judged(
            ruled=rule_on(forked_call),
            call=forked_call,
            found=found,
            simulated=outcome,
            terms=terms,
            also_asked=tuple(said.approval for said in kept if said.approval is not None),
            pause=pause,
        )

    async def _kept_to(self, call: NamedCall, forked: Forked) -> list[ToolDeclaration]:
        """Return the other versions of the tool that the fork keeps to, some since it was made."""
        tool = call.request.tool
        versions = await self._store.pins(forked.keepers, tool)
        kept: list[ToolDeclaration] = []
        for version in sorted(versions - {call.named_by.tool.version, call.held.tool.version}):
            found = None if version == UNDECLARED_VERSION else await self._registry.version(call.tenant, tool, version)
            kept.append((found or undeclared(call.tenant, tool)).declaration)
        return kept

    async def _recorded(self, call: NamedCall, forked: Forked, imagined: Imagined, let: set[Key]) -> Found:
        """Find what the record has for the instance that the call means in the fork."""
        gave: dict[Key, Gave] = {key: given.gave for key, given in imagined.given.items()}
        read = call.start - 1
        for rank in itertools.count(call.start):
            if rank > read:
                more = [call.key(later) for later in range(rank, rank + min(max(read, _AT_FIRST), _AT_ONCE))]
                gave = await self._store.gave(forked.id, more) | gave
                read += len(more)
            key = call.key(rank)
            if key in let:
                return Found(key=key, rank=rank, recorded="nothing")
            if key not in gave:
                if await self._is_given(call, forked, key):
                    continue
                return await self._fresh(call, rank, forked, imagined)
            if not _is_over(gave[key], call):
                given = imagined.given.get(key) or await self._store.given(forked.id, key)
                if given is not None:
                    recorded = _said(call, given.origin, forked.lineage)
                    return Found(key=key, rank=rank, recorded=recorded, origin=given.origin, given=given)
        raise AssertionError("there is no last rank")

    async def _is_given(self, call: NamedCall, forked: Forked, key: Key) -> bool:
        """Say whether a person's outcome went to another call, so that a later instance is meant."""
        if call.rules.repeat == "replay":
            return False
        pause = await self._pauses.find(forked.id, key)
        return pause is not None and is_given(pause, AttemptToken(call.request.attempt), call.rules.repeat)

    async def _fresh(self, call: NamedCall, rank: int, forked: Forked, imagined: Imagined) -> Found:
        """Find what of the record answers a call that was given nothing yet."""
        key, wanted = call.key(rank), _wanted(call)
        besides = [given.origin.intent.key for given in imagined.given.values()]
        origin = await self._store.find(forked.id, forked.lineage.head, wanted, besides, in_place=True)
        if origin is not None:
            return Found(key=key, rank=rank, recorded=_said(call, origin, forked.lineage), origin=origin)
        origin = await self._store.find(forked.id, forked.lineage.tail, wanted, besides, in_place=False)
        recorded: Recorded = "nothing" if origin is None else "after the cut"
        return Found(key=key, rank=rank, recorded=recorded, origin=origin)


def stop_of(call: NamedCall, run: RunId, key: Key, rule: PolicyRule = "nothing may answer") -> Stop:
    """Return the stop that the call is, should the fork stop at it by a rule."""
    return Stop(
        run=run,
        tenant=call.tenant,
        key=key,
        tool=call.request.tool,
        arguments=msgspec.json.encode(call.stored_arguments),
        identity_digest=call.reading.identity_digest,
        arguments_digest=call.reading.arguments_digest,
        rule=rule,
    )


def _said(call: NamedCall, origin: Effect, record: Lineage) -> Recorded:
    if origin.intent.identity_digest != call.reading.identity_digest:
        return "arguments differ"
    if origin.outcome is None or not origin.is_final:
        return "outcome unknown"
    return "before the cut" if record.repeats(origin.intent.run_id, origin.intent.step) else "after the cut"


def _is_over(gave: Gave, call: NamedCall) -> bool:
    """Say whether what was given is over for the call, as an effect of its own would be: a later one is meant."""
    if gave.token == AttemptToken(call.request.attempt):
        return False
    if gave.is_failed:
        return gave.arguments_digest != call.reading.arguments_digest
    if call.rules.is_counted:
        return False
    return call.rules.repeat != "replay" or (call.rules.effect_class == "idempotent" and gave.delivered)


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
        "downstream_key": downstream_key(key, 0),
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
        canonical(result)
    except Refusal:
        return "a failure", None
    return "an outcome", msgspec.json.encode({"result": result})
