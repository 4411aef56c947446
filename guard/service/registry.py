"""The side-effect registry as the service reads it: what a tool's calls obey."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from guard.core.arguments import ArgumentReader
from guard.core.declarations import asks_elsewhere, asks_fewer, refusals
from guard.core.effects import Effect, Instant, RunId, TenantId
from guard.core.lease import Rules, narrowed
from guard.core.tools import UNDECLARED_VERSION, Declared, Held, Moved, Planned, Tool, undeclared
from guard.ports.store import Pin, ToolStore
from guard.service.loading import Loader
from guard.service.recent import Recent
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.tools import ToolDeclaration

FRESH_SECONDS: Final = 0.75
"""How long an answer of the registry is believed, from when it was asked for: a change is obeyed within a second."""
MAX_TOOLS: Final = 10_000
_STRICTEST: Final = Rules(effect_class="side_effect", provider_window=None)
"""What counts for an effect whose version is younger than what this process knows."""
MAX_PINS: Final = 100_000


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a tool with its rules and the reader of its arguments.

    Its intents are the tenant's where it `is_tenant_wide`, else their run's. A slot that `looks_up` may have many
    instances, so that the newest is looked up. `has_roles` says that somebody declared which arguments name a call,
    `needs_gates` that more than the effect itself decides about one.
    """

    tool: Tool
    rules: Rules
    reader: ArgumentReader
    is_tenant_wide: bool
    looks_up: bool
    has_roles: bool
    needs_gates: bool

    @property
    def allows_something(self) -> bool:
        """Whether an effect that began under another version may be allowed less than these rules allow."""
        return self.rules.effect_class != "side_effect" or self.rules.provider_window is not None


class Unfit(msgspec.Struct, frozen=True):
    """A declaration that cannot be carried out, and why: places within it."""

    name: str
    refusals: tuple[Refusal, ...]


class Applied(msgspec.Struct, frozen=True):
    """All declarations were taken."""

    changes: tuple[Planned, ...]


class NothingFits(msgspec.Struct, frozen=True):
    """Some declarations cannot be carried out, and so none was taken."""

    unfit: tuple[Unfit, ...]


class Unasked(msgspec.Struct, frozen=True):
    """An approver would have to declare these tools, and nothing was declared.

    Of `names`, calls that a person must approve would run without; for `probing`, the service would send its own
    requests, and the secrets in them, to where it did not before.
    """

    names: tuple[str, ...]
    probing: tuple[str, ...]


