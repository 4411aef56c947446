"""Preview: how a call canonicalises and which key it names, without any effect."""

import msgspec

from guard.core.arguments import Reading
from guard.core.effects import Key, TenantId
from guard.core.keys import effect_key, slot
from guard.core.tools import Tool
from guard.service.registry import Registry
from guard.service.runs import Runs
from guard.service.understanding import read_arguments, rule_of, slot_value
from twiceshy_contract.keys import KeyRequest
from twiceshy_contract.names import KeyRule


class Previewed(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is understood. The key is None while its run is unknown."""

    key: Key | None
    rule: KeyRule
    tool: Tool
    reading: Reading


class Preview:
    """Shows what a begin would make of a call."""

    def __init__(self, registry: Registry, runs: Runs) -> None:
        self._registry = registry
        self._runs = runs

    async def __call__(self, tenant: TenantId, request: KeyRequest) -> Previewed:
        """Understand a call. Raises Refusal for what cannot be understood."""
        known = await self._registry.find(tenant, request.tool)
        rule = rule_of(request, known)
        reading = read_arguments(request.arguments, known)
        run = None if request.run is None else await self._runs.get(tenant, request.run)
        is_tenant_wide = rule == "business_key" or (rule == "once" and known.is_tenant_wide)
        key = None
        if is_tenant_wide or run is not None:
            run_id = None if run is None or is_tenant_wide else run.id
            named = slot(tenant, run_id, request.tool, rule, slot_value(request, rule, reading))
            key = effect_key(named, run_id, request.occurrence, 1)
        return Previewed(key=key, rule=rule, tool=known.tool, reading=reading)
