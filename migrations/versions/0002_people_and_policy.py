"""What stands around the effects: terms of tools, forks, windows, doubt, approvals, sagas, holds, flags, retention."""

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0002_people_and_policy"
down_revision = "0001_effects"
branch_labels = None
depends_on = None

_TABLES = (
    "tool_terms", "loops", "flags", "fork_answers", "fork_calls", "probes", "approvals", "approval_decisions", "sagas",
    "saga_steps", "holds",
)  # fmt: skip
_EDITED = sa.text("edited_key IS NOT NULL")
_OF_EFFECT = sa.text("key IS NOT NULL")
_SLOTTED = sa.text("slot IS NOT NULL")
_KEPT_ALONE = sa.text("step IS NULL AND state IN (3, 5) AND expired_at IS NULL")
_KEPT_RUNS = sa.text("kept_until IS NOT NULL AND expired_at IS NULL")
_FORKED = sa.text("parent_id IS NOT NULL")
_TIMED = sa.text("state = 1 AND deadline IS NOT NULL")
_PASSED_OVER = sa.text("state = 5")


def _uuid() -> sa.types.TypeEngine[UUID]:
    return sa.Uuid().with_variant(sa.LargeBinary(16), "sqlite")


def _held(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind, nullable=False)


def _maybe(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind)


def _id() -> sa.Column[Any]:
    return sa.Column("id", _uuid(), primary_key=True)


def upgrade() -> None:
    _widen()
    _create_registry()
    _create_forks()
    _create_doubt()
    _create_approvals()
    _create_sagas()
    _create_holds()
    if op.get_bind().dialect.name == "postgresql":
        for statement in _statements("apply_steps_v2.sql"):
            op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("drop function apply_steps_v2(uuid[], integer[], uuid[], step_v2[])")
        op.execute("drop function read_effect_v2(bytea)")
        for name in ("step_v2", "effect_v2"):
            op.execute(f"drop type {name}")
    for name in reversed(_TABLES):
        op.drop_table(name)
    indexes = (
        ("effects_slot", "effects"), ("effects_kept", "effects"), ("runs_kept", "runs"), ("runs_parent", "runs"),
        ("effects_slot_attempt", "effects"), ("effects_slot_arguments", "effects"), ("attempts_token", "attempts"),
    )  # fmt: skip
    for index, table in indexes:
        op.drop_index(index, table)
    for name in ("expired_at", "delivered", "edited", "slot"):
        op.drop_column("effects", name)
    for name in ("kept_until", "expired_at", "fork", "parent_id"):
        op.drop_column("runs", name)


