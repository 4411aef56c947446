"""Runs as the service knows them. A run's identity never changes, so it is kept; its state is the store's."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from guard.core.effects import RunId, TenantId
from guard.core.forks import Fork, LiveTool
from guard.core.runs import Run
from guard.core.template_names import OF_EFFECT, check_expression_names
from guard.ports.store import RunStore
from guard.service.loading import Loader
from guard.service.outcomes import Refused
from guard.service.recent import Recent
from twiceshy_contract.forks import ForkTerms
from twiceshy_contract.refusals import Refusal, Step
from twiceshy_contract.runs import RunState

MAX_KNOWN: Final = 100_000
"""Names of runs that a process remembers."""


class KnownRun(NamedTuple):
    """What never changes of a run: its id, and what it may do if it is a fork."""

    id: RunId
    fork: Fork | None


class Runs:
    """Opening, finding and ending runs."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._loader: Loader[str, Run] = Loader(self._open)
        self._known: Recent[tuple[TenantId, str], KnownRun] = Recent(MAX_KNOWN)

    async def identify(self, tenant: TenantId, name: str) -> KnownRun:
        """Return what never changes of a run, which is opened where it is new."""
        known = self._known.get((tenant, name))
        if known is None:
            run = await self.open(tenant, name)
            known = self._keep(run)
        return known

    async def find(self, tenant: TenantId, name: str) -> KnownRun | None:
        """Return what never changes of a run, if there is one."""
        known = self._known.get((tenant, name))
        if known is None:
            run = await self._store.get(tenant, name)
            known = None if run is None else self._keep(run)
        return known

    async def fork(self, tenant: TenantId, parent: str, name: str, terms: ForkTerms) -> Run | Refused:
        """Fork a run, or find the fork of that name and of these terms. Raises Refusal for terms that cannot be."""
        check_terms(terms)
        origin = await self._store.get(tenant, parent)
        if origin is None:
            return Refused(code="not-found", detail=f"There is no run {parent!r} to be forked.")
        if terms.at > origin.effects:
            raise Refusal(f"run {parent!r} has come to step {origin.effects}, no further", ("at",))
        fork = fork_of(origin, terms)
        run = await self._store.fork(tenant, name, fork)
        if run.fork != fork:
            what = "is no fork" if run.fork is None else "was forked from another place, or on other terms"
            return Refused(code="name-taken", detail=f"There is a run {name!r} already, and it {what}.")
        self._keep(run)
        return run

    async def open(self, tenant: TenantId, name: str) -> Run:
        """Find a run, or open it."""
        run = await self._loader.get(tenant, name)
        if run is None:
            raise LookupError(f"the store opened no run {name!r}")
        self._keep(run)
        return run

    async def get(self, tenant: TenantId, name: str) -> Run | None:
        """Find a run."""
        return await self._store.get(tenant, name)

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; an ended one is returned as it is."""
        return await self._store.end(tenant, name, state)

    async def page(
        self, tenant: TenantId, state: RunState | None, limit: int, after: str | None, parent: str | None = None
    ) -> tuple[list[Run], str | None]:
        """Return runs, or the forks of one, newest first, and the cursor of the next page."""
        if parent is None:
            return await self._store.page(tenant, state, limit, after)
        of = await self.find(tenant, parent)
        return ([], None) if of is None else await self._store.page(tenant, state, limit, after, of.id)

    def _keep(self, run: Run) -> KnownRun:
        known = KnownRun(id=run.id, fork=run.fork)
        self._known.keep((run.tenant, run.name), known)
        return known

    async def _open(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Run]:
        return {run.name: run for run in await self._store.open(tenant, names)}


def fork_of(parent: Run, terms: ForkTerms) -> Fork:
    """Return the fork of a run on these terms."""
    live = tuple(LiveTool(tool=tool.tool, when=tool.when, calls=tool.calls) for tool in terms.live)
    return Fork(parent=parent.name, parent_id=parent.id, at=terms.at, reads=terms.reads, live=live)


def check_terms(terms: ForkTerms, *place: Step) -> None:
    """Check the conditions of the tools that may really run. Raises Refusal with its place in the request."""
    for number, tool in enumerate(terms.live):
        if tool.when is not None:
            check_expression_names(tool.when, OF_EFFECT, *place, "live", number, "when")
