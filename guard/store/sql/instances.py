"""The instances of a slot: the newest, that of an attempt, and those whose outcomes are known.

All are found by index, so that the ten-thousandth instance costs what the second does.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import AttemptToken, Key, RunId, TenantId
from guard.ports.store import Newest
from guard.store.sql.codes import FAILED, SUCCEEDED
from guard.store.sql.tables import attempts, effects


def select_newest(connection: Connection, slot: bytes, occurrence: int, token: AttemptToken) -> Newest:
    """Select of a slot the generation of its newest instance, and that of the instance that an attempt belongs to."""
    of_slot = sa.select(effects.c.generation).where(effects.c.slot == slot, effects.c.occurrence == occurrence)
    newest = of_slot.order_by(effects.c.generation.desc()).limit(1)
    latest = of_slot.where(effects.c.attempt == token).limit(1)
    earlier = of_slot.join(attempts, attempts.c.key == effects.c.key).where(attempts.c.token == token).limit(1)
    columns = (statement.scalar_subquery() for statement in (newest, latest, earlier))
    generation, own, own_before = connection.execute(sa.select(*columns)).one()
    return Newest(
        rank=_rank(generation, occurrence) or 0,
        own=_rank(own if own is not None else own_before, occurrence),
    )


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
