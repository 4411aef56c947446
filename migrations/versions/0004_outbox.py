"""The outbox: destinations, what is to be delivered, what was, and the threads that mail belongs to."""

import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op

revision = "0004_outbox"
down_revision = "0003_recordings"
branch_labels = None
depends_on = None

_TABLES = ("destinations", "outbox", "outbox_history", "outbox_tries", "stagings", "mails", "replies")
_QUEUE = {
    "fillfactor": 70,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 1000,
    "autovacuum_vacuum_cost_delay": 0,
}
_PENDING = sa.text("state = 1 AND lane IS NULL")
_IN_LANE = sa.text("in_lane")
_CLAIMED = sa.text("state IN (2, 3)")
_STANDING = sa.text("state >= 4")
_THREADED = sa.text("thread IS NOT NULL")
_OF_RUN = sa.text("run_id IS NOT NULL")
_FUNCTIONS = ("stage_messages_v1", "relay_turn_v1")
_DROPS = (
    "DROP FUNCTION relay_turn_v1",
    "DROP FUNCTION relay_verdict_v1",
    "DROP FUNCTION stage_messages_v1(staging_v1, bigint, bigint, uuid, text)",
    "DROP TYPE staging_v1",
    "DROP TYPE staged_v1",
)


def _uuid() -> sa.types.TypeEngine[UUID]:
    return sa.Uuid().with_variant(sa.LargeBinary(16), "sqlite")


def _bytewise() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _held(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind, nullable=False)


def _maybe(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind() if isinstance(kind, type) else kind)


def _counted(kind: Any) -> sa.Column[Any]:
    return sa.Column("id", kind, primary_key=True, autoincrement=True)


def upgrade() -> None:
    _create_destinations()
    _create_queue()
    _create_history()
    _create_mail()
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE outbox_history_rest PARTITION OF outbox_history DEFAULT")
        today = datetime.now(UTC).date()
        for day in (today + timedelta(days=days) for days in range(-1, 5)):
            op.execute(_partition(day))
        for name in _FUNCTIONS:
            for statement in _statements(f"{name}.sql"):
                op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for drop in _DROPS:
            op.execute(drop)
    for name in reversed(_TABLES):
        op.drop_table(name)  # with its partitions


def _partition(day: date) -> str:
    """Return the statement that makes the partition of a day, while there are no rows that it could have."""
    begin = (day - date(1970, 1, 1)).days * 86_400_000_000
    bounds = f"FROM ({begin}) TO ({begin + 86_400_000_000})"
    return f"CREATE TABLE outbox_history_{day:%Y%m%d} PARTITION OF outbox_history FOR VALUES {bounds}"


