"""The side-effect registry as the service reads it: what a tool's calls obey."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from guard.core.arguments import ArgumentReader
from guard.core.effects import TenantId
from guard.core.tools import Tool, undeclared
from guard.ports.store import ToolStore
from guard.service.loading import Loader
from twiceshy_contract.tools import ToolDeclaration

FRESH_SECONDS: Final = 1.0
"""How long an answer of the registry is believed before it is read again."""
MAX_KNOWN: Final = 10_000
"""Names of tools that a process remembers; then it forgets all and reads anew."""


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with the reader of its arguments."""

    tool: Tool
    reader: ArgumentReader


class Registry:
    """Tools, kept for a second each, so that a change made elsewhere is obeyed a second later."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self._loader: Loader[Tool] = Loader(self._load)
        self._known: dict[tuple[TenantId, str], tuple[float, KnownTool]] = {}

    async def find(self, tenant: TenantId, name: str) -> KnownTool:
        """Return the tool, declared or with the defaults of an undeclared one."""
        now = asyncio.get_running_loop().time()
        kept = self._known.get((tenant, name))
        if kept is not None and now < kept[0]:
            return kept[1]
        tool = await self._loader.get(tenant, name)
        return self._keep(undeclared(tenant, name) if tool is None else tool)

    async def declare(self, tenant: TenantId, name: str, declaration: ToolDeclaration) -> Tool:
        """Take a declaration. Raises Refusal where its roles contradict each other."""
        ArgumentReader(declaration.arguments)
        tool = await self._store.declare(tenant, name, declaration)
        return self._keep(tool).tool

    async def get(self, tenant: TenantId, name: str) -> Tool | None:
        """Return a declared tool."""
        return (await self._store.newest(tenant, [name])).get(name)

    async def all(self, tenant: TenantId) -> list[Tool]:
        """Return every declared tool, by name."""
        return await self._store.all(tenant)

    def _keep(self, tool: Tool) -> KnownTool:
        kept = self._known.get((tool.tenant, tool.name))
        is_same = kept is not None and kept[1].tool == tool
        known = kept[1] if kept and is_same else KnownTool(tool=tool, reader=ArgumentReader(tool.declaration.arguments))
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[tool.tenant, tool.name] = (asyncio.get_running_loop().time() + FRESH_SECONDS, known)
        return known

    async def _load(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Tool]:
        return await self._store.newest(tenant, names)
