"""A run: one execution of an agent, as the record holds it."""

import msgspec

from guard.core.effects import Instant, RunId, TenantId
from guard.core.forks import Fork
from twiceshy_contract.runs import RunState


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """`effects` counts the effects that the run began."""

    id: RunId
    tenant: TenantId
    name: str
    state: RunState
    effects: int
    started_at: Instant
    ended_at: Instant | None
    fork: Fork | None = None
    expired_at: Instant | None = None
