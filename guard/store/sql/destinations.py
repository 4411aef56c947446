"""Destinations: where messages may go, one row each, with the breaker and the rate that all relays share."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.breakers import closed
from guard.core.effects import Instant, TenantId
from guard.core.outbox import Place
from guard.ports.outbox import DestinationRecord
from guard.ports.relay import Backlog, Way
from guard.store.sql.backlogs import REMOVED, select_backlogs, select_undeclared
from guard.store.sql.breakers import breaker_of, breaker_row
from guard.store.sql.clock import now
from guard.store.sql.codes import BREAKERS, DESTINATION_STATE_CODES, DESTINATION_STATES
from guard.store.sql.database import Database
from guard.store.sql.destination_rows import is_readable, place_of, places_of, settings_of, settings_row
from guard.store.sql.outbox_tables import destinations
from guard.store.sql.plans import walk_indexes
from guard.store.sql.sweeps import free_lanes, park_waiting
from twiceshy_contract.destinations import Destination, DestinationState

ACTIVE: Final = DESTINATION_STATE_CODES["active"]
_DISABLED: Final = DESTINATION_STATE_CODES["disabled"]
_PAUSED: Final = DESTINATION_STATE_CODES["paused"]
_AT_ONCE: Final = 10_000
"""How many messages follow in the transaction that changes their destination; the rest does in sweeps."""


class SqlDestinations:
    """The port's destinations over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def named(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Place]:
        """Return those of these destinations that are there, removed ones too."""
        if not names:
            return {}
        found = await self._database.read(lambda connection: _select_named(connection, tenant, names))
        return {row.name: place_of(row) for row in found}

    async def all(self, tenant: TenantId) -> list[DestinationRecord]:
        """Return all destinations that are not removed and that this version can read, by name."""

        def work(connection: Connection) -> list[DestinationRecord]:
            at = now(connection)
            rows = [row for row in _select_all(connection, tenant) if is_readable(row)]
            backlogs = select_backlogs(connection)
            return [_record(row, backlogs.get(row.id, Backlog()), at) for row in rows]

        return await self._database.read_at_once(work)

    async def undeclared(self, tenant: TenantId) -> Mapping[str, Backlog]:
        """Return what waits for a person by the names of destinations that are not there, or are removed."""
        return await self._database.read(lambda connection: select_undeclared(connection, tenant))

    async def get(self, tenant: TenantId, name: str) -> DestinationRecord | None:
        """Return a destination; a removed one too."""

        def work(connection: Connection) -> DestinationRecord | None:
            at = now(connection)
            return _one(connection, tenant, name, at)

        return await self._database.read_at_once(work)

    async def declare(self, tenant: TenantId, name: str, settings: Destination) -> tuple[DestinationRecord, bool]:
        """Declare a destination; equal settings are no new version. Say whether it changed.

        A removed one is active again, and so is a disabled one with other settings: what was gone is not what is named.
        """

        def work(connection: Connection, at: Instant) -> tuple[DestinationRecord, bool]:
            changed = _insert(connection, at, (tenant, name), settings) or _change(
                connection, at, (tenant, name), settings
            )
            record = _one(connection, tenant, name, at)
            if record is None:
                raise LookupError(f"the destination {name} was not kept")
            return record, changed

        return await self._database.write(work)

    async def put(self, tenant: TenantId, name: str, state: DestinationState, note: str) -> DestinationRecord | None:
        """Pause, resume (which closes the breaker), or remove, which parks what waits for it; None: there is none."""

        def work(connection: Connection, at: Instant) -> DestinationRecord | None:
            row = _hold(connection, tenant, name)
            if row is None:
                return None
            values: dict[str, Any] = {"state": DESTINATION_STATE_CODES[state], "note": note, "changed_at": at}
            if state == "active":
                values |= breaker_row(closed(at))
            _update(connection, row.id, values)
            if state == "removed":
                walk_indexes(connection)
                park_waiting(connection, [row.id], _AT_ONCE)
                free_lanes(connection, [row.id], _AT_ONCE)
            return _one(connection, tenant, name, at)

        return await self._database.write(work)

    async def subscribed(self, tenant: TenantId, event: str) -> list[Place]:
        """Return the active and paused destinations that ask for one of the service's own events."""
        rows = await self._database.read(lambda connection: _select_all(connection, tenant))
        places = places_of(row for row in rows if row.state != _DISABLED)
        return [place for place in places if event in place.settings.events]


