"""What is read of the outbox: pages of what waits or of what is over, one message, and its tries."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Key, TenantId
from guard.ports.outbox import MessageFilter
from guard.store.sql.codes import DEAD, MESSAGE_STATE_CODES
from guard.store.sql.cursors import AfterMessage, place_of
from guard.store.sql.outbox_tables import STANDING, outbox, outbox_history, outbox_tries, stagings
from guard.store.sql.tables import runs

_DELIVERED: Final = MESSAGE_STATE_CODES["delivered"]


def is_over(chosen: MessageFilter) -> bool:
    """Say whether a listing is of the history."""
    return chosen.state is not None and MESSAGE_STATE_CODES[chosen.state] >= _DELIVERED


def last_of(chosen: MessageFilter) -> AfterMessage | None:
    """Return the message with which the page before ended. Raises ValueError for a cursor of another listing."""
    place = None if chosen.after is None else place_of(chosen.after)
    if place is None:
        return None
    if not isinstance(place, AfterMessage) or is_over(chosen) != bool(place.settled_at):
        raise ValueError("This is a cursor of another listing: take `next` of the page of messages before.")
    return place


def select_page(
    connection: Connection, tenant: TenantId, chosen: MessageFilter, last: AfterMessage | None
) -> Sequence[sa.Row[Any]]:
    """Select the messages that come next, newest first, one more than the page holds."""
    table = outbox_history if is_over(chosen) else outbox
    statement = sa.select(table).where(table.c.tenant == tenant).limit(chosen.limit + 1)
    if chosen.state is not None:
        code = MESSAGE_STATE_CODES[chosen.state]
        statement = statement.where(table.c.state == sa.literal_column(str(code)))
        if DEAD <= code < _DELIVERED:
            statement = statement.where(STANDING)
    if chosen.destination is not None:
        statement = statement.where(table.c.destination == chosen.destination)
    if chosen.run is not None:
        run = sa.select(runs.c.id).where(runs.c.tenant == tenant, runs.c.name == chosen.run)
        statement = statement.where(table.c.run_id == run.scalar_subquery())
    if table is outbox:
        newest = statement.order_by(outbox.c.id.desc())
        return connection.execute(newest if last is None else newest.where(outbox.c.id < last.message)).all()
    place = (outbox_history.c.settled_at, outbox_history.c.id)
    newest = statement.order_by(*(column.desc() for column in place))
    if last is not None:
        newest = newest.where(sa.tuple_(*place) < sa.tuple_(sa.literal(last.settled_at), sa.literal(last.message)))
    return connection.execute(newest).all()


def select_live(connection: Connection, tenant: TenantId, message: UUID) -> sa.Row[Any] | None:
    """Select a message that waits."""
    return connection.execute(_live(tenant, message)).first()


def hold_live(connection: Connection, tenant: TenantId, message: UUID) -> sa.Row[Any] | None:
    """Select a message that waits; hold it."""
    return connection.execute(_live(tenant, message).with_for_update()).first()


def select_over(connection: Connection, tenant: TenantId, message: UUID) -> sa.Row[Any] | None:
    """Select a message as its newest epoch ended."""
    chosen = (outbox_history.c.message == message, outbox_history.c.tenant == tenant)
    newest = (outbox_history.c.epoch.desc(), outbox_history.c.settled_at.desc())
    return connection.execute(sa.select(outbox_history).where(*chosen).order_by(*newest).limit(1)).first()


def select_tries(connection: Connection, message: UUID) -> Sequence[sa.Row[Any]]:
    """Select the tries of a message that did not deliver, in their order."""
    statement = sa.select(outbox_tries).where(outbox_tries.c.message == message)
    return connection.execute(statement.order_by(outbox_tries.c.epoch, outbox_tries.c.number)).all()


def select_staged(connection: Connection, tenant: TenantId, key: Key) -> tuple[UUID, ...]:
    """Select the ids of what an effect staged, in their order."""
    chosen = (stagings.c.effect == key, stagings.c.tenant == tenant)
    ids = connection.execute(sa.select(stagings.c.messages).where(*chosen)).scalar() or b""
    return tuple(UUID(bytes=ids[start : start + 16]) for start in range(0, len(ids), 16))


def _live(tenant: TenantId, message: UUID) -> sa.Select[Any]:
    return sa.select(outbox).where(outbox.c.message == message, outbox.c.tenant == tenant)
