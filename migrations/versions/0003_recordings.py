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
_KEPT_RUNS = sa.text("kept_until IS NOT NULL")
_KEPT_RUNS_BEFORE = sa.text("kept_until IS NOT NULL AND expired_at IS NULL")
_OF_LOGS = ("events", "event_arguments")
_FINAL = {"events": ("run_id", "seq"), "event_arguments": ("run_id", "seq", "argument"), "blobs": ("tenant", "address")}
"""What is written once, by its key. On SQLite a row that is there could be replaced by an insert."""
_ONCE = "an event is written once"
_ABORT = f"SELECT RAISE(ABORT, '{_ONCE}')"
_KEPT_LOG = "SELECT 1 FROM runs WHERE id = OLD.run_id AND expired_at IS NULL"
_INTENTS = sa.text("intent IS NULL")
_DELIVERIES = sa.text("intent IS NOT NULL")
_NOTABLE = sa.text("empty OR outcome > 1")
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
    for name in reversed(_TABLES):
        op.drop_table(name)  # with its triggers
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_event_change()")
        op.execute("DROP FUNCTION refuse_event_deletion()")
    op.drop_index("runs_kept", "runs")
    _index_kept_runs(_KEPT_RUNS_BEFORE)
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
    op.execute("UPDATE runs SET kept_until = NULL WHERE expired_at IS NOT NULL")
    op.drop_index("runs_kept", "runs")
    _index_kept_runs(_KEPT_RUNS)


def _index_kept_runs(where: sa.TextClause) -> None:
    op.create_index("runs_kept", "runs", ["kept_until"], postgresql_where=where, sqlite_where=where)


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
        "events_kept",
        "events",
        ["tenant", "name", "kept_at", "run_id"],
        postgresql_where=_INTENTS,
        sqlite_where=_INTENTS,
    )
    op.create_index(
        "events_delivery", "events", ["run_id", "intent"], postgresql_where=_DELIVERIES, sqlite_where=_DELIVERIES
    )
    op.create_index(
        "events_notable",
        "events",
        ["tenant", "name", "run_id", "intent"],
        postgresql_where=_NOTABLE,
        sqlite_where=_NOTABLE,
    )
    op.create_table(
        "event_arguments",
        sa.Column("run_id", _uuid(), primary_key=True),
        sa.Column("seq", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("argument", sa.Text(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("name", sa.Text),
        _held("value", sa.Text().with_variant(sa.Text(collation="C"), "postgresql")),
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
        _held("identity_digest", sa.LargeBinary),
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
    """Refuse to change a log, or what it holds by content, whoever asks; only what an expired run left is deleted."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_event_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_ONCE}'; END $$"
        )
        for table in _FINAL:
            op.execute(
                f"CREATE TRIGGER {table}_are_final BEFORE UPDATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION refuse_event_change()"
            )
        op.execute(
            "CREATE FUNCTION refuse_event_deletion() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN IF EXISTS ({_KEPT_LOG}) THEN RAISE EXCEPTION '{_ONCE}'; END IF; RETURN OLD; END $$"
        )
        for table in _OF_LOGS:
            op.execute(
                f"CREATE TRIGGER {table}_are_kept BEFORE DELETE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION refuse_event_deletion()"
            )
        return
    for table, key in _FINAL.items():
        op.execute(f"CREATE TRIGGER {table}_are_final BEFORE UPDATE ON {table} BEGIN {_ABORT}; END")
        is_there = " AND ".join(f"{column} = NEW.{column}" for column in key)
        same = "SELECT RAISE(IGNORE)" if table == "blobs" else _ABORT  # the same text is brought again and again
        op.execute(
            f"CREATE TRIGGER {table}_are_first BEFORE INSERT ON {table} "
            f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {is_there}) BEGIN {same}; END"
        )
    for table in _OF_LOGS:
        op.execute(
            f"CREATE TRIGGER {table}_are_kept BEFORE DELETE ON {table} WHEN EXISTS ({_KEPT_LOG}) BEGIN {_ABORT}; END"
        )
