"""The history's room: on PostgreSQL a partition a day, made ahead and dropped as a whole; else rows, in small batches.

Nothing here waits long for a lock that others would then wait behind: what cannot be had at once is left to next time.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import SECOND, Duration, Instant
from guard.ports.store import StatementFailed, StoreUnavailable
from guard.store.sql.clock import now
from guard.store.sql.database import Database
from guard.store.sql.outbox_tables import mails, outbox, outbox_history, outbox_tries

_DAY: Final = 86_400 * SECOND
_AHEAD: Final = 3
_AT_ONCE: Final = 1000
_COUNTED: Final = 1_000_000
"""Of a day that is dropped as a whole, so many rows are counted at the most."""
_PREFIX: Final = "outbox_history_"
_rest: Final = sa.table("outbox_history_rest", sa.column("settled_at"), sa.column("id"))
"""What is of a day that had no partition."""


async def tidy(database: Database, kept: Duration) -> int:
    """Drop history that is older than `kept`, and make room for what comes; return how many rows were dropped."""
    at, days = await database.read_at_once(lambda connection: (now(connection), _select_days(connection)))
    until = Instant(at - kept)
    count = 0
    if days is not None:
        count = await _turn_days(database, at, until, days)
    history = outbox_history if days is None else _rest
    for delete in (_deleting_history(history), _delete_tries, _delete_mails):
        count += await _in_batches(database, until, delete)
    return count


async def _turn_days(database: Database, at: Instant, until: Instant, days: Sequence[int]) -> int:
    """Make the days that come, unless there are rows of them already; drop those that are wholly past."""
    count = 0
    for day in range(at // _DAY, at // _DAY + _AHEAD + 1):
        if day not in days:
            with suppress(StatementFailed, StoreUnavailable):
                await database.write(_creating(day))
    for day in days:
        if (day + 1) * _DAY <= until:
            with suppress(StoreUnavailable):
                count += await database.write(_dropping(day))
    return count


async def _in_batches(database: Database, until: Instant, delete: Callable[[Connection, Instant], int]) -> int:
    count, went = 0, _AT_ONCE
    while went == _AT_ONCE:
        went = await database.write(lambda connection, _at: delete(connection, until))
        count += went
    return count


def _name(day: int) -> str:
    return _PREFIX + datetime.fromtimestamp(day * 86_400, UTC).strftime("%Y%m%d")


def _select_days(connection: Connection) -> list[int] | None:
    """Select the days since 1970 that have a partition; None where there are no partitions."""
    if connection.dialect.name != "postgresql":
        return None
    names = connection.execute(
        sa.text("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'outbox_history'::regclass")
    ).scalars()
    written = [name.removeprefix(_PREFIX) for name in names]
    return sorted(
        int(datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).timestamp()) // 86_400
        for text in written
        if text.isdigit()
    )


def _creating(day: int) -> Callable[[Connection, Instant], None]:
    return lambda connection, _at: _create_day(connection, day)


def _dropping(day: int) -> Callable[[Connection, Instant], int]:
    return lambda connection, _at: _drop_day(connection, day)


def _create_day(connection: Connection, day: int) -> None:
    """Add the partition of a day. Fails where rows of it are among the rest."""
    name = _name(day)
    _wait_little(connection)
    connection.execute(sa.text(f"CREATE TABLE {name} (LIKE outbox_history INCLUDING DEFAULTS)"))
    bounds = f"FOR VALUES FROM ({day * _DAY}) TO ({(day + 1) * _DAY})"
    connection.execute(sa.text(f"ALTER TABLE outbox_history ATTACH PARTITION {name} {bounds}"))


def _drop_day(connection: Connection, day: int) -> int:
    """Remove the partition of a day; return how many rows it had."""
    name = _name(day)
    _wait_little(connection)
    counted = f"SELECT count(*) FROM (SELECT FROM {name} LIMIT {_COUNTED}) AS counted"  # noqa: S608
    count = connection.execute(sa.text(counted)).scalar_one()
    connection.execute(sa.text(f"DROP TABLE {name}"))
    return int(count)


def _wait_little(connection: Connection) -> None:
    """Wait for locks no longer than others could wait behind this."""
    connection.execute(sa.text("SET LOCAL lock_timeout = '300ms'"))


def _deleting_history(table: sa.TableClause) -> Callable[[Connection, Instant], int]:
    def delete(connection: Connection, until: Instant) -> int:
        """Remove some of the messages that were over by then."""
        place: tuple[sa.ColumnElement[Any], ...] = (table.c.settled_at, table.c.id)
        some = sa.select(*place).where(table.c.settled_at < until).order_by(*place).limit(_AT_ONCE)
        return connection.execute(sa.delete(table).where(sa.tuple_(*place).in_(some))).rowcount

    return delete


def _delete_tries(connection: Connection, until: Instant) -> int:
    """Remove some of the tries that failed by then."""
    place = (outbox_tries.c.message, outbox_tries.c.epoch, outbox_tries.c.number)
    some = sa.select(*place).where(outbox_tries.c.at < until).order_by(outbox_tries.c.at).limit(_AT_ONCE)
    return connection.execute(sa.delete(outbox_tries).where(sa.tuple_(*place).in_(some))).rowcount


def _delete_mails(connection: Connection, until: Instant) -> int:
    """Remove the ids of some of the mail that was staged by then and does not wait any more."""
    waits = sa.exists().where(outbox.c.message == mails.c.message)
    some = (
        sa.select(mails.c.mail_id).where(mails.c.staged_at < until, ~waits).order_by(mails.c.staged_at).limit(_AT_ONCE)
    )
    return connection.execute(sa.delete(mails).where(mails.c.mail_id.in_(some))).rowcount
