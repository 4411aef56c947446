"""Recording as it is asked for: a log is opened for writing, appended to, and read."""

import asyncio
from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from guard.core.effects import TenantId
from guard.core.payloads import needed, read_blobs
from guard.core.recording import Diverged, Expired, Gap, TakenOver, Unfounded, check_order
from guard.core.redacted_events import Secrecy, left_out, written_redacted
from guard.core.runs import Run
from guard.core.tags import check_tags, has_tags
from guard.ports.events import Append, Appended, BlobsMissing, EventStore, LogPage, Texts
from guard.service.appends import Appends
from guard.service.measures import Measures
from guard.service.outcomes import Refused
from guard.service.redactions import Redactions
from guard.service.runs import KnownRun, Runs, no_run
from guard.service.writers import taken_over
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.events import MAX_BLOB_BYTES, MAX_EVENT_BYTES, AppendRequest
from twiceshy_contract.problems import ProblemCode
from twiceshy_contract.refusals import Refusal

PAGE_BYTES: Final = 4 * 2**20
"""From so many bytes on an answer is left to the next one."""
_CHECKED_AT_ONCE: Final = 2
"""Large appends whose events are checked at the same time, each in a thread."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The log goes on at `next_seq`; `added` events of it are new."""

    next_seq: int
    added: int


class Recording:
    """The logs of runs."""

    def __init__(self, store: EventStore, runs: Runs, redactions: Redactions, measures: Measures) -> None:
        self._store = store
        self._runs = runs
        self._redactions = redactions
        self._appends = Appends(store)
        self._checks = asyncio.Semaphore(_CHECKED_AT_ONCE)
        self._measures = measures

    async def open(self, run: Run) -> Run | Refused:
        """Make the caller the one writer of a run's log."""
        opened = await self._store.open_writer(run.id)
        if opened is None:
            raise LookupError(f"run {run.name!r} is gone")
        if opened.state != "open":
            return Refused(
                code="run-finished", detail=f"Run {run.name!r} is {opened.state}, and its log takes no new writer."
            )
        return opened

    async def append(
        self, tenant: TenantId, name: str, request: AppendRequest, *, is_large: bool = True
    ) -> Kept | Refused:
        """Append to a run's log; what `is_large` is checked in a thread, for the loop has others to serve.

        Raises Refusal with its place, StoreUnavailable.
        """
        check_order(request.events)
        run = await self._runs.find(tenant, name)
        if run is None:
            return no_run(name)
        secrecy = await self._redactions.of(tenant, run.id, request.events)
        if is_large:
            async with self._checks:
                append = await asyncio.to_thread(_append, tenant, run, request, secrecy)
        else:
            append = _append(tenant, run, request, secrecy)
        return append if isinstance(append, Refused) else await self._do(append, name, request)

    async def bring(self, tenant: TenantId, request: BeginRequest, *, is_large: bool = False) -> Kept | Refused:
        """Append what a begin brings, and tell an older writer that it is one. Raises Refusal, StoreUnavailable."""
        if request.run is None or request.epoch is None:
            raise Refusal("an epoch is that of a run's writer: name the run", ("epoch",))
        brought = AppendRequest(epoch=request.epoch, events=request.events)
        return await self.append(tenant, request.run, brought, is_large=is_large)

    async def page(self, tenant: TenantId, name: str, after: int, limit: int) -> LogPage | Refused:
        """Return the events of a run behind one, up to so many."""
        run = await self._runs.find(tenant, name)
        return no_run(name) if run is None else await self._store.page(run.id, after, limit, PAGE_BYTES)

    async def blobs(self, tenant: TenantId, digests: Sequence[str]) -> Texts:
        """Return texts by their digests."""
        return await self._store.blobs(tenant, digests, PAGE_BYTES)

    async def close(self) -> None:
        """Let what was asked for be written."""
        await self._appends.close()

    async def _do(self, append: Append, name: str, request: AppendRequest) -> Kept | Refused:
        result = await self._appends.do(append)
        if isinstance(result, Unfounded):
            self._measures.appended("invalid-request", 0)
            first = request.events[0].seq
            raise Refusal(result.reason, ("events", result.seq - first, "intent"))
        if isinstance(result, Appended):
            self._measures.appended("appended", result.added)
            return Kept(next_seq=result.head + 1, added=result.added)
        refused = _refused(result, name, append)
        self._measures.appended(refused.code, 0)
        return refused


def _append(tenant: TenantId, run: KnownRun, request: AppendRequest, secrecy: Secrecy) -> Append | Refused:
    """Check and write down what is brought, but not what is redacted. Raises Refusal with its place."""
    blobs = {digest: text.encode() for digest, text in request.blobs.items()}
    larger = tuple(f"/blobs/{digest}" for digest, text in blobs.items() if len(text) > MAX_BLOB_BYTES)
    if larger:
        detail = f"A blob has at most {MAX_BLOB_BYTES} bytes; {len(larger)} of these have more."
        return Refused(code="too-large", detail=detail, paths=larger)
    events = tuple(written_redacted(event, secrecy) for event in request.events)
    larger = tuple(f"/events/{at}" for at, event in enumerate(events) if len(event.body) > MAX_EVENT_BYTES)
    if larger:
        detail = (
            f"An event has at most {MAX_EVENT_BYTES} bytes beside the values that it names as blobs; {len(larger)} of "
            "these have more."
        )
        return Refused(code="too-large", detail=detail, paths=larger)
    values = read_blobs(request.blobs)
    for digest in left_out(request.events, events, values):
        del values[digest], blobs[digest]
    check_tags(events, {digest: blob.value for digest, blob in values.items() if has_tags(blobs[digest])})
    needs = needed(events, values)
    return Append(tenant=tenant, run=run.id, epoch=request.epoch, events=events, blobs=blobs, needs=needs)


def _refused(result: Diverged | Gap | TakenOver | Expired | BlobsMissing, name: str, append: Append) -> Refused:
    """Say why nothing was appended."""
    code: ProblemCode
    paths: tuple[str, ...] = ()
    match result:
        case Diverged():
            code = "recording-diverged"
            detail = f"Event {result.seq} of run {name!r} is kept, and it is not the one that was sent."
        case Gap():
            code = "recording-gap"
            detail = f"The log of run {name!r} ends with event {result.head}; what was sent goes on with {result.seq}."
        case TakenOver():
            return taken_over(name, append.epoch, result.epoch)
        case Expired():
            code, detail = "run-finished", f"The log of run {name!r} was kept as long as it had to be, and is gone."
        case BlobsMissing():
            code, detail = "blobs-missing", f"{len(result.digests)} values that these events name are not kept."
            paths = result.digests
        case _:
            assert_never(result)
    return Refused(code=code, detail=detail, paths=paths)
