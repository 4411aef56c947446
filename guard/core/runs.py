"""A run: one execution of an agent, as the record holds it."""

import msgspec

from guard.core.effects import Instant, RunId, TenantId
from guard.core.forks import Fork
from twiceshy_contract.runs import RunAbout, RunState


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """`effects` counts the effects that the run began, `events` those of its log, `epoch` the writers of that.

    `child_of` is the run that started it, by its name.
    """

    id: RunId
    tenant: TenantId
    name: str
    state: RunState
    effects: int
    started_at: Instant
    ended_at: Instant | None
    fork: Fork | None = None
    expired_at: Instant | None = None
    epoch: int = 0
    events: int = 0
    about: RunAbout | None = None
    child_of: str | None = None
