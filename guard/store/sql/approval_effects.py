"""What an approval must know of its effect, and what keeps others from beginning it meanwhile."""

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import Key
from guard.store.sql.rows import effect_of
from guard.store.sql.tables import attempts, effects


def hold_key(connection: Connection, key: Key) -> None:
    """Let no lease of an effect that a person must know of be granted until this transaction ends.

    It is the lock that a batch takes on PostgreSQL; on SQLite the transaction holds the database already.
    """
    if connection.dialect.name == "postgresql":
        named = sa.func.hashtextextended(key.hex(), sa.cast(0, sa.BigInteger))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(named)))


def select_has_begun(connection: Connection, key: Key) -> bool:
    """Select whether an attempt of an effect holds the lease, or may have sent."""
    row = connection.execute(sa.select(effects).where(effects.c.key == key)).first()
    if row is None:
        return False
    columns = [
        attempts.c[name] for name in ("token", "fence", "granted_at", "deadline", "report", "reported_at", "settled")
    ]
    earlier = connection.execute(sa.select(*columns).where(attempts.c.key == key).order_by(attempts.c.fence)).all()
    life = effect_of(row, earlier).life
    return life.state != "pending" or bool(life.unresolved())
