"""Finding runs and calls again: facts of runs, whenever they become known, and search over all logs."""

from collections.abc import Iterable, Mapping
from typing import Final

from guard.core.effects import Instant, RunId, TenantId
from guard.core.runs import Run
from guard.ports.run_facts import RunFactStore
from guard.ports.search import CallFilter, FoundCall, SearchStore
from guard.service.runs import Runs
from twiceshy_contract.events import EventQuery
from twiceshy_contract.facts import fact_text
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import Fact

_PLAIN: Final = ("argument", "prefix", "equals", "workflow")
_NUL: Final = "\x00"

Facts = Mapping[str, Fact]


class Search:
    """What runs are found by, and what is found."""

    def __init__(self, store: SearchStore, facts: RunFactStore, runs: Runs) -> None:
        self._store = store
        self._facts = facts
        self._runs = runs

    async def keep_facts(self, tenant: TenantId, name: str, facts: Facts) -> Run | None:
        """Keep facts of a run, whatever its state; None: there is no such run. Raises Refusal with its place."""
        for fact, value in facts.items():
            try:
                fact_text(value)
            except Refusal as refusal:
                raise refusal.under("facts", fact) from refusal
        run = await self._runs.get(tenant, name)
        if run is not None:
            await self._facts.keep(run.id, facts)
        return run

    async def facts_of(self, runs: Iterable[Run]) -> dict[RunId, dict[str, Fact]]:
        """Return the facts of runs; one without any may be missing."""
        return await self._facts.of([run.id for run in runs])

    async def calls(
        self, tenant: TenantId, asked: EventQuery, since: Instant | None
    ) -> tuple[list[FoundCall], str | None]:
        """Return calls, newest runs first, and the cursor of the next page.

        Raises Refusal with its place, and ValueError for a foreign cursor.
        """
        check_query(asked)
        run = None if asked.run is None else await self._runs.find(tenant, asked.run)
        if run is None and asked.run is not None:
            return [], None
        chosen = CallFilter(
            name=asked.name,
            kind=asked.kind,
            argument=asked.argument,
            prefix=asked.prefix,
            equals=asked.equals,
            empty=asked.empty,
            outcome=asked.outcome,
            run=None if run is None else run.id,
            workflow=asked.workflow,
            since=since,
            limit=asked.limit,
            after=asked.after,
        )
        return await self._store.calls(tenant, chosen)


def check_query(asked: EventQuery) -> None:
    """Check that an index leads to what is asked for. Raises Refusal with the parameter."""
    if asked.name is None and asked.run is None and asked.workflow is None:
        raise Refusal("name the call, or the run or workflow that it belongs to", ("name",))
    for place in ("prefix", "equals"):
        if getattr(asked, place) is not None and asked.argument is None:
            raise Refusal("of which argument? Name it by `argument`", (place,))
    if asked.prefix is not None and asked.equals is not None:
        raise Refusal("say how the argument begins, or all of it", ("prefix",))
    for place in _PLAIN:
        if _NUL in (getattr(asked, place) or ""):
            raise Refusal("this text has a character that no database holds", (place,))
