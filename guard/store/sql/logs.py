"""Logs of runs while a batch of appends is ruled on: read at once for all, then moved on by one after the other."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import RunId, TenantId
from guard.core.recording import Addition, Boundary, Expired, Log, Unfounded, Written, entered, rule
from guard.ports.events import Append, Appended, AppendResult, BlobsMissing
from guard.store.sql.blobs import Packed, select_kept
from guard.store.sql.codes import EVENT_KINDS
from guard.store.sql.recording_tables import events
from guard.store.sql.tables import runs
from twiceshy_contract.events import Delivery

_LOWER_HALF: Final = 8


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """An append with what is worked out before its transaction: its texts as stored, and the addresses it needs."""

    append: Append
    packed: Sequence[Packed]
    needs: Mapping[str, bytes]


class Ruled(msgspec.Struct, frozen=True, kw_only=True):
    """What one append came to: the events that are to be written, each with its boundary."""

    append: Append
    result: AppendResult
    added: Sequence[tuple[Written, Boundary]] = ()


class _OpenLog:
    """One run's log, as far as the batch asks for it."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.digests: dict[int, bytes] = {}
        self.intents: dict[int, Boundary] = {}
        self.delivered: set[int] = set()

    def go_on(self, events_: Iterable[tuple[Written, Boundary]]) -> None:
        for event, boundary in events_:
            self.log = msgspec.structs.replace(self.log, head=event.seq)
            self.digests[event.seq] = event.imprint
            if isinstance(event.event, Delivery):
                self.delivered.add(event.event.intent)
            else:
                self.intents[event.seq] = boundary


class Logs:
    """The logs of a batch. `brought` are the texts to be kept, `moved` the heads from which logs went on."""

    def __init__(self, logs: Mapping[RunId, _OpenLog], kept: set[tuple[TenantId, bytes]]) -> None:
        self._logs = logs
        self._kept = kept
        self.brought: dict[tuple[TenantId, bytes], Packed] = {}
        self.moved: dict[RunId, int] = {}

    @property
    def heads(self) -> dict[RunId, int]:
        """Where each log ends by now."""
        return {run: log.log.head for run, log in self._logs.items()}

    def rule(self, prepared: Prepared) -> Ruled:
        """Rule on an append; where it is taken, its log goes on."""
        append = prepared.append
        log = self._logs.get(append.run)
        if log is None:
            return Ruled(append=append, result=Expired())
        verdict = rule(log.log, append.epoch, append.events, log.digests)
        if not isinstance(verdict, Addition):
            return Ruled(append=append, result=verdict)
        boundaries = entered(verdict.events, log.intents, log.delivered)
        if isinstance(boundaries, Unfounded):
            return Ruled(append=append, result=boundaries)
        missing = [digest for digest, place in prepared.needs.items() if (append.tenant, place) not in self._kept]
        if missing:
            return Ruled(append=append, result=BlobsMissing(digests=tuple(sorted(missing))))
        added = tuple(zip(verdict.events, boundaries, strict=True))
        if added:
            self.moved.setdefault(append.run, log.log.head)
            log.go_on(added)
        for blob in prepared.packed:
            self.brought[append.tenant, blob.address] = blob
            self._kept.add((append.tenant, blob.address))
        return Ruled(append=append, result=Appended(head=log.log.head, added=len(added)), added=added)


def lock_logs(connection: Connection, of: Iterable[RunId]) -> None:
    """Let those who write one log come one after the other, in the order of their ids; on SQLite they do anyway."""
    if connection.dialect.name == "postgresql":
        keys = sorted({int.from_bytes(run.bytes[_LOWER_HALF:], "big", signed=True) for run in of})
        wanted = sa.func.unnest(sa.literal(keys, sa.ARRAY(sa.BigInteger))).table_valued("key").render_derived()
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(wanted.c.key)))


def opened_logs(connection: Connection, prepared: Sequence[Prepared]) -> Logs:
    """Lock the logs of the appends, and read what decides about these."""
    appends = [each.append for each in prepared]
    ids = {append.run for append in appends}
    lock_logs(connection, ids)
    logs = {run: _OpenLog(log) for run, log in _select_logs(connection, ids).items()}
    wanted, named = _wanted(appends, logs)
    for run, seq, digest, intent, boundary in select_numbered(connection, wanted):
        logs[run].digests[seq] = digest
        if intent is None:
            logs[run].intents[seq] = boundary
    for deliverer, delivered in select_delivered(connection, named):
        logs[deliverer].delivered.add(delivered)
    needs: defaultdict[TenantId, set[bytes]] = defaultdict(set)
    for each in prepared:
        needs[each.append.tenant].update(each.needs.values())
    kept = {(tenant, address) for tenant in needs for address in select_kept(connection, tenant, needs[tenant])}
    return Logs(logs, kept)


Numbers = Mapping[RunId, set[int]]


def _wanted(appends: Iterable[Append], logs: Mapping[RunId, _OpenLog]) -> tuple[Numbers, Numbers]:
    """Return the events to look at: those that are sent again, and the intents of deliveries; and those alone."""
    wanted: defaultdict[RunId, set[int]] = defaultdict(set)
    named: defaultdict[RunId, set[int]] = defaultdict(set)
    for append in appends:
        head = logs[append.run].log.head if append.run in logs else 0
        for event in append.events:
            if event.seq <= head:
                wanted[append.run].add(event.seq)
            elif isinstance(event.event, Delivery) and event.event.intent <= head:
                wanted[append.run].add(event.event.intent)
                named[append.run].add(event.event.intent)
    return wanted, named


def _select_logs(connection: Connection, of: Iterable[RunId]) -> dict[RunId, Log]:
    """Select where logs end, and whose they are."""
    statement = sa.select(runs.c.id, runs.c.events, runs.c.epoch, runs.c.expired_at).where(runs.c.id.in_(list(of)))
    return {
        RunId(row.id): Log(head=row.events, epoch=row.epoch, is_expired=row.expired_at is not None)
        for row in connection.execute(statement)
    }


def select_numbered(connection: Connection, wanted: Numbers) -> list[tuple[RunId, int, bytes, int | None, Boundary]]:
    """Select the events that have these numbers."""
    if not wanted:
        return []
    columns = (events.c.run_id, events.c.seq, events.c.digest, events.c.intent, events.c.kind, events.c.name)
    statement = sa.select(*columns).where(_any_of(events.c.seq, wanted))
    return [
        (RunId(row.run_id), row.seq, row.digest, row.intent, Boundary(EVENT_KINDS[row.kind], row.name))
        for row in connection.execute(statement)
    ]


def select_delivered(connection: Connection, named: Numbers) -> list[tuple[RunId, int]]:
    """Select those intents of which the outcome was delivered."""
    if not named:
        return []
    statement = sa.select(events.c.run_id, events.c.intent).where(_any_of(events.c.intent, named))
    return [(RunId(row.run_id), row.intent) for row in connection.execute(statement)]


def _any_of(column: sa.ColumnElement[int] | sa.ColumnElement[int | None], wanted: Numbers) -> sa.ColumnElement[bool]:
    return sa.or_(*(sa.and_(events.c.run_id == run, column.in_(sorted(wanted[run]))) for run in sorted(wanted)))
