"""The outbox as operators see it: what waits, what is over, and their words about it.

A word about one message holds its row first, so that it is true of the message as it stands: a relay that settles it at
the same moment comes before or after. Where the word changes nothing, that is said.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, Key, TenantId
from guard.core.outbox import RAW, Staged, Standing
from guard.ports.outbox import MessageFilter, Moved, MovedAll, Redrive
from guard.store.sql.backlogs import REMOVED
from guard.store.sql.codes import CLAIMED, MESSAGE_STATE_CODES, PARKED, SENDING, WAITING
from guard.store.sql.cursors import AfterMessage, cursor_of
from guard.store.sql.database import Database
from guard.store.sql.outbox_pages import (
    hold_live,
    last_of,
    select_live,
    select_over,
    select_page,
    select_staged,
    select_tries,
)
from guard.store.sql.outbox_rows import line_of, standing_of
from guard.store.sql.outbox_tables import STANDING, destinations, outbox, outbox_history
from guard.store.sql.redrives import (
    TAKEN_BACK,
    WITHHELD,
    insert_mails_anew,
    insert_rendered,
    is_withheld,
    replace_staged,
)
from twiceshy_contract.outbox import AttemptLine

_CANCELLED: Final = MESSAGE_STATE_CODES["cancelled"]
_IS_REMOVED: Final = "its destination was removed: declare it again first"
_AT_ONCE: Final = 1000
_COUNTED: Final = 100_000
_TOLD: Final = 5
"""Of what is left, so many are counted, and so many are told, at the most."""


class SqlOutbox:
    """The port's outbox over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def page(self, tenant: TenantId, chosen: MessageFilter) -> tuple[list[Standing], str | None]:
        """Return messages, newest first, and the next page's cursor. Raises ValueError for a foreign cursor."""
        last = last_of(chosen)
        rows = await self._database.read(lambda connection: select_page(connection, tenant, chosen, last))
        found = [standing_of(row) for row in rows[: chosen.limit]]
        if len(rows) <= chosen.limit:
            return found, None
        end = found[-1]
        return found, cursor_of(AfterMessage(end.settled_at or 0, end.id))

    async def get(self, tenant: TenantId, message: UUID) -> tuple[Standing, list[AttemptLine]] | None:
        """Return a message with the tries that failed: as it waits, else as its newest epoch ended."""

        def work(connection: Connection) -> tuple[Standing, list[AttemptLine]] | None:
            row = select_live(connection, tenant, message) or select_over(connection, tenant, message)
            if row is None:
                return None
            return standing_of(row), [line_of(found) for found in select_tries(connection, message)]

        return await self._database.read_at_once(work)

    async def of_effect(self, tenant: TenantId, key: Key) -> tuple[UUID, ...]:
        """Return the ids of what an effect staged, in their order."""
        return await self._database.read(lambda connection: select_staged(connection, tenant, key))

    async def redrive(self, tenant: TenantId, message: UUID, wish: Redrive) -> Moved | None:
        """Let a message be sent again, unless it is due already, or is being sent; None: there is none."""

        def work(connection: Connection, at: Instant) -> Moved | None:
            row = hold_live(connection, tenant, message)
            if row is not None:
                return _redrive(connection, at, row, wish)
            row = select_over(connection, tenant, message)
            return None if row is None else _send_anew(connection, at, row, wish)

        return await self._database.write(work)

    async def redrive_all(
        self,
        tenant: TenantId,
        state: Literal["dead", "unknown", "parked"],
        destination: str | None,
        wish: Redrive,
        limit: int,
    ) -> MovedAll:
        """Let all messages of a state be sent again, oldest first."""
        chosen = _standing(tenant, MESSAGE_STATE_CODES[state], destination)

        def work(connection: Connection, at: Instant) -> MovedAll:
            most = min(_AT_ONCE, limit - count)
            rows = _hold_standing(connection, chosen, wish, most)
            _update_again(connection, at, [row.id for row in rows], wish)
            if wish.anew:
                insert_mails_anew(connection, at, rows)
            is_last = len(rows) < most or count + most >= limit
            return _left(connection, chosen, wish, len(rows)) if is_last else MovedAll(count=len(rows))

        count, is_more = 0, True
        moved = MovedAll(count=0)
        while is_more:
            moved = await self._database.write(work)
            count += moved.count
            is_more = moved.count == _AT_ONCE and count < limit
        return msgspec.structs.replace(moved, count=count)

    async def unrendered(self, tenant: TenantId, destination: str | None, after: int, limit: int) -> list[Standing]:
        """Return messages that were parked unrendered, oldest first, behind one by its `id`."""
        chosen = (*_standing(tenant, PARKED, destination), outbox.c.content_type == RAW, outbox.c.id > after)
        statement = sa.select(outbox).where(*chosen).order_by(outbox.c.id).limit(limit)
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [standing_of(row) for row in rows]

    async def replace(
        self, tenant: TenantId, message: UUID, rows: Sequence[Staged], wish: Redrive, *, is_held: bool = False
    ) -> Literal["replaced", "gone", "taken_back"]:
        """Put rendered rows in the place of a message that was parked unrendered, due or parked still (`is_held`)."""

        def work(connection: Connection, at: Instant) -> Literal["replaced", "gone", "taken_back"]:
            place = hold_live(connection, tenant, message)
            if place is None or place.state != PARKED or place.content_type != RAW:
                return "gone"
            if not is_held and is_withheld(connection, place, wish):
                return "taken_back"
            _delete(connection, place.id)
            insert_rendered(connection, at, place, rows, None if is_held else wish)
            replace_staged(connection, place, [row.message for row in rows])
            return "replaced"

        return await self._database.write(work)

    async def cancel(self, tenant: TenantId, message: UUID, note: str) -> Moved | None:
        """Take a message back that is not being sent and not over; None: there is none."""

        def work(connection: Connection, at: Instant) -> Moved | None:
            row = hold_live(connection, tenant, message)
            is_done = row is not None and row.state != SENDING
            if row is not None and is_done:
                _archive(connection, at, row, note)
            found = select_live(connection, tenant, message) or select_over(connection, tenant, message)
            return None if found is None else Moved(standing=standing_of(found), is_done=is_done)

        return await self._database.write(work)


