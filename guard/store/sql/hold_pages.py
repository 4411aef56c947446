"""Listings of holds, as they stand: what their time or their effect has ended meanwhile is written down first."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Instant, TenantId
from guard.core.holds import FOREVER, GRACE
from guard.ports.holds import HoldFilter, HoldPage
from guard.store.sql.approval_rows import APPROVED, OPEN
from guard.store.sql.clock import database_now
from guard.store.sql.codes import FAILED, PENDING, SUCCEEDED
from guard.store.sql.hold_rows import HELD, HOLD_CODES, AfterHold, cursor_of, hold_of
from guard.store.sql.policy_tables import approvals, holds
from guard.store.sql.tables import effects

_HEALED_AT_ONCE: Final = 500
Wanted = Sequence[sa.ColumnElement[bool]]
"""What must hold of the rows that a listing is about."""


def is_held() -> sa.ColumnElement[bool]:
    """Say that a hold is written as held, in text by which the planner sees that a partial index fits."""
    return holds.c.state == sa.literal_column(str(HELD), sa.SmallInteger)


def chosen_holds(tenant: TenantId, chosen: HoldFilter) -> list[sa.ColumnElement[bool]]:
    """Say which holds a listing is about, in whatever state."""
    wanted: list[sa.ColumnElement[bool]] = [holds.c.tenant == tenant]
    if chosen.resource is not None:
        wanted.append(holds.c.resource == chosen.resource)
    if chosen.key is not None:
        wanted.append(holds.c.key == chosen.key)
    if chosen.start is not None:
        wanted.append(holds.c.ends_at > chosen.start)
    if chosen.end is not None:
        wanted.append(holds.c.starts_at < chosen.end)
    return wanted


def select_outdated(connection: Connection, wanted: Wanted) -> list[UUID]:
    """Select the holds that are written as held, and whose time or effect may say otherwise."""
    has_run_out = holds.c.expires_at <= database_now()
    has_ended = effects.c.state.in_((SUCCEEDED, FAILED)) | (
        (effects.c.state == PENDING) & (sa.func.coalesce(effects.c.reported_at, 0) > holds.c.placed_at)
    )
    is_under_way = sa.func.coalesce(effects.c.state.not_in((PENDING, SUCCEEDED, FAILED)), sa.false())
    statement = (
        sa.select(holds.c.id)
        .outerjoin(effects, effects.c.key == holds.c.key)
        .where(*wanted, is_held(), has_ended | (has_run_out & ~is_under_way & ~_is_awaited()))
        .limit(_HEALED_AT_ONCE)
    )
    return list(connection.execute(statement).scalars())


def _is_awaited() -> sa.ColumnElement[bool]:
    """Say in SQL what `Claim.is_awaited` says: the effect is there, and waits for a person or then for its caller."""
    is_open = (approvals.c.state == OPEN) & (sa.func.coalesce(approvals.c.expires_at, FOREVER) > database_now())
    is_answered = (approvals.c.state == APPROVED) & (approvals.c.decided_at > database_now() - GRACE)
    is_asked = sa.exists().where(approvals.c.key == holds.c.key, is_open | is_answered)
    return sa.func.coalesce(effects.c.state == PENDING, sa.false()) & is_asked


def select_page(connection: Connection, wanted: Wanted, chosen: HoldFilter, after: AfterHold | None) -> HoldPage:
    """Select the holds that come next, by resource, start and id."""
    order = _order(connection)
    statement = sa.select(holds).where(*wanted).order_by(*order).limit(chosen.limit + 1)
    if chosen.state is not None:
        statement = statement.where(holds.c.state == HOLD_CODES[chosen.state])
    if after is not None:
        place = (after.resource, after.start, after.id)
        literals = (sa.literal(value, column.type) for value, column in zip(place, order, strict=True))
        statement = statement.where(sa.tuple_(*order) > sa.tuple_(*literals))
    found = [hold_of(row) for row in connection.execute(statement)]
    shown = found[: chosen.limit]
    at = Instant(connection.execute(sa.select(database_now())).scalar_one())
    return HoldPage(holds=shown, at=at, next=cursor_of(shown[-1]) if len(found) > chosen.limit else None)


def _order(connection: Connection) -> list[sa.ColumnElement[Any]]:
    """Return the order of a listing; names are ordered by their bytes on both databases."""
    resource: sa.ColumnElement[Any] = holds.c.resource
    if connection.dialect.name == "postgresql":
        resource = resource.collate("C")
    return [resource, holds.c.starts_at, holds.c.id]
