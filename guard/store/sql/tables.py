"""The tables, one text for both databases; the migrations build them, and a test holds both equal.

Instants and durations are integers of microseconds, by the database's clock. An effect is one narrow row with its
latest attempt in it; what came earlier stands in `attempts`. No foreign keys on hot tables, and on `effects` no
index besides these: each one costs every guarded call.
"""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from guard.store.sql.codes import EXECUTING, IN_DOUBT, PENDING


class BlobUuid(sa.TypeDecorator[UUID]):
    """A UUID as 16 bytes."""

    impl = sa.LargeBinary(16)
    cache_ok = True

    def process_bind_param(self, value: UUID | None, dialect: Dialect) -> bytes | None:
        """Return the bytes to store."""
        del dialect
        return None if value is None else value.bytes

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> UUID | None:
        """Return the UUID that was stored."""
        del dialect
        return None if value is None else UUID(bytes=value)


_uuid: Final = sa.Uuid().with_variant(BlobUuid(), "sqlite")
metadata: Final = sa.MetaData()


def _column(name: str, kind: sa.types.TypeEngine[Any] | Callable[[], sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    return sa.Column(name, kind() if callable(kind) else kind, nullable=False)


def _optional(name: str, kind: sa.types.TypeEngine[Any] | Callable[[], sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    return sa.Column(name, kind() if callable(kind) else kind, nullable=True)


tenants: Final = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _column("name", sa.Text),
    sa.UniqueConstraint("name", name="tenants_name"),
)

runs: Final = sa.Table(
    "runs",
    metadata,
    sa.Column("id", _uuid, primary_key=True),
    _column("tenant", sa.Integer),
    _column("name", sa.Text),
    _column("state", sa.SmallInteger),
    _column("effects", sa.BigInteger),
    _column("started_at", sa.BigInteger),
    _optional("ended_at", sa.BigInteger),
    sa.UniqueConstraint("tenant", "name", name="runs_name"),
    postgresql_with={"fillfactor": 50},
)

effects: Final = sa.Table(
    "effects",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    _column("version", sa.BigInteger),
    _column("tenant", sa.Integer),
    _optional("run_id", _uuid),
    _optional("run", sa.Text),
    _optional("step", sa.BigInteger),
    _column("tool", sa.Text),
    _column("tool_version", sa.Integer),
    _column("rule", sa.SmallInteger),
    _optional("caller_step", sa.Text),
    _optional("business_key", sa.Text),
    _column("occurrence", sa.Integer),
    _column("generation", sa.Integer),
    _column("identity_digest", sa.LargeBinary),
    _column("arguments_digest", sa.LargeBinary),
    _column("arguments", sa.LargeBinary),
    _optional("worker", sa.Text),
    _column("began_at", sa.BigInteger),
    _column("state", sa.SmallInteger),
    _column("fence", sa.BigInteger),
    _optional("attempt", _uuid),
    _optional("granted_at", sa.BigInteger),
    _optional("lease_expires_at", sa.BigInteger),
    _optional("report", sa.SmallInteger),
    _optional("reported_at", sa.BigInteger),
    _optional("settled", sa.Boolean),
    _column("tries", sa.Integer),
    _optional("retry_at", sa.BigInteger),
    _column("epoch", sa.Integer),
    _optional("epoch_since", sa.BigInteger),
    _column("closed", sa.Boolean),
    _optional("ended_at", sa.BigInteger),
    _optional("outcome", sa.LargeBinary),
    _optional("resolution", sa.Text),
    _column("earlier", sa.SmallInteger),
    postgresql_with={"fillfactor": 50},
)
_LEASED: Final = sa.text(f"state = {EXECUTING}")
_UNSETTLED: Final = sa.text(f"state IN ({PENDING}, {IN_DOUBT})")
sa.Index("effects_lease", effects.c.lease_expires_at, postgresql_where=_LEASED, sqlite_where=_LEASED)
sa.Index("effects_unsettled", effects.c.state, effects.c.key, postgresql_where=_UNSETTLED, sqlite_where=_UNSETTLED)
sa.Index("effects_run", effects.c.run_id, effects.c.step)

attempts: Final = sa.Table(
    "attempts",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("token", _uuid, primary_key=True),
    _column("fence", sa.BigInteger),
    _column("granted_at", sa.BigInteger),
    _column("deadline", sa.BigInteger),
    _column("report", sa.SmallInteger),
    _optional("reported_at", sa.BigInteger),
    _column("settled", sa.Boolean),
)

evidence: Final = sa.Table(
    "evidence",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    _column("at", sa.BigInteger),
    _optional("token", _uuid),
    _column("kind", sa.Text),
    _column("body", sa.LargeBinary),
)

tools: Final = sa.Table(
    "tools",
    metadata,
    sa.Column("tenant", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    _column("digest", sa.LargeBinary),
    _column("declared_at", sa.BigInteger),
    _column("held_since", sa.BigInteger),
    _column("declaration", sa.LargeBinary),
)

run_tools: Final = sa.Table(
    "run_tools",
    metadata,
    sa.Column("run_id", _uuid, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    _column("version", sa.Integer),
)