def _redrive(connection: Connection, at: Instant, row: sa.Row[Any], wish: Redrive) -> Moved:
    if row.state in (CLAIMED, SENDING) or (row.state == WAITING and (wish.anew or row.due_at <= at)):
        return Moved(standing=standing_of(row), is_done=False)
    why = _why_left(connection, row, wish)
    if why is not None:
        return Moved(standing=standing_of(row), is_done=False, why=why)
    _update_again(connection, at, [row.id], wish)
    if wish.anew:
        insert_mails_anew(connection, at, [row])
    return _moved(connection, row)


def _send_anew(connection: Connection, at: Instant, row: sa.Row[Any], wish: Redrive) -> Moved:
    """Bring a message back that is over, in its next epoch; whoever comes second finds it waiting."""
    if not wish.anew:
        return Moved(standing=standing_of(row), is_done=False)
    if _is_removed(connection, row.destination_id):
        return Moved(standing=standing_of(row), is_done=False, why=_IS_REMOVED)
    is_done = _insert_again(connection, at, row, wish.note)
    if is_done:
        insert_mails_anew(connection, at, [row])
    return _moved(connection, row, is_done=is_done)


def _moved(connection: Connection, row: sa.Row[Any], *, is_done: bool = True) -> Moved:
    found = select_live(connection, TenantId(row.tenant), row.message)
    if found is None:
        raise LookupError(f"message {row.message} is gone")
    return Moved(standing=standing_of(found), is_done=is_done)


def _is_removed(connection: Connection, destination: int | None) -> bool:
    """Select whether a destination is not to be sent to any more."""
    statement = sa.select(destinations.c.state).where(destinations.c.id == destination)
    return connection.execute(statement).scalar() in (REMOVED, None)


