"""Messages under a lease: started, kept, and taken back when it has run out. The database's clock alone decides."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Duration, Instant
from guard.core.outbox import FIRST_EPOCH
from guard.ports.relay import Reaped, Verdict
from guard.store.sql.codes import (
    CLAIMED,
    SAGA_STATE_CODES,
    SENDING,
    STEP_STATE_CODES,
    TRY_CODES,
    UNKNOWN,
    WAITING,
)
from guard.store.sql.destination_rows import settings_of
from guard.store.sql.outbox_tables import IN_FLIGHT, destinations, outbox, outbox_tries
from guard.store.sql.plans import walk_indexes
from guard.store.sql.policy_tables import saga_steps, sagas
from guard.store.sql.relay_rows import TO_SEND, VERDICTS
from guard.store.sql.sweeps import sweep

_COMPENSATED: Final = STEP_STATE_CODES["compensated"]
_ENLISTED: Final = STEP_STATE_CODES["enlisted"]
_PASSED_OVER: Final = STEP_STATE_CODES["passed_over"]
_TAKEN_BACK: Final = (SAGA_STATE_CODES["compensating"], SAGA_STATE_CODES["stuck"])
_UNHEARD: Final = "its lease ran out while it was being sent: whoever sent it is gone"
_AT_ONCE: Final = 1000
_LEASELESS: Final[Mapping[str, None]] = {"lease": None, "lease_until": None, "repeatable": None}


def start(
    connection: Connection, at: Instant, lease: UUID, ids: Sequence[int], length: Duration
) -> Mapping[int, Verdict]:
    """Judge messages that were claimed; those that may be sent are being sent from now on."""
    verdicts = _hold(connection, lease, ids)
    if verdicts:
        to_send = [id_ for id_, verdict in verdicts.items() if verdict == TO_SEND]
        _update(connection, list(verdicts), {"lease_until": at + length})
        _update(connection, to_send, {"state": SENDING})
    return {id_: VERDICTS[verdict] for id_, verdict in verdicts.items()}


def renew(connection: Connection, at: Instant, lease: UUID, ids: Sequence[int], length: Duration) -> frozenset[int]:
    """Move the end of the lease of messages that are still under it."""
    held = _hold(connection, lease, ids)
    _update(connection, list(held), {"lease_until": at + length})
    return frozenset(held)


def release(connection: Connection, at: Instant, lease: UUID, besides: frozenset[int]) -> int:
    """Let messages under a lease wait to be sent again, without those that are kept; return how many they were."""
    walk_indexes(connection)
    statement = sa.select(outbox.c.id).where(IN_FLIGHT, outbox.c.lease == lease)
    given = [id_ for id_ in connection.execute(statement).scalars() if id_ not in besides]
    held = [id_ for some in _in_batches(sorted(given)) for id_ in _hold(connection, lease, some)]
    for some in _in_batches(held):
        _update(connection, some, {"state": WAITING, "due_at": at, **_LEASELESS})
    return len(held)


def reap(connection: Connection, at: Instant, limit: int) -> Reaped:
    """Take back what is under no lease any more; and let what waits follow destinations that have changed."""
    rows = _select_expired(connection, at, limit)
    claimed = [row.id for row in rows if row.state == CLAIMED]
    sending = [row for row in rows if row.state == SENDING]
    again = [row.id for row in sending if row.repeatable]
    unknown = [row for row in sending if not row.repeatable]
    tried = {"attempts": outbox.c.attempts + 1, "note": _UNHEARD}
    _update(connection, claimed, {"state": WAITING, "due_at": at, **_LEASELESS})
    _update(connection, again, {"state": WAITING, "due_at": at, **tried, **_LEASELESS})
    skipping = _select_skipping(connection, {row.destination_id for row in unknown})
    for blocks in (True, False):
        chosen = [row.id for row in unknown if (row.destination_id not in skipping) == blocks]
        stays = sa.and_(outbox.c.lane.is_not(None), sa.literal(blocks))
        _update(connection, chosen, {"state": UNKNOWN, "in_lane": stays, **tried, **_LEASELESS})
    _insert_tries(connection, at, sending)
    sweep(connection, at, limit)
    return Reaped(again=len(again), unknown=len(unknown), released=len(claimed))


def _in_batches(ids: Sequence[int]) -> list[Sequence[int]]:
    """Return ids in parts that a statement takes."""
    return [ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE)]


def _hold(connection: Connection, lease: UUID, ids: Sequence[int]) -> dict[int, int]:
    """Select the verdicts of messages under a lease; hold them, in the order of their ids. A later epoch is sent."""
    statement = (
        sa.select(outbox.c.id, sa.case((outbox.c.epoch == FIRST_EPOCH, outbox.c.effect)).label("effect"))
        .where(outbox.c.id.in_(ids), outbox.c.lease == lease)
        .order_by(outbox.c.id)
        .with_for_update(key_share=True)
    )
    rows = connection.execute(statement).all()
    taken = _select_taken_back(connection, [row.effect for row in rows if row.effect is not None])
    return {row.id: taken.get(row.effect, TO_SEND) for row in rows}


def _select_taken_back(connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
    """Select the verdicts of effects that do not simply stand."""
    if not keys:
        return {}
    verdict = sa.case((saga_steps.c.state == _COMPENSATED, 3), else_=2)
    is_taken_back = sa.and_(saga_steps.c.state == _ENLISTED, sagas.c.state.in_(_TAKEN_BACK))
    is_open = sa.or_(saga_steps.c.state == _PASSED_OVER, is_taken_back)
    statement = (
        sa.select(saga_steps.c.key, verdict)
        .join(sagas, sagas.c.id == saga_steps.c.saga)
        .where(saga_steps.c.key.in_(keys), sa.or_(saga_steps.c.state == _COMPENSATED, is_open))
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _update(connection: Connection, ids: Sequence[int], values: Mapping[str, Any]) -> None:
    """Write down what changed of messages that are held."""
    if ids:
        connection.execute(sa.update(outbox).where(outbox.c.id.in_(ids)).values(**values))


def _select_expired(connection: Connection, at: Instant, limit: int) -> Sequence[sa.Row[Any]]:
    """Select messages whose lease has run out, the longest first; hold those that nobody else holds."""
    columns = (outbox.c.id, outbox.c.message, outbox.c.epoch, outbox.c.state, outbox.c.repeatable)
    statement = (
        sa.select(*columns, outbox.c.destination_id)
        .where(IN_FLIGHT, outbox.c.lease_until <= at)
        .order_by(outbox.c.lease_until)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    return list(connection.execute(statement))


def _select_skipping(connection: Connection, ids: set[int | None]) -> frozenset[int]:
    """Select those of these destinations in whose lanes nothing waits for what cannot be delivered."""
    wanted = [id_ for id_ in ids if id_ is not None]
    if not wanted:
        return frozenset()
    rows = connection.execute(sa.select(destinations).where(destinations.c.id.in_(wanted)))
    read = {row.id: settings_of(row) for row in rows}
    return frozenset(id_ for id_, settings in read.items() if settings is not None and settings.lanes == "skip")


def _insert_tries(connection: Connection, at: Instant, rows: Sequence[sa.Row[Any]]) -> None:
    """Write down that a try of each message came to nothing that anybody heard."""
    for row in rows:
        of_epoch = (outbox_tries.c.message == row.message, outbox_tries.c.epoch == row.epoch)
        last = sa.select(sa.func.coalesce(sa.func.max(outbox_tries.c.number), 0) + 1).where(*of_epoch)
        connection.execute(
            sa.insert(outbox_tries).values(
                message=row.message,
                epoch=row.epoch,
                number=last.scalar_subquery(),
                at=at,
                result=TRY_CODES["expired"],
                detail=_UNHEARD,
            )
        )
