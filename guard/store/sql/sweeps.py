"""What follows when a destination is removed, or its lanes are to skip: at once for so many messages, then by sweeps.

A destination that was removed has messages for as long as others bring them back; whoever sent by the old settings may
leave a message in the way of its lane a moment after they changed. So reapers look again.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, seconds
from guard.store.sql.codes import CLAIMED, DEAD, DESTINATION_STATE_CODES, PARKED, UNKNOWN, WAITING
from guard.store.sql.destination_rows import settings_of
from guard.store.sql.outbox_tables import IN_LANE, PENDING, destinations, outbox
from guard.store.sql.plans import walk_indexes

_REMOVED: Final = DESTINATION_STATE_CODES["removed"]
_LATELY: Final = seconds(600)
"""Longer than any relay knows old settings, and than so many messages take to be found."""
_AT_ONCE: Final = 1000
_WAITS: Final = (PENDING, sa.and_(IN_LANE, outbox.c.state.in_((WAITING, CLAIMED))))
"""What waits without a lane, and in one: by the index of each."""
_STANDS_IN_LANE: Final = sa.and_(IN_LANE, outbox.c.state.in_((DEAD, UNKNOWN)))
_WAITS_NO_MORE: Final = "its destination was removed: declare it again, and redrive this"


def sweep(connection: Connection, at: Instant, limit: int) -> None:
    """Park what waits for destinations that are removed, and free lanes that are to skip since a short while."""
    rows = _select_to_sweep(connection, at)
    removed = [row.id for row in rows if row.state == _REMOVED]
    others = {row.id: settings_of(row) for row in rows if row.state != _REMOVED}
    skipping = [id_ for id_, settings in others.items() if settings is not None and settings.lanes == "skip"]
    if removed or skipping:
        walk_indexes(connection)
        park_waiting(connection, removed, limit)
        free_lanes(connection, [*removed, *skipping], limit)


def park_waiting(connection: Connection, of: Sequence[int], limit: int) -> None:
    """Park up to so many messages that wait for these destinations; those that are locked are left to the next."""
    gone = {"state": PARKED, "note": _WAITS_NO_MORE, "in_lane": False, "lease": None, "lease_until": None}
    for kind in _WAITS:
        _update(connection, _hold(connection, of, kind, limit), gone)


def free_lanes(connection: Connection, of: Sequence[int], limit: int) -> None:
    """Let up to so many messages of these destinations that cannot be delivered stand in nobody's way any more."""
    _update(connection, _hold(connection, of, _STANDS_IN_LANE, limit), {"in_lane": False})


def _select_to_sweep(connection: Connection, at: Instant) -> Sequence[sa.Row[Any]]:
    """Select destinations that are removed, and those that were declared otherwise lately."""
    has_changed = sa.and_(destinations.c.version > 1, destinations.c.declared_at > at - _LATELY)
    wanted = sa.or_(destinations.c.state == _REMOVED, has_changed)
    return connection.execute(sa.select(destinations).where(wanted)).all()


def _hold(
    connection: Connection, of: Sequence[int], kind: sa.ColumnElement[bool] | sa.TextClause, limit: int
) -> Sequence[int]:
    """Select messages of a kind that are for some destinations; hold those that nobody else holds."""
    if not of:
        return ()
    chosen = sa.select(outbox.c.id).where(outbox.c.destination_id.in_(of), kind)
    return connection.execute(chosen.limit(limit).with_for_update(skip_locked=True)).scalars().all()


def _update(connection: Connection, ids: Sequence[int], values: dict[str, Any]) -> None:
    """Write down what changed of messages that are held."""
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        connection.execute(sa.update(outbox).where(outbox.c.id.in_(some)).values(**values))