def _why_left(connection: Connection, row: sa.Row[Any], wish: Redrive) -> str | None:
    """Say why a message that stands cannot be sent again as it is."""
    if row.content_type == RAW:
        return "it was never rendered"
    if _is_removed(connection, row.destination_id):
        return _IS_REMOVED
    return TAKEN_BACK if is_withheld(connection, row, wish) else None


def _standing(tenant: TenantId, state: int, destination: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    """Return what is said of messages that stand in a state, in the words of the index of all that stands."""
    of_state = outbox.c.state == sa.literal_column(str(state))
    chosen = (outbox.c.tenant == tenant, of_state, sa.and_(STANDING))
    return chosen if destination is None else (*chosen, outbox.c.destination == destination)


def _hold_standing(
    connection: Connection, chosen: Sequence[sa.ColumnElement[bool]], wish: Redrive, limit: int
) -> Sequence[sa.Row[Any]]:
    """Select messages that stand and could be sent again, oldest first; hold those that nobody else holds."""
    is_there = sa.exists().where(destinations.c.id == outbox.c.destination_id, destinations.c.state != REMOVED)
    statement = sa.select(outbox).where(*chosen, outbox.c.content_type != RAW, is_there)
    if not wish.anew:
        statement = statement.where(~WITHHELD)
    held = statement.order_by(outbox.c.id).limit(limit).with_for_update(skip_locked=True, of=outbox)
    return connection.execute(held).all()


def _left(connection: Connection, chosen: Sequence[sa.ColumnElement[bool]], wish: Redrive, count: int) -> MovedAll:
    """Count what still stands, and select the oldest few of it."""
    some = sa.select(outbox.c.id).where(*chosen).limit(_COUNTED).subquery()
    left = connection.execute(sa.select(sa.func.count()).select_from(some)).scalar_one()
    rows = connection.execute(sa.select(outbox).where(*chosen).order_by(outbox.c.id).limit(_TOLD)).all() if left else ()
    told = [(standing_of(row), _why_left(connection, row, wish)) for row in rows]
    oldest = tuple(Moved(standing=standing, is_done=False, why=why) for standing, why in told)
    return MovedAll(count=count, left=left, oldest=oldest)


def _update_again(connection: Connection, at: Instant, ids: Sequence[int], wish: Redrive) -> None:
    """Let messages wait to be sent, from now on."""
    again = {"state": WAITING, "due_at": at, "attempts": 0, "note": wish.note, "in_lane": outbox.c.lane.is_not(None)}
    if wish.anew:
        again["epoch"] = outbox.c.epoch + 1
    if ids:
        connection.execute(sa.update(outbox).where(outbox.c.id.in_(ids)).values(**again))


def _insert_again(connection: Connection, at: Instant, row: sa.Row[Any], note: str) -> bool:
    """Add a message that is over, in its next epoch, unless it waits already; say whether it was added."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    kept = {name: value for name, value in row._mapping.items() if name in outbox.c and name != "id"}  # noqa: SLF001
    again = {"epoch": row.epoch + 1, "state": WAITING, "attempts": 0, "note": note, "due_at": at}
    values = {**kept, **again, "in_lane": row.lane is not None}
    statement = dialect.insert(outbox).values(**values).on_conflict_do_nothing(index_elements=("message",))
    return bool(connection.execute(statement).rowcount)


def _archive(connection: Connection, at: Instant, row: sa.Row[Any], note: str) -> None:
    """Move a message to the history, cancelled."""
    kept = {name: value for name, value in row._mapping.items() if name in outbox_history.c}  # noqa: SLF001
    over = {**kept, "settled_at": at, "state": _CANCELLED, "note": note}
    connection.execute(sa.insert(outbox_history).values(**over))
    _delete(connection, row.id)


def _delete(connection: Connection, id_: int) -> None:
    """Remove a message from the queue."""
    connection.execute(sa.delete(outbox).where(outbox.c.id == id_))
