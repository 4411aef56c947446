"""Effects, their attempts and evidence, runs, tools and tenants."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0001_effects"
down_revision = None
branch_labels = None
depends_on = None

_ON_LEASE = sa.text("state = 2")
_ON_UNSETTLED = sa.text("state IN (1, 4)")
_HALF_FULL = {"fillfactor": 50}


def _uuid() -> sa.types.TypeEngine[UUID]:
    return sa.Uuid().with_variant(sa.LargeBinary(16), "sqlite")


def _held(name: str, kind: type[sa.types.TypeEngine[Any]]) -> sa.Column[Any]:
    return sa.Column(name, kind(), nullable=False)


def upgrade() -> None:
    _create_runs_and_tools()
    _create_effects()
    op.create_table(
        "attempts",
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        sa.Column("token", _uuid(), primary_key=True),
        _held("fence", sa.BigInteger),
        _held("granted_at", sa.BigInteger),
        _held("deadline", sa.BigInteger),
        _held("report", sa.SmallInteger),
        sa.Column("reported_at", sa.BigInteger()),
        _held("settled", sa.Boolean),
    )
    op.create_table(
        "evidence",
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        _held("at", sa.BigInteger),
        sa.Column("token", _uuid()),
        _held("kind", sa.Text),
        _held("body", sa.LargeBinary),
    )
    if op.get_bind().dialect.name == "postgresql":
        for statement in _statements("apply_steps_v1.sql"):
            op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("drop function apply_steps_v1(uuid[], integer[], step_v1[])")
        op.execute("drop function read_effect_v1(bytea)")
        for name in ("step_v1", "effect_v1", "evidence_v1", "attempt_v1"):
            op.execute(f"drop type {name}")
    for name in ("evidence", "attempts", "effects", "run_tools", "tools", "runs", "tenants"):
        op.drop_table(name)


def _create_runs_and_tools() -> None:
    tenants = op.create_table(
        "tenants",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        _held("name", sa.Text),
        sa.UniqueConstraint("name", name="tenants_name"),
    )
    op.bulk_insert(tenants, [{"id": 1, "name": "default"}])
    op.create_table(
        "runs",
        sa.Column("id", _uuid(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("name", sa.Text),
        _held("state", sa.SmallInteger),
        _held("effects", sa.BigInteger),
        _held("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger()),
        sa.UniqueConstraint("tenant", "name", name="runs_name"),
        postgresql_with=_HALF_FULL,
    )
    op.create_table(
        "tools",
        sa.Column("tenant", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        _held("digest", sa.LargeBinary),
        _held("declared_at", sa.BigInteger),
        _held("held_since", sa.BigInteger),
        _held("declaration", sa.LargeBinary),
    )
    op.create_table(
        "run_tools",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("tool", sa.Text(), primary_key=True),
        _held("version", sa.Integer),
    )


def _create_effects() -> None:
    op.create_table(
        "effects",
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        _held("version", sa.BigInteger),
        _held("tenant", sa.Integer),
        sa.Column("run_id", _uuid()),
        sa.Column("run", sa.Text()),
        sa.Column("step", sa.BigInteger()),
        _held("tool", sa.Text),
        _held("tool_version", sa.Integer),
        _held("rule", sa.SmallInteger),
        sa.Column("caller_step", sa.Text()),
        sa.Column("business_key", sa.Text()),
        _held("occurrence", sa.Integer),
        _held("generation", sa.Integer),
        _held("identity_digest", sa.LargeBinary),
        _held("arguments_digest", sa.LargeBinary),
        _held("arguments", sa.LargeBinary),
        sa.Column("worker", sa.Text()),
        _held("began_at", sa.BigInteger),
        _held("state", sa.SmallInteger),
        _held("fence", sa.BigInteger),
        sa.Column("attempt", _uuid()),
        sa.Column("granted_at", sa.BigInteger()),
        sa.Column("lease_expires_at", sa.BigInteger()),
        sa.Column("report", sa.SmallInteger()),
        sa.Column("reported_at", sa.BigInteger()),
        sa.Column("settled", sa.Boolean()),
        _held("tries", sa.Integer),
        sa.Column("retry_at", sa.BigInteger()),
        _held("epoch", sa.Integer),
        sa.Column("epoch_since", sa.BigInteger()),
        _held("closed", sa.Boolean),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("outcome", sa.LargeBinary()),
        sa.Column("resolution", sa.Text()),
        _held("earlier", sa.SmallInteger),
        postgresql_with=_HALF_FULL,
    )
    op.create_index(
        "effects_lease", "effects", ["lease_expires_at"], postgresql_where=_ON_LEASE, sqlite_where=_ON_LEASE
    )
    op.create_index(
        "effects_unsettled", "effects", ["state", "key"], postgresql_where=_ON_UNSETTLED, sqlite_where=_ON_UNSETTLED
    )
    op.create_index("effects_run", "effects", ["run_id", "step"])


def _statements(name: str) -> list[str]:
    """Return the statements of a SQL file beside this one; each begins after a blank line, at the margin."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [block for block in re.split(r"\n\n(?=--|create )", text) if re.search("^create ", block, re.MULTILINE)]
