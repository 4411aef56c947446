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

from guard.store.sql.codes import EXECUTING, FAILED, IN_DOUBT, PENDING, SUCCEEDED


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


uuid_type: Final = sa.Uuid().with_variant(BlobUuid(), "sqlite")
bytewise: Final = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
"""Text that is compared by its bytes on both databases, whatever order of words the database itself has."""
metadata: Final = sa.MetaData()


def column(name: str, kind: sa.types.TypeEngine[Any] | Callable[[], sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    """Return a column that is never null."""
    return sa.Column(name, kind() if callable(kind) else kind, nullable=False)


def optional(name: str, kind: sa.types.TypeEngine[Any] | Callable[[], sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    """Return a column that may be null."""
    return sa.Column(name, kind() if callable(kind) else kind, nullable=True)


tenants: Final = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    column("name", sa.Text),
    optional("salt", sa.LargeBinary),
    sa.Column("cache_epoch", sa.Integer, nullable=False, server_default="0"),
    sa.UniqueConstraint("name", name="tenants_name"),
)

runs: Final = sa.Table(
    "runs",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("name", sa.Text),
    column("state", sa.SmallInteger),
    column("effects", sa.BigInteger),
    column("started_at", sa.BigInteger),
    optional("ended_at", sa.BigInteger),
    optional("parent_id", uuid_type),
    optional("fork", sa.LargeBinary),
    optional("expired_at", sa.BigInteger),
    optional("kept_until", sa.BigInteger),
    sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("events", sa.BigInteger, nullable=False, server_default="0"),
    optional("about", sa.LargeBinary),
    optional("workflow", sa.Text),
    optional("reference", sa.Text),
    optional("child_of", sa.Text),
    sa.UniqueConstraint("tenant", "name", name="runs_name"),
    postgresql_with={"fillfactor": 50},
)

effects: Final = sa.Table(
    "effects",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    column("version", sa.BigInteger),
    column("tenant", sa.Integer),
    optional("run_id", uuid_type),
    optional("run", sa.Text),
    optional("step", sa.BigInteger),
    column("tool", sa.Text),
    column("tool_version", sa.Integer),
    column("rule", sa.SmallInteger),
    optional("caller_step", sa.Text),
    optional("business_key", sa.Text),
    column("occurrence", sa.Integer),
    column("generation", sa.Integer),
    column("identity_digest", sa.LargeBinary),
    column("arguments_digest", sa.LargeBinary),
    column("arguments", sa.LargeBinary),
    optional("worker", sa.Text),
    column("began_at", sa.BigInteger),
    column("state", sa.SmallInteger),
    column("fence", sa.BigInteger),
    optional("attempt", uuid_type),
    optional("granted_at", sa.BigInteger),
    optional("lease_expires_at", sa.BigInteger),
    optional("report", sa.SmallInteger),
    optional("reported_at", sa.BigInteger),
    optional("settled", sa.Boolean),
    column("tries", sa.Integer),
    optional("retry_at", sa.BigInteger),
    column("epoch", sa.Integer),
    optional("epoch_since", sa.BigInteger),
    column("closed", sa.Boolean),
    optional("ended_at", sa.BigInteger),
    optional("outcome", sa.LargeBinary),
    optional("resolution", sa.Text),
    optional("slot", sa.LargeBinary),
    optional("edited", sa.LargeBinary),
    sa.Column("delivered", sa.Boolean, nullable=False, server_default=sa.false()),
    optional("expired_at", sa.BigInteger),
    column("earlier", sa.SmallInteger),
    postgresql_with={"fillfactor": 50},
)
_LEASED: Final = sa.text(f"state = {EXECUTING}")
_UNSETTLED: Final = sa.text(f"state IN ({PENDING}, {IN_DOUBT})")
sa.Index("effects_lease", effects.c.lease_expires_at, postgresql_where=_LEASED, sqlite_where=_LEASED)
sa.Index("effects_unsettled", effects.c.state, effects.c.key, postgresql_where=_UNSETTLED, sqlite_where=_UNSETTLED)
sa.Index("effects_run", effects.c.run_id, effects.c.step)

_SLOTTED: Final = sa.text("slot IS NOT NULL")
KEPT_ALONE: Final = sa.text(f"step IS NULL AND state IN ({SUCCEEDED}, {FAILED}) AND expired_at IS NULL")
"""An effect without a run has no step; said so, SQLite does not take the index of runs for a search by `run_id`."""
KEPT_RUNS: Final = sa.text("kept_until IS NOT NULL")
"""Runs that ended and of which something is kept: `kept_until` says when to look at them. Some have expired."""
_FORKED: Final = sa.text("parent_id IS NOT NULL")
sa.Index(
    "effects_slot",
    effects.c.slot,
    effects.c.occurrence,
    effects.c.generation,
    postgresql_where=_SLOTTED,
    sqlite_where=_SLOTTED,
)
sa.Index(
    "effects_slot_arguments",
    effects.c.slot,
    effects.c.arguments_digest,
    effects.c.occurrence,
    effects.c.generation,
    postgresql_where=_SLOTTED,
    sqlite_where=_SLOTTED,
)
sa.Index("effects_slot_attempt", effects.c.slot, effects.c.attempt, postgresql_where=_SLOTTED, sqlite_where=_SLOTTED)
sa.Index(
    "effects_kept",
    effects.c.tenant,
    effects.c.tool,
    effects.c.ended_at,
    postgresql_where=KEPT_ALONE,
    sqlite_where=KEPT_ALONE,
)
sa.Index("runs_kept", runs.c.kept_until, postgresql_where=KEPT_RUNS, sqlite_where=KEPT_RUNS)
sa.Index("runs_parent", runs.c.parent_id, postgresql_where=_FORKED, sqlite_where=_FORKED)
_REFERRED: Final = sa.text("reference IS NOT NULL")
_OF_WORKFLOW: Final = sa.text("workflow IS NOT NULL")
_CHILDREN: Final = sa.text("child_of IS NOT NULL")
sa.Index(
    "runs_reference",
    runs.c.tenant,
    runs.c.reference,
    runs.c.id,
    postgresql_where=_REFERRED,
    sqlite_where=_REFERRED,
)
sa.Index(
    "runs_workflow",
    runs.c.tenant,
    runs.c.workflow,
    runs.c.id,
    postgresql_where=_OF_WORKFLOW,
    sqlite_where=_OF_WORKFLOW,
)
sa.Index(
    "runs_child_of",
    runs.c.tenant,
    runs.c.child_of,
    runs.c.id,
    postgresql_where=_CHILDREN,
    sqlite_where=_CHILDREN,
)

attempts: Final = sa.Table(
    "attempts",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("token", uuid_type, primary_key=True),
    column("fence", sa.BigInteger),
    column("granted_at", sa.BigInteger),
    column("deadline", sa.BigInteger),
    column("report", sa.SmallInteger),
    optional("reported_at", sa.BigInteger),
    column("settled", sa.Boolean),
)
sa.Index("attempts_token", attempts.c.token)

evidence: Final = sa.Table(
    "evidence",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    column("at", sa.BigInteger),
    optional("token", uuid_type),
    column("kind", sa.Text),
    column("body", sa.LargeBinary),
)

tools: Final = sa.Table(
    "tools",
    metadata,
    sa.Column("tenant", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    column("digest", sa.LargeBinary),
    column("declared_at", sa.BigInteger),
    column("held_since", sa.BigInteger),
    column("declaration", sa.LargeBinary),
)

run_tools: Final = sa.Table(
    "run_tools",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    column("version", sa.Integer),
)
