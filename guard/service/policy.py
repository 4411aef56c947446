"""Policy: what calls may do in a fork, asked without doing anything."""

from collections.abc import AsyncIterator
from typing import Final
from uuid import UUID

import msgspec

from guard.core.effects import AttemptToken, Instant, RunId, TenantId, instant
from guard.core.lease import stricter
from guard.core.policy import Ruled, Standing, outside
from guard.core.tools import UNDECLARED_VERSION, Tool, undeclared
from guard.ports.approvals import ApprovalStore
from guard.ports.forks import ForkStore, Given
from guard.service.fork_rulings import Forked, ForkRulings, Imagined, Judged
from guard.service.gates import Gates
from guard.service.naming import NamedCall, named_call
from guard.service.outcomes import Refused
from guard.service.registry import KnownTool, Registry, as_known
from guard.service.runs import KnownRun, Runs, check_terms, fork_of
from guard.service.understanding import read_arguments, rule_of
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.names import EffectClass
from twiceshy_contract.policy import PolicyCall, PolicyRequest
from twiceshy_contract.refusals import Refusal

_NO_RUN: Final = RunId(UUID(int=0))
"""The id of a fork that is only imagined: no run has it."""


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about one call; `judged` is None outside of forks."""

    ruled: Ruled
    tool: str
    named_by: int
    held: int
    effect_class: EffectClass
    judged: Judged | None = None


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the calls are made: in which run, whose versions of tools it keeps to, and what it is as a fork."""

    name: str
    run: KnownRun
    pins: RunId
    forked: Forked | None


class Policy:
    """Decides about calls that nobody makes."""

    def __init__(
        self,
        store: ForkStore,
        approvals: ApprovalStore,
        registry: Registry,
        runs: Runs,
        rulings: ForkRulings,
        gates: Gates,
    ) -> None:
        self._store = store
        self._approvals = approvals
        self._registry = registry
        self._runs = runs
        self._rulings = rulings
        self._gates = gates

    async def __call__(self, tenant: TenantId, request: PolicyRequest) -> list[Decided] | Refused:
        """Decide about all calls, each as if those before it had been made.

        Raises Refusal for what cannot be understood, StoreUnavailable.
        """
        place = await self._place(tenant, request)
        if isinstance(place, Refused):
            return place
        as_of = None if request.as_of is None else instant(request.as_of)
        imagined = Imagined({}, {})
        decided: list[Decided] = []
        async for number, call in self._named(tenant, request, place, as_of):
            decided.append(await self._decided(call, place, imagined))
            _imagine(imagined, decided[-1], AttemptToken(UUID(int=number)))
        return decided

    async def _place(self, tenant: TenantId, request: PolicyRequest) -> _Place | Refused:
        terms = request.fork
        if terms is not None:
            check_terms(terms, "fork")
        name = request.run if terms is None else terms.parent
        run = None if name is None else await self._runs.get(tenant, name)
        if run is None or name is None:
            return Refused(code="not-found", detail=f"There is no run {name!r}.")
        if terms is not None:
            fork = fork_of(run, terms)
            forked = await self._rulings.imagined(_NO_RUN, fork)
            return _Place(name=name, run=KnownRun(id=_NO_RUN, fork=fork), pins=run.id, forked=forked)
        known = KnownRun(id=run.id, fork=run.fork)
        own = None if run.fork is None else await self._rulings.forked(run.id, run.fork)
        return _Place(name=name, run=known, pins=run.id, forked=own)

    async def _named(
        self, tenant: TenantId, request: PolicyRequest, place: _Place, as_of: Instant | None
    ) -> AsyncIterator[tuple[int, NamedCall]]:
        """Yield the calls as they would be named; nothing is pinned."""
        for number, call in enumerate(request.calls):
            try:
                yield number, await self._name(tenant, call, number, place, as_of)
            except Refusal as refusal:
                raise refusal.under("calls", number) from refusal

    async def _name(
        self, tenant: TenantId, call: PolicyCall, number: int, place: _Place, as_of: Instant | None
    ) -> NamedCall:
        held = await self._held(tenant, call, as_of)
        named_by = await self._named_by(tenant, call.tool, place, held)
        begin = BeginRequest(
            tool=call.tool,
            arguments=call.arguments,
            attempt=UUID(int=number),
            run=place.name,
            business_key=call.business_key,
            step=call.step,
            occurrence=call.occurrence,
        )
        understood = (rule_of(begin, named_by), read_arguments(call.arguments, named_by))
        return named_call(tenant, begin, understood, place.run, held, named_by)

    async def _held(self, tenant: TenantId, call: PolicyCall, as_of: Instant | None) -> KnownTool:
        """Return the version whose rules are weighed: the one that is asked for, or held then, or holds today."""
        if call.tool_version is not None:
            tool = await self._registry.version(tenant, call.tool, call.tool_version)
            if tool is None:
                raise Refusal(f"tool {call.tool!r} has no such version", ("tool_version",))
            return as_known(tool)
        if as_of is None:
            return await self._registry.find(tenant, call.tool)
        return as_known(await self._registry.at(tenant, call.tool, as_of) or undeclared(tenant, call.tool))

    async def _named_by(self, tenant: TenantId, name: str, place: _Place, held: KnownTool) -> KnownTool:
        """Return the version that the run keeps to, or would begin to keep to."""
        version = await self._store.pinned(place.pins, name)
        if version is None or version == held.tool.version:
            return held
        tool: Tool | None = None
        if version > UNDECLARED_VERSION:
            tool = await self._registry.version(tenant, name, version)
        return as_known(tool or undeclared(tenant, name))

    async def _decided(self, call: NamedCall, place: _Place, imagined: Imagined) -> Decided:
        judged = None
        if place.forked is not None:
            standing = await self._standing(call, place.forked)
            judged = await self._rulings.judge(call, place.forked, imagined, standing)
        return Decided(
            ruled=outside() if judged is None else judged.ruled,
            tool=call.request.tool,
            named_by=call.named_by.tool.version,
            held=call.held.tool.version,
            effect_class=stricter(call.named_by.rules.effect_class, call.held.rules.effect_class),
            judged=judged,
        )

    async def _standing(self, call: NamedCall, forked: Forked) -> Standing:
        """Say how the approval stands that a call of a fork would need; it covers these arguments and no others."""
        if forked.id == _NO_RUN:
            return "missing"
        instance = (await self._gates.instance(call)).call
        latest = await self._approvals.latest(call.tenant, instance.key(instance.start))
        if latest is None or latest.approval.question.digest != call.reading.arguments_digest:
            return "missing"
        state = latest.approval.state_at(latest.at)
        return "missing" if state == "cancelled" else state


def _imagine(imagined: Imagined, decided: Decided, token: AttemptToken) -> None:
    """Remember what the call would have been given, or that it would have run."""
    judged = decided.judged
    if judged is None:
        return
    found = judged.found
    if decided.ruled.decision == "recorded" and found.given is None and found.origin is not None:
        imagined.given[found.key] = Given(origin=found.origin, token=token, delivered=False)
    if decided.ruled.decision == "live":
        imagined.let.setdefault(decided.tool, set()).add(found.key)