class Registry:
    """Tools, kept for less than a second, so that a change made elsewhere is obeyed in one; pins, kept for good."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._tools: Loader[str, Tool] = Loader(self._load_tools)
        self._pins: Loader[tuple[RunId, str, int], Tool] = Loader(self._load_pins)
        self._histories: Loader[str, Mapping[int, Rules]] = Loader(self._load_histories)
        self._versions: Recent[tuple[TenantId, str], tuple[float, Mapping[int, Rules]]] = Recent(MAX_TOOLS)
        self._known: Recent[tuple[TenantId, str], tuple[float, KnownTool]] = Recent(MAX_TOOLS)
        self._pinned: Recent[tuple[RunId, str], KnownTool] = Recent(MAX_PINS)

    async def find(self, tenant: TenantId, name: str) -> KnownTool:
        """Return the tool as it holds, declared or with the defaults of an undeclared one."""
        now = asyncio.get_running_loop().time()
        kept = self._known.get((tenant, name))
        if kept is not None and now < kept[0]:
            return kept[1]
        tool = await self._tools.get(tenant, name)
        return self._keep(undeclared(tenant, name) if tool is None else tool, now)

    async def pinned(self, tenant: TenantId, run: RunId, held: KnownTool) -> KnownTool:
        """Return the version that the run used first, which is the one that holds where it uses the tool now first."""
        name = held.tool.name
        pinned = self._pinned.get((run, name))
        if pinned is None:
            tool = await self._pins.get(tenant, (run, name, held.tool.version))
            tool = undeclared(tenant, name) if tool is None else tool
            pinned = held if tool == held.tool else as_known(tool)
            self._pinned.keep((run, name), pinned)
        return held if pinned.tool == held.tool else pinned

    async def rules_for(self, effect: Effect) -> Rules:
        """Return today's rules, with no more allowed than the version that the effect began under promises."""
        intent = effect.intent
        today = await self.find(intent.tenant, intent.tool)
        if intent.tool_version == today.tool.version or not today.allows_something:
            return today.rules
        own = (await self.versions(today)).get(intent.tool_version, _STRICTEST)
        return narrowed(today.rules, own)

    async def redacted_for(self, effect: Effect) -> tuple[str, ...]:
        """Return the places of an effect's arguments that are not stored: by its version, and by today's."""
        intent = effect.intent
        today = (await self.find(intent.tenant, intent.tool)).tool
        if intent.tool_version == today.version:
            return today.declaration.redacted
        own = await self.version(intent.tenant, intent.tool, intent.tool_version)
        return today.declaration.redacted + (() if own is None else own.declaration.redacted)

    async def versions(self, today: KnownTool) -> Mapping[int, Rules]:
        """Return the rules of all versions of a tool, that of nobody's declaration too; no older than a second."""
        now, name = asyncio.get_running_loop().time(), (today.tool.tenant, today.tool.name)
        kept = self._versions.get(name)
        if kept is not None and now < kept[0]:
            return kept[1]
        found = await self._histories.get(*name) or {}
        self._versions.keep(name, (now + FRESH_SECONDS, found))
        return found

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Take a declaration. Raises Refusal where it cannot be carried out."""
        for refusal in refusals(name, declaration):
            raise refusal
        asked = asyncio.get_running_loop().time()
        match await self._store.declare(tenant, {name: declaration}):
            case [Declared(tool=tool)]:
                return self._keep(tool, asked).tool
            case other:
                raise TypeError(other)

    async def plan(self, tenant: TenantId, wanted: Mapping[str, ToolDeclaration]) -> list[Planned | Unfit]:
        """Say what declarations would make of their tools, in their order, or why they cannot be carried out."""
        unfit = {one.name: one for one in _unfit(wanted)}
        fit = {name: declaration for name, declaration in wanted.items() if name not in unfit}
        plan = {change.name: change for change in await self._store.plan(tenant, fit)}
        return [unfit.get(name) or plan[name] for name in wanted]

    async def apply(
        self, tenant: TenantId, wanted: Mapping[str, ToolDeclaration], seen: Mapping[str, int]
    ) -> Applied | NothingFits | Moved:
        """Take all declarations or none: none where one is unfit, or would change what is not as it was seen."""
        unfit = _unfit(wanted)
        if unfit:
            return NothingFits(unfit)
        asked = asyncio.get_running_loop().time()
        outcome = await self._store.declare(tenant, wanted, seen)
        if isinstance(outcome, Moved):
            return outcome
        for one in outcome:
            self._keep(one.tool, asked)
        return Applied(tuple(one.planned for one in outcome))

    async def apply_no_lower(
        self, tenant: TenantId, wanted: Mapping[str, ToolDeclaration], seen: Mapping[str, int]
    ) -> Applied | NothingFits | Moved | Unasked:
        """Apply for somebody who is no approver: no call may run without a person that needs one now.

        And no new probe may be sent in the service's name.
        """
        while True:
            held = await self._store.held(tenant, list(wanted))
            unasked = tuple(
                name
                for name, after in wanted.items()
                if after.declared_by == "person" and name in held and asks_fewer(held[name].declaration, after)
            )
            probing = tuple(
                name
                for name, after in wanted.items()
                if asks_elsewhere(held[name].declaration if name in held else None, after)
            )
            if unasked or probing:
                return Unasked(unasked, probing)
            read = {name: held[name].version if name in held else UNDECLARED_VERSION for name in wanted}
            outcome = await self.apply(tenant, wanted, read | dict(seen))
            if not isinstance(outcome, Moved) or any(name in seen for name in outcome.held):
                return outcome

    async def get(self, tenant: TenantId, name: str) -> Tool | None:
        """Return a declared tool."""
        return (await self._store.held(tenant, [name])).get(name)

    async def version(self, tenant: TenantId, name: str, version: int) -> Tool | None:
        """Return one version of a tool."""
        return (await self._store.versions(tenant, [(name, version)])).get((name, version))

    async def at(self, tenant: TenantId, name: str, at: Instant) -> Tool | None:
        """Return the version of a tool that held at an instant."""
        return await self._store.at(tenant, name, at)

    async def history(self, tenant: TenantId, name: str) -> list[Held]:
        """Return all versions of a tool with the terms in which each held, newest version first."""
        return await self._store.history(tenant, name)

    async def all(self, tenant: TenantId, at: Instant | None = None) -> list[Tool]:
        """Return every tool that is declared, or was at an instant, by name."""
        return await self._store.all(tenant, at)

    def _keep(self, tool: Tool, asked: float) -> KnownTool:
        """Keep what was read no longer than from when it was asked for: a slow answer may be old when it comes."""
        kept = self._known.get((tool.tenant, tool.name))
        known = kept[1] if kept is not None and kept[1].tool == tool else as_known(tool)
        self._known.keep((tool.tenant, tool.name), (asked + FRESH_SECONDS, known))
        return known

    async def _load_tools(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Tool]:
        return await self._store.held(tenant, names)

    async def _load_histories(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Mapping[int, Rules]]:
        found = {name: {UNDECLARED_VERSION: undeclared(tenant, name).rules} for name in names}
        for tool in await self._store.every_version(tenant, names):
            found[tool.name][tool.version] = tool.rules
        return found

    async def _load_pins(
        self, tenant: TenantId, wishes: Sequence[tuple[RunId, str, int]]
    ) -> Mapping[tuple[RunId, str, int], Tool]:
        pins = [Pin(run=run, tool=name, version=version) for run, name, version in wishes]
        tools = await self._store.pin(tenant, pins)
        return {wish: tool for wish, tool in zip(wishes, tools, strict=True) if tool is not None}


def _unfit(wanted: Mapping[str, ToolDeclaration]) -> tuple[Unfit, ...]:
    """Return those declarations that cannot be carried out."""
    found = ((name, tuple(refusals(name, declaration))) for name, declaration in wanted.items())
    return tuple(Unfit(name, reasons) for name, reasons in found if reasons)


def as_known(tool: Tool) -> KnownTool:
    """Return a version of a tool with its rules and the reader of its arguments."""
    rules, declared = tool.rules, tool.declaration
    roles = declared.arguments
    gates = (declared.approval, declared.resource, declared.loop_limit)
    return KnownTool(
        tool=tool,
        rules=rules,
        reader=ArgumentReader(roles),
        is_tenant_wide=declared.key.scope == "tenant",
        looks_up=rules.window is not None or rules.repeat != "replay" or rules.effect_class == "idempotent",
        has_roles=bool(roles.identity or roles.content or roles.ignored),
        needs_gates=rules.repeat == "ask" or any(gate is not None for gate in gates),
    )
