"""The logs of runs: events, what they hold by content, what runs are about, and where forks stopped."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0003_recordings"
down_revision = "0002_people_and_policy"
branch_labels = None
depends_on = None

_TABLES = ("events", "event_arguments", "blobs", "run_tags", "run_facts", "fork_pauses")
_RUN_COLUMNS = ("epoch", "events", "about", "workflow", "reference", "child_of")
_INTENTS = sa.text("intent IS NULL")
_DELIVERIES = sa.text("intent IS NOT NULL")
_REFERRED = sa.text("reference IS NOT NULL")
_OF_WORKFLOW = sa.text("workflow IS NOT NULL")
_CHILDREN = sa.text("child_of IS NOT NULL")


def _uuid() -> sa.types.TypeEngine[UUID]:
    return sa.Uuid().with_variant(sa.LargeBinary(16), "sqlite")


def _held(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind, nullable=False)


def _maybe(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind)


def upgrade() -> None:
    _widen_runs()
    _create_events()
    _create_around()
    _let_events_be_added_only()


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP TRIGGER events_are_final ON events")
        op.execute("DROP FUNCTION refuse_event_change()")
    else:
        op.execute("DROP TRIGGER events_are_final")
    for name in reversed(_TABLES):
        op.drop_table(name)
    for index in ("runs_reference", "runs_workflow", "runs_child_of"):
        op.drop_index(index, "runs")
    for name in _RUN_COLUMNS:
        op.drop_column("runs", name)
    op.drop_column("tenants", "salt")


def _widen_runs() -> None:
    op.add_column("tenants", sa.Column("salt", sa.LargeBinary()))
    op.add_column("runs", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("events", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("about", sa.LargeBinary()))
    op.add_column("runs", sa.Column("workflow", sa.Text()))
    op.add_column("runs", sa.Column("reference", sa.Text()))
    op.add_column("runs", sa.Column("child_of", sa.Text()))
    for name, columns, where in (
        ("runs_reference", ["tenant", "reference", "id"], _REFERRED),
        ("runs_workflow", ["tenant", "workflow", "id"], _OF_WORKFLOW),
        ("runs_child_of", ["tenant", "child_of", "id"], _CHILDREN),
    ):
        op.create_index(name, "runs", columns, postgresql_where=where, sqlite_where=where)


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        _held("tenant", sa.Integer),
        _held("kind", sa.SmallInteger),
        _held("name", sa.Text),
        _maybe("intent", sa.BigInteger),
        _maybe("outcome", sa.SmallInteger),
        _maybe("empty", sa.Boolean),
        _held("at", sa.BigInteger),
        _held("kept_at", sa.BigInteger),
        _held("digest", sa.LargeBinary),
        _held("body", sa.LargeBinary),
    )
    op.create_index(
        "events_name", "events", ["tenant", "name", "run_id", "seq"], postgresql_where=_INTENTS, sqlite_where=_INTENTS
    )
    op.create_index(
        "events_delivery", "events", ["run_id", "intent"], postgresql_where=_DELIVERIES, sqlite_where=_DELIVERIES
    )
    op.create_table(
        "event_arguments",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("argument", sa.Text(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("name", sa.Text),
        _held("value", sa.Text),
    )
    op.create_index("event_arguments_value", "event_arguments", ["tenant", "name", "argument", "value", "run_id"])
    op.create_table(
        "blobs",
        sa.Column("tenant", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("address", sa.LargeBinary(), primary_key=True),
        _held("size", sa.Integer),
        _held("body", sa.LargeBinary),
        _held("kept_at", sa.BigInteger),
    )


def _create_around() -> None:
    op.create_table(
        "run_tags",
        sa.Column("tenant", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("tag", sa.Text(), primary_key=True),
        sa.Column("run_id", _uuid(), primary_key=True),
    )
    op.create_table(
        "run_facts",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("at", sa.BigInteger(), primary_key=True, autoincrement=False),
        _held("tenant", sa.Integer),
        _held("value", sa.Text),
    )
    op.create_index("run_facts_value", "run_facts", ["tenant", "name", "value", "run_id"])
    op.create_table(
        "fork_pauses",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("key", sa.LargeBinary(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("tool", sa.Text),
        _held("arguments", sa.LargeBinary),
        _held("arguments_digest", sa.LargeBinary),
        _held("rule", sa.Text),
        _held("at", sa.BigInteger),
        _maybe("answer", sa.SmallInteger),
        _maybe("outcome", sa.LargeBinary),
        _maybe("reason", sa.Text),
        _maybe("answered_by", sa.Text),
        _maybe("answered_at", sa.BigInteger),
        _maybe("spent_by", _uuid()),
    )


def _let_events_be_added_only() -> None:
    """Refuse to change an event, whoever asks; retention may remove a whole run's."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'an event is written once'; END $$"
        )
        op.execute(
            "CREATE TRIGGER events_are_final BEFORE UPDATE ON events "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_event_change()"
        )
    else:
        op.execute(
            "CREATE TRIGGER events_are_final BEFORE UPDATE ON events "
            "BEGIN SELECT RAISE(ABORT, 'an event is written once'); END"
        )
