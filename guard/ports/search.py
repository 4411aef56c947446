"""What the service needs of a database to find runs and calls again, by what is indexed of them."""

from typing import Protocol

import msgspec

from guard.core.effects import Instant, RunId, TenantId
from twiceshy_contract.events import EventKind, OutcomeKind
from twiceshy_contract.runs import Fact, RunState


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a listing shows: those of which all holds. `after` is the last page's cursor, opaque to all but it.

    `fork_of` is the run that they are forks of, `child_of` the name of the run that started them.
    """

    state: RunState | None = None
    fork_of: RunId | None = None
    child_of: str | None = None
    workflow: str | None = None
    reference: str | None = None
    tags: tuple[str, ...] = ()
    facts: tuple[tuple[str, Fact], ...] = ()
    limit: int = 50
    after: str | None = None


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls a search shows: those of which all holds. One of `name`, `run` and `workflow` is said.

    `prefix` and `equals` are about the value of `argument`, byte for byte; `since` is when a call was stored.
    """

    name: str | None = None
    kind: EventKind | None = None
    argument: str | None = None
    prefix: str | None = None
    equals: str | None = None
    empty: bool | None = None
    outcome: OutcomeKind | None = None
    run: RunId | None = None
    workflow: str | None = None
    since: Instant | None = None
    limit: int = 50
    after: str | None = None


class FoundCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a run, what it was given, and how it ended (None: not yet). `intent` is its event's JSON text."""

    run: str
    seq: int
    kind: EventKind
    name: str
    at: int
    intent: bytes
    outcome: OutcomeKind | None
    empty: bool | None


class SearchStore(Protocol):
    """The logs of all runs."""

    async def calls(self, tenant: TenantId, chosen: CallFilter) -> tuple[list[FoundCall], str | None]:
        """Return calls, those of the newest runs first and the newest of a run first, and the next page's cursor.

        Raises ValueError for a foreign cursor.
        """