def select_ways(connection: Connection) -> tuple[list[Way], list[str]]:
    """Select all destinations that are not removed, as relays know them; and the names of those that none can read."""
    at = now(connection)
    rows = connection.execute(
        sa.select(destinations).where(destinations.c.state != REMOVED).order_by(destinations.c.id)
    )
    read = [(row, settings_of(row)) for row in rows]
    ways = [_way(row, settings, at) for row, settings in read if settings is not None]
    return ways, [row.name for row, settings in read if settings is None]


def _way(row: sa.Row[Any], settings: Destination, at: Instant) -> Way:
    return Way(
        id=row.id,
        tenant=TenantId(row.tenant),
        name=row.name,
        version=row.version,
        state=DESTINATION_STATES[row.state],
        settings=settings,
        breaker=BREAKERS[row.breaker],
        is_open=row.state == ACTIVE and not breaker_of(row).is_open(at),
    )


def _record(row: sa.Row[Any], backlog: Backlog, at: Instant) -> DestinationRecord:
    return DestinationRecord(
        place=place_of(row),
        version=row.version,
        declared_at=Instant(row.declared_at),
        note=row.note,
        breaker=BREAKERS[row.breaker],
        open_until=row.open_until,
        held_until=row.held_until,
        allowance=row.allowance,
        backlog=backlog,
        at=at,
    )


def _one(connection: Connection, tenant: TenantId, name: str, at: Instant) -> DestinationRecord | None:
    rows = _select_named(connection, tenant, [name])
    if not rows:
        return None
    return _record(rows[0], select_backlogs(connection, rows[0].id).get(rows[0].id, Backlog()), at)


def _insert(connection: Connection, at: Instant, whose: tuple[TenantId, str], settings: Destination) -> bool:
    """Add a destination unless there is one of that name; say whether it was added."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    values = {
        "tenant": whose[0],
        "name": whose[1],
        "version": 1,
        "declared_at": at,
        "settings": settings_row(settings),
        "state": ACTIVE,
        "changed_at": at,
        "refilled_at": at,
        **_rate_row(settings),
        **breaker_row(closed(at)),
    }
    statement = dialect.insert(destinations).values(**values).on_conflict_do_nothing(index_elements=("tenant", "name"))
    return bool(connection.execute(statement).rowcount)


def _change(connection: Connection, at: Instant, whose: tuple[TenantId, str], settings: Destination) -> bool:
    row = _hold(connection, *whose)
    if row is None:
        raise LookupError(f"the destination {whose[1]} is gone")
    before, state = settings_of(row), DESTINATION_STATES[row.state]
    values: dict[str, Any] = {}
    if before != settings:
        values = {"version": row.version + 1, "declared_at": at, "settings": settings_row(settings)}
        if before is None or settings.rate_per_second != before.rate_per_second:
            values |= {**_rate_row(settings), "refilled_at": at}
        if settings.lanes == "skip":
            walk_indexes(connection)
            free_lanes(connection, [row.id], _AT_ONCE)
    if state == "removed" or (state == "disabled" and values):
        values |= {"state": ACTIVE, "note": None, "changed_at": at, **breaker_row(closed(at))}
    if values:
        _update(connection, row.id, values)
    return bool(values)


def _rate_row(settings: Destination) -> dict[str, float | None]:
    rate = settings.rate_per_second
    return {"rate": rate, "tokens": 1.0 if rate is None else max(1.0, rate)}


def _select_named(connection: Connection, tenant: TenantId, names: Sequence[str]) -> Sequence[sa.Row[Any]]:
    """Select the destinations of these names."""
    chosen = (destinations.c.tenant == tenant, destinations.c.name.in_(names))
    return connection.execute(sa.select(destinations).where(*chosen)).all()


def _select_all(connection: Connection, tenant: TenantId) -> Sequence[sa.Row[Any]]:
    """Select the destinations that are not removed, by name."""
    chosen = (destinations.c.tenant == tenant, destinations.c.state != REMOVED)
    return connection.execute(sa.select(destinations).where(*chosen).order_by(destinations.c.name)).all()


def _hold(connection: Connection, tenant: TenantId, name: str) -> sa.Row[Any] | None:
    """Select the destination of a name; hold it."""
    chosen = (destinations.c.tenant == tenant, destinations.c.name == name)
    return connection.execute(sa.select(destinations).where(*chosen).with_for_update()).first()


def _update(connection: Connection, id_: int, values: Mapping[str, Any]) -> None:
    """Write down what changed of a destination."""
    connection.execute(sa.update(destinations).where(destinations.c.id == id_).values(**values))