def _statements(name: str) -> list[str]:
    """Return the statements of a file, which stand apart by a blank line before `create` or a comment."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [statement for statement in re.split(r";\n\n(?=create |--)", text) if statement.strip()]


def _create_destinations() -> None:
    op.create_table(
        "destinations",
        _counted(sa.Integer()),
        _held("tenant", sa.Integer),
        _held("name", _bytewise()),
        _held("version", sa.Integer),
        _held("declared_at", sa.BigInteger),
        _held("settings", sa.LargeBinary),
        _held("state", sa.SmallInteger),
        _maybe("note", sa.Text),
        _held("changed_at", sa.BigInteger),
        _maybe("rate", sa.Float(53)),
        _held("tokens", sa.Float(53)),
        _held("refilled_at", sa.BigInteger),
        _held("breaker", sa.SmallInteger),
        _maybe("open_until", sa.BigInteger),
        _maybe("held_until", sa.BigInteger),
        _maybe("allowance", sa.Integer),
        _held("openings", sa.Integer),
        _held("window_at", sa.BigInteger),
        _held("window_good", sa.Integer),
        _held("window_bad", sa.Integer),
        _held("unreachable", sa.Integer),
        sa.UniqueConstraint("tenant", "name", name="destinations_name"),
        sqlite_autoincrement=True,
    )


def _message_columns() -> list[sa.Column[Any]]:
    return [
        _held("message", _uuid()),
        _held("epoch", sa.Integer),
        _held("tenant", sa.Integer),
        _maybe("effect", sa.LargeBinary),
        _maybe("run_id", _uuid()),
        _maybe("run", sa.Text),
        _maybe("destination_id", sa.Integer),
        _held("destination", sa.Text),
        _maybe("lane", _bytewise()),
        _maybe("type", sa.Text),
        _maybe("recipient", sa.Text),
        _held("content_type", sa.Text),
        _held("headers", sa.LargeBinary),
        _held("body", sa.LargeBinary),
        _held("staged_at", sa.BigInteger),
        _held("state", sa.SmallInteger),
        _held("attempts", sa.Integer),
        _maybe("note", sa.Text),
    ]


def _create_queue() -> None:
    op.create_table(
        "outbox",
        _counted(sa.BigInteger().with_variant(sa.Integer(), "sqlite")),
        *_message_columns(),
        _held("in_lane", sa.Boolean),
        _held("due_at", sa.BigInteger),
        _maybe("lease", _uuid()),
        _maybe("lease_until", sa.BigInteger),
        _maybe("repeatable", sa.Boolean),
        sa.UniqueConstraint("message", name="outbox_message"),
        sqlite_autoincrement=True,
        postgresql_with=_QUEUE,
    )
    for name, columns, where in (
        ("outbox_free", ["destination_id", "due_at", "id"], _PENDING),
        ("outbox_lanes", ["destination_id", "lane", "id"], _IN_LANE),
        ("outbox_claimed", ["lease_until"], _CLAIMED),
        ("outbox_standing", ["state", "id"], _STANDING),
    ):
        op.create_index(name, "outbox", columns, postgresql_where=where, sqlite_where=where)


def _create_history() -> None:
    op.create_table(
        "outbox_history",
        sa.Column("settled_at", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("id", sa.BigInteger(), primary_key=True, autoincrement=False),
        *_message_columns(),
        _maybe("receipt", sa.Text),
        postgresql_partition_by="RANGE (settled_at)",
    )
    op.create_index("outbox_history_message", "outbox_history", ["message"])
    op.create_table(
        "outbox_tries",
        sa.Column("message", _uuid(), primary_key=True),
        sa.Column("epoch", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        _held("at", sa.BigInteger),
        _held("result", sa.SmallInteger),
        _held("detail", sa.Text),
    )
    op.create_index("outbox_tries_at", "outbox_tries", ["at"])
    op.create_table(
        "stagings",
        sa.Column("effect", sa.LargeBinary(), primary_key=True),
        _held("tenant", sa.Integer),
        _maybe("token", _uuid()),
        _held("messages", sa.LargeBinary),
        _held("at", sa.BigInteger),
    )


def _create_mail() -> None:
    op.create_table(
        "mails",
        sa.Column("mail_id", sa.Text(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("message", _uuid()),
        _held("epoch", sa.Integer),
        _maybe("thread", sa.Text),
        _maybe("thread_name", sa.Text),
        _maybe("run_id", _uuid()),
        _maybe("run", sa.Text),
        _held("destination", sa.Text),
        _held("recipient", sa.Text),
        _held("staged_at", sa.BigInteger),
    )
    op.create_index("mails_thread", "mails", ["thread"], postgresql_where=_THREADED, sqlite_where=_THREADED)
    op.create_index("mails_staged", "mails", ["staged_at"])
    op.create_table(
        "replies",
        sa.Column("id", _uuid(), primary_key=True),
        _held("tenant", sa.Integer),
        _held("digest", sa.LargeBinary),
        _held("mail_id", sa.Text),
        _maybe("thread", sa.Text),
        _maybe("thread_name", sa.Text),
        _maybe("run_id", _uuid()),
        _maybe("run", sa.Text),
        _maybe("message", _uuid()),
        _held("received_at", sa.BigInteger),
        _held("body", sa.LargeBinary),
        sa.UniqueConstraint("tenant", "digest", name="replies_digest"),
    )
    op.create_index("replies_run", "replies", ["run_id", "id"], postgresql_where=_OF_RUN, sqlite_where=_OF_RUN)
    op.create_index("replies_thread", "replies", ["thread", "id"], postgresql_where=_THREADED, sqlite_where=_THREADED)
