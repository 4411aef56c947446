"""What waits for each destination, counted along indexes, and no further than anybody would read."""

from collections import defaultdict
from typing import Final

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection

from guard.core.effects import Duration, Instant, TenantId
from guard.ports.relay import Backlog
from guard.store.sql.clock import now
from guard.store.sql.codes import DEAD, DESTINATION_STATE_CODES, PARKED, UNKNOWN, WAITING
from guard.store.sql.outbox_tables import IN_FLIGHT, IN_LANE, PENDING, STANDING, destinations, outbox
from guard.store.sql.plans import walk_indexes

REMOVED: Final = DESTINATION_STATE_CODES["removed"]
_STANDS: Final = {DEAD: "dead", UNKNOWN: "unknown", PARKED: "parked"}
_MOST: Final = 100_000
"""So many messages of a kind are counted at the most: a listing must not read a queue of millions."""


def select_backlogs(connection: Connection, of: int | None = None) -> dict[int, Backlog]:
    """Count messages by destination and state, and select the oldest that is due; 0 stands for no destination."""
    at = now(connection)
    walk_indexes(connection)
    pending = _select_pending(connection, at, of)
    in_flight = _select_in_flight(connection, of)
    standing = _select_standing(connection, of)
    return {
        destination: Backlog(
            pending=pending.get(destination, (0, at))[0],
            in_flight=in_flight.get(destination, 0),
            dead=standing[destination, DEAD],
            unknown=standing[destination, UNKNOWN],
            parked=standing[destination, PARKED],
            oldest=Duration(max(0, at - pending.get(destination, (0, at))[1])),
        )
        for destination in {*pending, *in_flight, *(destination for destination, _ in standing)}
    }


def select_undeclared(connection: Connection, tenant: TenantId) -> dict[str, Backlog]:
    """Count by name what waits for a person, for destinations that are not there: never declared, or removed."""
    is_there = sa.exists().where(
        destinations.c.tenant == tenant, destinations.c.name == outbox.c.destination, destinations.c.state != REMOVED
    )
    chosen = (outbox.c.tenant == tenant, STANDING, ~is_there.correlate(outbox))
    some = sa.select(outbox.c.destination, outbox.c.state).where(*chosen).limit(_MOST).subquery()
    statement = sa.select(some.c.destination, some.c.state, sa.func.count()).group_by(*some.c)
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for name, state, count in connection.execute(statement):
        counts[name][_STANDS[state]] = count
    return {name: replace(Backlog(), **counts[name]) for name in sorted(counts)}


def _select_pending(connection: Connection, at: Instant, of: int | None) -> dict[int, tuple[int, int]]:
    """Count what waits to be sent, without a lane and in one, and select since when the oldest is due."""
    columns = []
    for condition in (PENDING, sa.and_(IN_LANE, outbox.c.state == WAITING)):
        whose = (outbox.c.destination_id == destinations.c.id, condition)
        some = sa.select(outbox.c.due_at).where(*whose).limit(_MOST).correlate(destinations).subquery()
        columns.append(sa.select(sa.func.count()).select_from(some).scalar_subquery())
        due = sa.select(sa.func.min(some.c.due_at)).where(some.c.due_at <= at)
        columns.append(due.scalar_subquery())
    statement = sa.select(destinations.c.id, *columns)
    if of is not None:
        statement = statement.where(destinations.c.id == of)
    return {
        id_: (free + laned, min(at if due is None else due for due in (due_free, due_laned)))
        for id_, free, due_free, laned, due_laned in connection.execute(statement)
        if free + laned
    }


def _select_in_flight(connection: Connection, of: int | None) -> dict[int, int]:
    """Count what is claimed or being sent."""
    statement = sa.select(outbox.c.destination_id, sa.func.count()).where(IN_FLIGHT)
    if of is not None:
        statement = statement.where(outbox.c.destination_id == of)
    return {id_ or 0: count for id_, count in connection.execute(statement.group_by(outbox.c.destination_id))}


def _select_standing(connection: Connection, of: int | None) -> defaultdict[tuple[int, int], int]:
    """Count what waits for a person; what could not be rendered waits for the destination that it names, if any."""
    named = sa.select(destinations.c.id).where(
        destinations.c.tenant == outbox.c.tenant, destinations.c.name == outbox.c.destination
    )
    has_own = outbox.c.destination_id.is_not(None)
    whose = sa.case((has_own, outbox.c.destination_id), else_=named.correlate(outbox).scalar_subquery())
    some = sa.select(whose.label("whose"), outbox.c.state).where(STANDING)
    if of is not None:
        some = some.where(whose == of)
    found = some.limit(_MOST).subquery()
    statement = sa.select(found.c.whose, found.c.state, sa.func.count()).group_by(*found.c)
    counts = {(id_ or 0, state): count for id_, state, count in connection.execute(statement)}
    return defaultdict(int, counts)
