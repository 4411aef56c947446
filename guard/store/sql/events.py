"""The logs of runs: whoever appends to one, or opens it for writing, comes alone; its head moves by compare and set.

On PostgreSQL that is a lock of the log's own. The run's row is written last, for what begins effects of the run needs
it too, and would wait. On SQLite nobody else writes meanwhile.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, RunId, TenantId
from guard.core.runs import Run
from guard.ports.events import Append, AppendResult, LogPage, Texts
from guard.ports.salts import SaltStore
from guard.store.sql import blobs
from guard.store.sql.codes import RUN_OPEN
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.log_rows import argument_rows, event_rows
from guard.store.sql.logs import Logs, Prepared, Ruled, lock_logs, opened_logs
from guard.store.sql.recording_tables import event_arguments, events
from guard.store.sql.rows import run_of
from guard.store.sql.tables import runs

_AT_ONCE: Final = 64 * 2**10
"""Bytes of texts that are compressed where they are; more of them in a thread, for the loop has others to serve."""
_NAMED_AT_ONCE: Final = 1000
"""Digests whose addresses are worked out where they are."""


class SqlEvents:
    """The port's logs over one database."""

    def __init__(self, database: Database, salts: SaltStore) -> None:
        """Stand on a database."""
        self._database = database
        self._salts = salts

    async def open_writer(self, run: RunId) -> Run | None:
        """Give the log of an open run its next writer; return the run with that epoch, an ended one as it is."""

        def work(connection: Connection, _at: Instant) -> Run | None:
            lock_logs(connection, [run])
            _update_epoch(connection, run)
            return _select_run(connection, run)

        return await self._database.write(work)

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Append to logs, all in one transaction; answer each append in its place."""
        prepared = [await _prepared(await self._salts.of(append.tenant), append) for append in appends]
        return await self._database.write(lambda connection, at: _append(connection, at, prepared))

    async def page(self, run: RunId, after: int, limit: int, size: int) -> LogPage:
        """Return the events that come next: up to `limit`, and up to about `size` bytes, but at least one."""

        def work(connection: Connection) -> LogPage:
            sizes = _select_sizes(connection, run, after, limit + 1)
            count = min(_fitting([length for _, length in sizes], size), limit)
            if not count:
                return LogPage(items=[], next=None)
            last = sizes[count - 1][0]
            bodies = _select_bodies(connection, run, after, last)
            return LogPage(items=bodies, next=last if count < len(sizes) else None)

        return await self._database.read_at_once(work)

    async def blobs(self, tenant: TenantId, digests: Sequence[str], size: int) -> Texts:
        """Return texts in the order that is asked: up to about `size` bytes, but at least one."""
        salt = await self._salts.of(tenant)
        places = blobs.addresses_of(salt, digests)

        def work(connection: Connection) -> tuple[dict[str, bytes], tuple[str, ...]]:
            sizes = blobs.select_sizes(connection, tenant, list(places.values()))
            kept = [digest for digest, address in places.items() if address in sizes]
            count = _fitting([sizes[places[digest]] for digest in kept], size)
            bodies = blobs.select_bodies(connection, tenant, [places[digest] for digest in kept[:count]])
            return {digest: bodies[places[digest]] for digest in kept[:count]}, tuple(kept[count:])

        bodies, left = await self._database.read_at_once(work)
        if sum(map(len, bodies.values())) > _AT_ONCE:
            return Texts(texts=await asyncio.to_thread(blobs.unpacked, bodies), left=left)
        return Texts(texts=blobs.unpacked(bodies), left=left)


async def _prepared(salt: bytes, append: Append) -> Prepared:
    """Work out what the transaction need not; much of it in a thread."""
    if append.size > _AT_ONCE or len(append.needs) > _NAMED_AT_ONCE:
        return await asyncio.to_thread(_prepare, salt, append)
    return _prepare(salt, append)


def _prepare(salt: bytes, append: Append) -> Prepared:
    needs = blobs.addresses_of(salt, append.needs)
    return Prepared(append=append, packed=blobs.packed(salt, append.blobs), needs=needs)


def _append(connection: Connection, at: Instant, prepared: Sequence[Prepared]) -> list[AppendResult]:
    logs = opened_logs(connection, prepared)
    ruled = [logs.rule(each) for each in prepared]
    _write(connection, at, logs, ruled)
    return [each.result for each in ruled]


def _write(connection: Connection, at: Instant, logs: Logs, ruled: Sequence[Ruled]) -> None:
    blobs.insert_blobs(connection, at, logs.brought)
    _insert(connection, events, [row for each in ruled for row in event_rows(each.append, each.added, at)])
    _insert(connection, event_arguments, [row for each in ruled for row in argument_rows(each.append, each.added)])
    for run in sorted(logs.moved):
        _update_head(connection, run, logs.moved[run], logs.heads[run])


def _fitting(sizes: Sequence[int], bound: int) -> int:
    """Return how many of these go together: not more than the bound, but at least one."""
    total = 0
    for count, size in enumerate(sizes):
        total += size
        if total > bound and count:
            return count
    return len(sizes)


def _insert(connection: Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write down what is new of logs that are locked."""
    if rows:
        connection.execute(sa.insert(table), rows)


def _update_epoch(connection: Connection, run: RunId) -> None:
    """Give the log of a run that is open its next writer."""
    connection.execute(sa.update(runs).where(runs.c.id == run, runs.c.state == RUN_OPEN).values(epoch=runs.c.epoch + 1))


def _update_head(connection: Connection, run: RunId, seen: int, head: int) -> None:
    """Move the head of a log from where it was seen. Raises Contended where it is elsewhere."""
    is_as_seen = (runs.c.id == run, runs.c.events == seen, runs.c.expired_at.is_(None))
    moved = connection.execute(sa.update(runs).where(*is_as_seen).values(events=head))
    if moved.rowcount != 1:
        raise Contended("Another process wrote the same log at the same moment.")


def _select_run(connection: Connection, run: RunId) -> Run | None:
    """Select a run by its id."""
    row = connection.execute(sa.select(runs).where(runs.c.id == run)).one_or_none()
    return None if row is None else run_of(row)


def _select_sizes(connection: Connection, run: RunId, after: int, limit: int) -> list[tuple[int, int]]:
    """Select numbers and lengths of the events that come next; a run that has expired has none."""
    statement = (
        sa.select(events.c.seq, sa.func.length(events.c.body))
        .join(runs, runs.c.id == events.c.run_id)
        .where(events.c.run_id == run, events.c.seq > after, runs.c.expired_at.is_(None))
    )
    return [(seq, size) for seq, size in connection.execute(statement.order_by(events.c.seq).limit(limit))]


def _select_bodies(connection: Connection, run: RunId, after: int, last: int) -> list[bytes]:
    """Select the texts of the events behind one, up to another."""
    statement = sa.select(events.c.body).where(events.c.run_id == run, events.c.seq > after, events.c.seq <= last)
    return list(connection.execute(statement.order_by(events.c.seq)).scalars())
