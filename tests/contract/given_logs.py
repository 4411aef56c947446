"""Plain events and appends that the scenarios of logs start from."""

import hashlib
from collections.abc import Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guard.core.payloads import needed, read_blobs
from guard.core.recording import written
from guard.core.runs import Run
from guard.ports.events import Append, Appended, AppendResult
from guard.ports.store import Store
from tests.contract.given import TENANT, opened
from twiceshy_contract.events import Delivery, Event, EventKind, Intent, OutcomeKind

DIGEST = "ab" * 32


def intent(seq: int, name: str = "lookup", arguments: object = msgspec.UNSET, kind: EventKind = "tool_call") -> Intent:
    """Return the entry of a boundary."""
    return Intent(seq=seq, at=1_700_000_000_000_000 + seq, kind=kind, name=name, digest=DIGEST, arguments=arguments)


def delivery(seq: int, of: int, value: object = "ok", outcome: OutcomeKind = "result") -> Delivery:
    """Return the outcome of an intent."""
    return Delivery(seq=seq, at=1_700_000_000_000_000 + seq, intent=of, outcome=outcome, took=5, value=value)


def digest_of(text: str) -> str:
    """Return the digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def append(run: Run, epoch: int, *events: Event, blobs: Mapping[str, str] | None = None) -> Append:
    """Return an append; `needs` are worked out as the service does."""
    brought = blobs or {}
    texts = tuple(written(event) for event in events)
    return Append(
        tenant=run.tenant,
        run=run.id,
        epoch=epoch,
        events=texts,
        blobs={digest: text.encode() for digest, text in brought.items()},
        needs=needed(texts, read_blobs(brought)),
    )


async def one(store: Store, asked: Append) -> AppendResult:
    """Append once."""
    (result,) = await store.events.append([asked])
    return result


async def appended(store: Store, asked: Append) -> Appended:
    """Append what must be taken."""
    result = await one(store, asked)
    assert isinstance(result, Appended), result
    return result


async def recorded(store: Store, name: str = "booking-42") -> Run:
    """Open a run for writing."""
    run = await store.events.open_writer((await opened(store, name)).id)
    assert run is not None
    assert run.tenant == TENANT
    return run


async def log_of(store: Store, run: Run) -> list[Event]:
    """Read a whole log, by pages of two."""
    found: list[Event] = []
    after: int | None = 0
    while after is not None:
        page = await store.events.page(run.id, after, 2, 10**6)
        found += [msgspec.json.decode(text, type=Event) for text in page.items]
        after = page.next
    return found


async def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    """Execute a statement on a bare connection; return its rows, if it has any."""

    def work(connection: Connection) -> list[tuple[object, ...]]:
        result = connection.exec_driver_sql(statement)
        return [tuple(row) for row in result] if result.returns_rows else []

    if url.startswith("sqlite"):
        with sa.create_engine(url, poolclass=NullPool).begin() as connection:
            return work(connection)
    remote = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool)
    async with remote.begin() as held:
        return await held.run_sync(work)
