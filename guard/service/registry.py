"""The side-effect registry as the service reads it: what a tool's calls obey."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from guard.core.arguments import ArgumentReader
from guard.core.effects import RunId, TenantId
from guard.core.lease import Rules
from guard.core.tools import Tool, undeclared
from guard.ports.store import Pin, ToolStore
from guard.service.loading import Loader
from guard.service.recent import Recent
from twiceshy_contract.tools import ToolDeclaration

FRESH_SECONDS: Final = 1.0
"""How long an answer of the registry is believed before it is read again."""
MAX_TOOLS: Final = 10_000
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


class Registry:
    """Tools, kept for a second each, so that a change made elsewhere is obeyed a second later; pins, kept for good."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._tools: Loader[str, Tool] = Loader(self._load_tools)
        self._pins: Loader[tuple[RunId, str, int], Tool] = Loader(self._load_pins)
        self._known: Recent[tuple[TenantId, str], tuple[float, KnownTool]] = Recent(MAX_TOOLS)
        self._pinned: Recent[tuple[RunId, str], KnownTool] = Recent(MAX_PINS)

    async def find(self, tenant: TenantId, name: str) -> KnownTool:
        """Return the tool as it holds, declared or with the defaults of an undeclared one."""
        now = asyncio.get_running_loop().time()
        kept = self._known.get((tenant, name))
        if kept is not None and now < kept[0]:
            return kept[1]
        tool = await self._tools.get(tenant, name)
        return self._keep(undeclared(tenant, name) if tool is None else tool)

    async def pinned(self, tenant: TenantId, run: RunId, held: KnownTool) -> KnownTool:
        """Return the version that the run used first, which is the one that holds where it uses the tool now first."""
        name = held.tool.name
        pinned = self._pinned.get((run, name))
        if pinned is None:
            tool = await self._pins.get(tenant, (run, name, held.tool.version))
            tool = undeclared(tenant, name) if tool is None else tool
            pinned = held if tool == held.tool else _known(tool)
            self._pinned.keep((run, name), pinned)
        return held if pinned.tool == held.tool else pinned

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Take a declaration. Raises Refusal where its roles contradict each other."""
        ArgumentReader(declaration.arguments)
        tool = await self._store.declare(tenant, name, declaration)
        return self._keep(tool).tool

    async def get(self, tenant: TenantId, name: str) -> Tool | None:
        """Return a declared tool."""
        return (await self._store.held(tenant, [name])).get(name)

    async def all(self, tenant: TenantId) -> list[Tool]:
        """Return every declared tool, by name."""
        return await self._store.all(tenant)

    def _keep(self, tool: Tool) -> KnownTool:
        kept = self._known.get((tool.tenant, tool.name))
        known = kept[1] if kept is not None and kept[1].tool == tool else _known(tool)
        self._known.keep((tool.tenant, tool.name), (asyncio.get_running_loop().time() + FRESH_SECONDS, known))
        return known

    async def _load_tools(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Tool]:
        return await self._store.held(tenant, names)

    async def _load_pins(
        self, tenant: TenantId, wishes: Sequence[tuple[RunId, str, int]]
    ) -> Mapping[tuple[RunId, str, int], Tool]:
        pins = [Pin(run=run, tool=name, version=version) for run, name, version in wishes]
        tools = await self._store.pin(tenant, pins)
        return {wish: tool for wish, tool in zip(wishes, tools, strict=True) if tool is not None}


def _known(tool: Tool) -> KnownTool:
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