def _widen() -> None:
    op.add_column("effects", sa.Column("slot", sa.LargeBinary()))
    op.add_column("effects", sa.Column("edited", sa.LargeBinary()))
    op.add_column("effects", sa.Column("delivered", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("effects", sa.Column("expired_at", sa.BigInteger()))
    op.add_column("runs", sa.Column("parent_id", _uuid()))
    op.add_column("runs", sa.Column("fork", sa.LargeBinary()))
    op.add_column("runs", sa.Column("expired_at", sa.BigInteger()))
    op.add_column("runs", sa.Column("kept_until", sa.BigInteger()))
    op.execute("UPDATE runs SET kept_until = ended_at WHERE ended_at IS NOT NULL")
    op.create_index(
        "effects_slot",
        "effects",
        ["slot", "occurrence", "generation"],
        postgresql_where=_SLOTTED,
        sqlite_where=_SLOTTED,
    )
    op.create_index(
        "effects_slot_arguments",
        "effects",
        ["slot", "arguments_digest", "occurrence", "generation"],
        postgresql_where=_SLOTTED,
        sqlite_where=_SLOTTED,
    )
    op.create_index(
        "effects_slot_attempt", "effects", ["slot", "attempt"], postgresql_where=_SLOTTED, sqlite_where=_SLOTTED
    )
    op.create_index(
        "effects_kept",
        "effects",
        ["tenant", "tool", "ended_at"],
        postgresql_where=_KEPT_ALONE,
        sqlite_where=_KEPT_ALONE,
    )
    op.create_index("runs_kept", "runs", ["kept_until"], postgresql_where=_KEPT_RUNS, sqlite_where=_KEPT_RUNS)
    op.create_index("attempts_token", "attempts", ["token"])


def _create_registry() -> None:
    op.create_table(
        "tool_terms",
        sa.Column("tenant", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("since", sa.BigInteger(), primary_key=True, autoincrement=False),
        _held("version", sa.Integer),
    )
    op.execute(
        "INSERT INTO tool_terms (tenant, name, since, version) SELECT tenant, name, held_since, version FROM tools"
    )
    op.create_table(
        "loops",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("slot", sa.LargeBinary(), primary_key=True),
        _held("calls", sa.BigInteger),
        _held("tokens", sa.Text),
    )
    op.create_table(
        "flags",
        _id(),
        _held("tenant", sa.Integer),
        _held("kind", sa.Text),
        _held("subject", sa.Text),
        _held("at", sa.BigInteger),
        _maybe("run", sa.Text),
        _maybe("tool", sa.Text),
        _maybe("key", sa.LargeBinary),
        _held("detail", sa.Text),
        _maybe("closed_at", sa.BigInteger),
        _maybe("closed_by", sa.Text),
        _maybe("reason", sa.Text),
        sa.UniqueConstraint("tenant", "kind", "subject", name="flags_subject"),
    )
    op.create_index("flags_key", "flags", ["key"], postgresql_where=_OF_EFFECT, sqlite_where=_OF_EFFECT)


def _create_forks() -> None:
    op.create_table(
        "fork_answers",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        _held("origin", sa.LargeBinary),
        _held("token", _uuid()),
        _held("delivered", sa.Boolean),
        sa.UniqueConstraint("run_id", "origin", name="fork_answers_origin"),
    )
    op.create_table(
        "fork_calls",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("tool", sa.Text(), primary_key=True),
        sa.Column("key", sa.LargeBinary(), primary_key=True),
    )
    op.create_index("runs_parent", "runs", ["parent_id"], postgresql_where=_FORKED, sqlite_where=_FORKED)


def _create_doubt() -> None:
    op.create_table(
        "probes",
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("tool", sa.Text),
        _held("tries", sa.Integer),
        _held("next_at", sa.BigInteger),
        _maybe("claim", _uuid()),
        _maybe("said_at", sa.BigInteger),
        _maybe("said", sa.Text),
    )


def _create_approvals() -> None:
    op.create_table(
        "approvals",
        _id(),
        _held("tenant", sa.Integer),
        _held("key", sa.LargeBinary),
        _held("round", sa.Integer),
        _held("tool", sa.Text),
        _held("tool_version", sa.Integer),
        _maybe("run", sa.Text),
        _held("digest", sa.LargeBinary),
        _held("arguments", sa.LargeBinary),
        _maybe("edited", sa.LargeBinary),
        _maybe("edited_digest", sa.LargeBinary),
        _maybe("edited_key", sa.LargeBinary),
        _held("summary", sa.Text),
        _maybe("evidence", sa.LargeBinary),
        _maybe("requester", sa.Text),
        _held("quorum", sa.Integer),
        _held("four_eyes", sa.Boolean),
        _held("state", sa.SmallInteger),
        _held("asked_at", sa.BigInteger),
        _maybe("expires_at", sa.BigInteger),
        _maybe("decided_at", sa.BigInteger),
        _maybe("cancelled_by", sa.Text),
        _maybe("cancel_reason", sa.Text),
        sa.UniqueConstraint("key", "round", name="approvals_key"),
    )
    op.create_index("approvals_state", "approvals", ["tenant", "state", "id"])
    op.create_index("approvals_digest", "approvals", ["tenant", "digest"])
    op.create_index("approvals_edited", "approvals", ["edited_key"], postgresql_where=_EDITED, sqlite_where=_EDITED)
    op.create_table(
        "approval_decisions",
        sa.Column("approval", _uuid(), primary_key=True),
        sa.Column("person", sa.Text(), primary_key=True),
        _held("verdict", sa.SmallInteger),
        _held("at", sa.BigInteger),
        _maybe("reason", sa.Text),
        _maybe("edited_digest", sa.LargeBinary),
    )


def _create_sagas() -> None:
    op.create_table(
        "sagas",
        _id(),
        _held("tenant", sa.Integer),
        _held("name", sa.Text),
        _held("run", sa.Text),
        _held("state", sa.SmallInteger),
        _maybe("deadline", sa.BigInteger),
        _maybe("reason", sa.Text),
        _held("started_at", sa.BigInteger),
        _maybe("failed_at", sa.BigInteger),
        _maybe("changed_at", sa.BigInteger),
        _maybe("ended_at", sa.BigInteger),
        sa.UniqueConstraint("tenant", "name", name="sagas_name"),
    )
    op.create_index("sagas_state", "sagas", ["state", "id"])
    op.create_index("sagas_deadline", "sagas", ["deadline"], postgresql_where=_TIMED, sqlite_where=_TIMED)
    op.create_table(
        "saga_steps",
        sa.Column("saga", _uuid(), primary_key=True),
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        _held("number", sa.Integer),
        _held("tool", sa.Text),
        _maybe("compensation", sa.LargeBinary),
        _held("state", sa.SmallInteger),
        _maybe("compensation_key", sa.LargeBinary),
        _held("round", sa.Integer),
        _held("enlisted_at", sa.BigInteger),
        _maybe("note", sa.Text),
        _maybe("misfit", sa.Text),
        _maybe("done_at", sa.BigInteger),
        _maybe("done_step", sa.BigInteger),
        sa.UniqueConstraint("key", name="saga_steps_key"),
    )
    op.create_index("saga_steps_late", "saga_steps", ["key"], postgresql_where=_PASSED_OVER, sqlite_where=_PASSED_OVER)


def _create_holds() -> None:
    op.create_table(
        "holds",
        _id(),
        _held("tenant", sa.Integer),
        _held("resource", sa.Text),
        _held("starts_at", sa.BigInteger),
        _held("ends_at", sa.BigInteger),
        _held("priority", sa.Integer),
        _held("state", sa.SmallInteger),
        _held("holder", sa.Text),
        _maybe("run", sa.Text),
        _maybe("key", sa.LargeBinary),
        _held("placed_at", sa.BigInteger),
        _maybe("expires_at", sa.BigInteger),
        _maybe("ended_at", sa.BigInteger),
        _maybe("rival", _uuid()),
        _maybe("rival_holder", sa.Text),
        _maybe("rival_priority", sa.Integer),
    )
    op.create_index("holds_resource", "holds", ["tenant", "resource", "starts_at"])
    op.create_index("holds_key", "holds", ["key"], postgresql_where=_OF_EFFECT, sqlite_where=_OF_EFFECT)
    held = sa.text("state = 1")
    op.create_index("holds_expiring", "holds", ["expires_at"], postgresql_where=held, sqlite_where=held)
    ended = sa.text("state IN (3, 4, 5)")
    op.create_index("holds_ended", "holds", ["ended_at"], postgresql_where=ended, sqlite_where=ended)
    committed = sa.text("state = 2")
    op.create_index("holds_over", "holds", ["ends_at"], postgresql_where=committed, sqlite_where=committed)
    lost = sa.text("state = 4")
    op.create_index("holds_lost", "holds", ["tenant", "resource", "ended_at"], postgresql_where=lost, sqlite_where=lost)
    if op.get_bind().dialect.name == "sqlite":
        claiming = sa.text("state IN (1, 2)")
        op.create_index("holds_claiming", "holds", ["tenant", "resource", "ends_at"], sqlite_where=claiming)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE EXTENSION IF NOT EXISTS btree_gist")
        op.execute(
            "ALTER TABLE holds ADD CONSTRAINT holds_overlap EXCLUDE USING gist "
            "(tenant WITH =, resource WITH =, int8range(starts_at, ends_at) WITH &&) WHERE (state IN (1, 2))"
        )


def _statements(name: str) -> list[str]:
    """Return the statements of a SQL file beside this one; each begins after a blank line, at the margin."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [block for block in re.split(r"\n\n(?=--|create )", text) if re.search("^create ", block, re.MULTILINE)]
