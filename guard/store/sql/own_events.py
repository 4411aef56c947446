"""The service's own events: messages without an effect, written in the transaction that they tell of."""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.approvals import Approval
from guard.core.effects import Instant, TenantId
from guard.core.outbox import FIRST_EPOCH, Place
from guard.core.own_events import staged_event
from guard.store.sql.codes import DESTINATION_STATE_CODES, WAITING
from guard.store.sql.destination_rows import places_of
from guard.store.sql.outbox_tables import destinations, outbox
from guard.store.sql.tables import runs
from twiceshy_contract.destinations import OwnEvent

_TOLD: Final = (DESTINATION_STATE_CODES["active"], DESTINATION_STATE_CODES["paused"])


def stage_own_events(connection: Connection, at: Instant, event: OwnEvent, approvals: Sequence[Approval]) -> None:
    """Stage an event of each of these approvals, of one tenant, for every destination that asks for it."""
    if not approvals:
        return
    tenant = approvals[0].tenant
    places = [place for place in _select_places(connection, tenant) if event in place.settings.events]
    if places:
        named = {approval.question.run for approval in approvals}
        of_runs = _select_runs(connection, tenant, (name for name in named if name is not None))
        _insert_events(
            connection,
            [_row(event, approval, place, of_runs, at) for approval in approvals for place in places],
        )


def _row(event: OwnEvent, approval: Approval, place: Place, of_runs: dict[str, UUID], at: Instant) -> dict[str, object]:
    staged = staged_event(event, approval, place, at)
    run = approval.question.run
    return {
        "message": staged.message,
        "epoch": FIRST_EPOCH,
        "tenant": approval.tenant,
        "run_id": None if run is None else of_runs.get(run),
        "run": run,
        "destination_id": staged.destination_id,
        "destination": staged.destination,
        "type": staged.type,
        "content_type": staged.content_type,
        "headers": staged.headers,
        "body": staged.body,
        "staged_at": at,
        "state": WAITING,
        "attempts": 0,
        "in_lane": False,
        "due_at": at,
    }


def _select_places(connection: Connection, tenant: TenantId) -> list[Place]:
    """Select the active and paused destinations of a tenant."""
    is_told = (destinations.c.tenant == tenant, destinations.c.state.in_(_TOLD))
    return places_of(connection.execute(sa.select(destinations).where(*is_told)))


def _select_runs(connection: Connection, tenant: TenantId, names: Iterable[str]) -> dict[str, UUID]:
    """Select the ids of runs by their names."""
    statement = sa.select(runs.c.name, runs.c.id).where(runs.c.tenant == tenant, runs.c.name.in_(list(names)))
    return {row.name: row.id for row in connection.execute(statement)}


def _insert_events(connection: Connection, rows: Sequence[dict[str, object]]) -> None:
    """Stage messages; one that waits already is left as it is."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(dialect.insert(outbox).on_conflict_do_nothing(), list(rows))
