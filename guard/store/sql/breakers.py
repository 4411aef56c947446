"""Breakers in their destinations' rows: moved by what relays report, under the lock of the row."""

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.breakers import Breaker, Tally, told
from guard.core.effects import Instant
from guard.ports.relay import Heard
from guard.store.sql.codes import BREAKER_CODES, BREAKERS, DESTINATION_STATE_CODES
from guard.store.sql.outbox_tables import destinations

_ACTIVE: Final = DESTINATION_STATE_CODES["active"]
_DISABLED: Final = DESTINATION_STATE_CODES["disabled"]


def breaker_of(row: sa.Row[Any]) -> Breaker:
    """Return the breaker of a destination's row."""
    return Breaker(
        state=BREAKERS[row.breaker],
        open_until=row.open_until,
        held_until=row.held_until,
        allowance=row.allowance,
        openings=row.openings,
        window_at=Instant(row.window_at),
        good=row.window_good,
        bad=row.window_bad,
        unreachable=row.unreachable,
    )


def breaker_row(breaker: Breaker) -> dict[str, Any]:
    """Return a breaker as columns of its destination's row."""
    return {
        "breaker": BREAKER_CODES[breaker.state],
        "open_until": breaker.open_until,
        "held_until": breaker.held_until,
        "allowance": breaker.allowance,
        "openings": breaker.openings,
        "window_at": breaker.window_at,
        "window_good": breaker.good,
        "window_bad": breaker.bad,
        "unreachable": breaker.unreachable,
    }


def report(connection: Connection, at: Instant, heard: Sequence[Heard]) -> None:
    """Move the breakers of destinations by how they did; one that is gone takes nothing until a person says so."""
    said = {one.destination: one for one in heard}
    for row in _hold(connection, sorted(said)):
        one = said[row.id]
        before = breaker_of(row)
        tally = Tally(good=one.good, bad=one.bad, unreachable=one.unreachable, held_for=one.held_for)
        after = told(before, tally, at, random.random())  # noqa: S311
        values = {} if after == before else breaker_row(after)
        is_alone = not (one.good or one.bad or one.unreachable)  # a relay could not even try, and says why
        if one.note is not None and (is_alone or after.state == "open" != before.state):
            values["note"] = one.note
        if one.is_gone and row.state == _ACTIVE:
            values |= {"state": _DISABLED, "note": one.note, "changed_at": at}
        if values:
            _update(connection, row.id, values)


def _hold(connection: Connection, ids: Sequence[int]) -> Sequence[sa.Row[Any]]:
    """Select destinations; hold them, in the order of their ids."""
    statement = sa.select(destinations).where(destinations.c.id.in_(ids)).order_by(destinations.c.id)
    return connection.execute(statement.with_for_update()).all()


def _update(connection: Connection, id_: int, values: Mapping[str, Any]) -> None:
    """Write down what changed of a destination."""
    connection.execute(sa.update(destinations).where(destinations.c.id == id_).values(**values))
