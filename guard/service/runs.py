"""Runs as the service knows them. A run's identity never changes, so it is kept; its state is the store's."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from guard.core.effects import RunId, TenantId
from guard.core.forks import DEEPEST, Fork, LiveTool, child_of, counterpart
from guard.core.runs import Run
from guard.core.template_names import OF_EFFECT, check_expression_names
from guard.ports.search import RunFilter
from guard.ports.store import RunStore
from guard.service.loading import Loader
from guard.service.outcomes import Refused
from guard.service.recent import Recent
from twiceshy_contract.forks import ForkRequest, ForkTerms
from twiceshy_contract.refusals import Refusal, Step
from twiceshy_contract.runs import RunAbout, RunState

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

    async def fork(self, tenant: TenantId, parent: str, name: str, terms: ForkRequest) -> Run | Refused:
        """Fork a run, or find the fork of that name and of these terms. Raises Refusal for terms that cannot be."""
        check_terms(terms)
        origin = await self._store.get(tenant, parent)
        if origin is None:
            return Refused(code="not-found", detail=f"There is no run {parent!r} to be forked.")
        if terms.at > origin.effects:
            raise Refusal(f"run {parent!r} has come to step {origin.effects}, no further", ("at",))
        fork = replace(fork_of(origin, terms), event=terms.event, overrides=terms.overrides)
        run = await self._store.fork(tenant, name, fork)
        if run.fork != fork:
            what = "is no fork" if run.fork is None else f"was forked on other terms: {differing_terms(run.fork, fork)}"
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

    async def tell(self, tenant: TenantId, name: str, about: RunAbout | None, parent: str | None) -> Run | Refused:
        """Find a run, or open it as a child of its parent, and keep what it is about where that is not said yet.

        Raises Refusal for a child that lies too deep in a fork.
        """
        if about is None and parent is None:
            return await self.open(tenant, name)
        if parent is not None and await self.find(tenant, parent) is None:
            return Refused(code="not-found", detail=f"There is no run {parent!r} to be the parent of {name!r}.")
        await self._open_child(tenant, name, parent)
        run = await self._store.tell(tenant, name, about, parent)
        self._keep(run)
        if parent is not None and run.child_of != parent:
            what = "is no child of another run" if run.child_of is None else f"was started by run {run.child_of!r}"
            return Refused(code="name-taken", detail=f"There is a run {name!r} already, and it {what}.")
        return run

    async def _open_child(self, tenant: TenantId, name: str, parent: str | None) -> None:
        """Open a new run whose parent is a fork, or lies below one, as what it is then: a fork on the same terms."""
        around = None if parent is None else await self.find(tenant, parent)
        if parent is None or around is None or around.fork is None or await self.find(tenant, name) is not None:
            return
        if len(around.fork.within) >= DEEPEST:
            raise Refusal(f"{DEEPEST} runs of a fork lie around this one already, and no more may", ("parent",))
        record = await self._counterpart(tenant, name, parent, around.fork)
        await self._store.fork(tenant, name, child_of(around.id, around.fork, record), parent)

    async def _counterpart(self, tenant: TenantId, name: str, parent: str, fork: Fork) -> tuple[str, RunId] | None:
        """Find the run that the parent's record, or a record behind it, started as this child."""
        recorded: Fork | None = fork
        while recorded is not None and not recorded.is_empty:
            wanted = counterpart(name, parent, recorded.parent)
            found = None if wanted is None else await self._store.get(tenant, wanted)
            if found is not None and found.child_of == recorded.parent:
                return found.name, found.id
            behind = await self._store.get(tenant, recorded.parent)
            recorded = None if behind is None else behind.fork
        return None

    async def get(self, tenant: TenantId, name: str) -> Run | None:
        """Find a run."""
        return await self._store.get(tenant, name)

    async def end(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run; an ended one is returned as it is."""
        return await self._store.end(tenant, name, state)

    async def page(
        self, tenant: TenantId, chosen: RunFilter, parent: str | None = None
    ) -> tuple[list[Run], str | None]:
        """Return runs, or the forks of one, newest first, and the cursor of the next page. Raises ValueError."""
        if parent is None:
            return await self._store.page(tenant, chosen)
        of = await self.find(tenant, parent)
        return ([], None) if of is None else await self._store.page(tenant, replace(chosen, fork_of=of.id))

    def _keep(self, run: Run) -> KnownRun:
        known = KnownRun(id=run.id, fork=run.fork)
        self._known.keep((run.tenant, run.name), known)
        return known

    async def _open(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Run]:
        return {run.name: run for run in await self._store.open(tenant, names)}


def no_run(name: str) -> Refused:
    """Say that there is no run of a name."""
    return Refused(code="not-found", detail=f"There is no run {name!r}.")


def fork_of(parent: Run, terms: ForkTerms) -> Fork:
    """Return the fork of a run on these terms."""
    live = tuple(LiveTool(tool=tool.tool, when=tool.when, calls=tool.calls) for tool in terms.live)
    return Fork(parent=parent.name, parent_id=parent.id, at=terms.at, reads=terms.reads, live=live)


def differing_terms(kept: Fork, asked: Fork) -> str:
    """Say in which terms a fork that is there differs from one that is asked for."""
    told = {"`fork_of`": "parent", "`at`": "at", "`event`": "event", "`reads`": "reads"}
    pairs = [(word, getattr(kept, field), getattr(asked, field)) for word, field in told.items()]
    said = [f"{word} is {_told(old)} there, and {_told(new)} here" for word, old, new in pairs if old != new]
    said += [f"`{word}` differs" for word in ("overrides", "live") if getattr(kept, word) != getattr(asked, word)]
    return "; ".join(said) or "it is a child of another fork"


def _told(value: object) -> str:
    return "not said" if value is None else repr(value)


def check_terms(terms: ForkTerms, *place: Step) -> None:
    """Check the conditions of the tools that may really run. Raises Refusal with its place in the request."""
    for number, tool in enumerate(terms.live):
        if tool.when is not None:
            check_expression_names(tool.when, OF_EFFECT, *place, "live", number, "when")
