"""The instances of a slot: the newest, that of an attempt, and those whose outcomes are known.

All are found by index, so that the ten-thousandth instance costs what the second does.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import AttemptToken, Key, RunId, TenantId
from guard.ports.store import Newest, Rival
from guard.store.sql.codes import EXECUTING, FAILED, IN_DOUBT, SUCCEEDED
from guard.store.sql.tables import attempts, effects


def select_newest(
    connection: Connection, slot: bytes, occurrence: int, token: AttemptToken, arguments_digest: bytes
) -> Newest:
    """Select the generation of a slot's newest instance, of an attempt's own, and of the newest with these arguments.

    The last only where it has failed.
    """
    of_slot = sa.select(effects.c.generation).where(effects.c.slot == slot, effects.c.occurrence == occurrence)
    newest = of_slot.order_by(effects.c.generation.desc()).limit(1)
    latest = of_slot.where(effects.c.attempt == token).limit(1)
    earlier = of_slot.join(attempts, attempts.c.key == effects.c.key).where(attempts.c.token == token).limit(1)
    where_failed = sa.case((effects.c.state == FAILED, effects.c.generation))
    refused = newest.with_only_columns(where_failed).where(effects.c.arguments_digest == arguments_digest)
    columns = (statement.scalar_subquery() for statement in (newest, latest, earlier, refused))
    generation, own, own_before, refused_as = connection.execute(sa.select(*columns)).one()
    return Newest(
        rank=_rank(generation, occurrence) or 0,
        own=_rank(own if own is not None else own_before, occurrence),
        refused=_rank(refused_as, occurrence),
    )


def update_slot(connection: Connection, key: Key, slot: bytes) -> None:
    """Keep the slot with the effect, unless it has one. Who knows it without is not to keep it as it was."""
    statement = sa.update(effects).where(effects.c.key == key, effects.c.slot.is_(None))
    connection.execute(statement.values(slot=slot, version=effects.c.version + 1))


def select_rival(connection: Connection, slot: bytes, besides: Key) -> Rival | None:
    """Select the instance of a slot, of any occurrence, that executes, is in doubt, or else succeeded last."""
    may_be_applied = effects.c.state.in_((EXECUTING, IN_DOUBT, SUCCEEDED))
    statement = (
        sa.select(effects.c.key, effects.c.ended_at)
        .where(effects.c.slot == slot, effects.c.key != besides, may_be_applied)
        .order_by(effects.c.ended_at.desc().nulls_first(), effects.c.generation.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None else Rival(key=Key(row.key), succeeded_at=row.ended_at)


def update_delivered(connection: Connection, tenant: TenantId, run: RunId, keys: Sequence[Key]) -> None:
    """Mark as delivered those of these effects that are final, of the run and not marked yet.

    They are locked in the order of their keys, in which a batch changes them too: so neither waits for the other.
    """
    is_meant = (effects.c.key.in_(sorted(set(keys))), effects.c.tenant == tenant, effects.c.run_id == run)
    is_new = (effects.c.state.in_((SUCCEEDED, FAILED)), effects.c.delivered.is_(sa.false()))
    chosen = sa.select(effects.c.key).where(*is_meant, *is_new).order_by(effects.c.key).with_for_update()
    statement = sa.update(effects).where(effects.c.key.in_(chosen), *is_new)
    connection.execute(statement.values(delivered=sa.true(), version=effects.c.version + 1))


def _rank(generation: int | None, occurrence: int) -> int | None:
    return None if generation is None else generation - occurrence + 1
