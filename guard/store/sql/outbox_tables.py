"""The outbox's tables: destinations, what is to be delivered, what was, and the threads that mail belongs to.

A message moves from `outbox` to `outbox_history` when it is over, so that the queue holds only what is to be done:
a claim costs what waits, not what was ever sent. On PostgreSQL the history is partitioned by the day of its end, and
a day that is past its time is dropped as a whole.
"""

from typing import Any, Final

import sqlalchemy as sa

from guard.store.sql.codes import CLAIMED, DEAD, SENDING, WAITING
from guard.store.sql.tables import bytewise, column, metadata, optional, uuid_type

# A named integer that the database counts up: an alias of the row's id on SQLite, where only INTEGER can be that.
_counted: Final = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

destinations: Final = sa.Table(
    "destinations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    column("tenant", sa.Integer),
    column("name", bytewise),
    column("version", sa.Integer),
    column("declared_at", sa.BigInteger),
    column("settings", sa.LargeBinary),
    column("state", sa.SmallInteger),
    optional("note", sa.Text),
    column("changed_at", sa.BigInteger),
    optional("rate", sa.Float(53)),
    column("tokens", sa.Float(53)),
    column("refilled_at", sa.BigInteger),
    column("breaker", sa.SmallInteger),
    optional("open_until", sa.BigInteger),
    optional("held_until", sa.BigInteger),
    optional("allowance", sa.Integer),
    column("openings", sa.Integer),
    column("window_at", sa.BigInteger),
    column("window_good", sa.Integer),
    column("window_bad", sa.Integer),
    column("unreachable", sa.Integer),
    sa.UniqueConstraint("tenant", "name", name="destinations_name"),
    sqlite_autoincrement=True,
)
"""`tokens` are what may be sent at once of `rate` a second; the rest is the breaker, see `guard.core.breakers`."""


def _message_columns() -> list[sa.Column[Any]]:
    """Return what a message is, wherever it stands."""
    return [
        column("message", uuid_type),
        column("epoch", sa.Integer),
        column("tenant", sa.Integer),
        optional("effect", sa.LargeBinary),
        optional("run_id", uuid_type),
        optional("run", sa.Text),
        optional("destination_id", sa.Integer),
        column("destination", sa.Text),
        optional("lane", bytewise),
        optional("type", sa.Text),
        optional("recipient", sa.Text),
        column("content_type", sa.Text),
        column("headers", sa.LargeBinary),
        column("body", sa.LargeBinary),
        column("staged_at", sa.BigInteger),
        column("state", sa.SmallInteger),
        column("attempts", sa.Integer),
        optional("note", sa.Text),
    ]


PENDING: Final = sa.text(f"state = {WAITING} AND lane IS NULL")
IN_LANE: Final = sa.text("in_lane")
IN_FLIGHT: Final = sa.text(f"state IN ({CLAIMED}, {SENDING})")
STANDING: Final = sa.text(f"state >= {DEAD}")
"""Said in these words, a database knows that an index holds all that is asked for."""

outbox: Final = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", _counted, primary_key=True, autoincrement=True),
    *_message_columns(),
    column("in_lane", sa.Boolean),
    column("due_at", sa.BigInteger),
    optional("lease", uuid_type),
    optional("lease_until", sa.BigInteger),
    optional("repeatable", sa.Boolean),
    sa.UniqueConstraint("message", name="outbox_message"),
    sqlite_autoincrement=True,
    postgresql_with={
        "fillfactor": 70,
        "autovacuum_vacuum_scale_factor": 0,
        "autovacuum_vacuum_threshold": 1000,
        "autovacuum_vacuum_cost_delay": 0,
    },
)
"""`in_lane`: it has a lane and stands in the way of those behind it. `repeatable`: said when it was claimed, whether
it is sent again should nobody hear what became of it."""
sa.Index(
    "outbox_free",
    outbox.c.destination_id,
    outbox.c.due_at,
    outbox.c.id,
    postgresql_where=PENDING,
    sqlite_where=PENDING,
)
sa.Index(
    "outbox_lanes",
    outbox.c.destination_id,
    outbox.c.lane,
    outbox.c.id,
    postgresql_where=IN_LANE,
    sqlite_where=IN_LANE,
)
sa.Index("outbox_claimed", outbox.c.lease_until, postgresql_where=IN_FLIGHT, sqlite_where=IN_FLIGHT)
sa.Index("outbox_standing", outbox.c.state, outbox.c.id, postgresql_where=STANDING, sqlite_where=STANDING)

outbox_history: Final = sa.Table(
    "outbox_history",
    metadata,
    sa.Column("settled_at", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    *_message_columns(),
    optional("receipt", sa.Text),
    postgresql_partition_by="RANGE (settled_at)",
)
sa.Index("outbox_history_message", outbox_history.c.message)

outbox_tries: Final = sa.Table(
    "outbox_tries",
    metadata,
    sa.Column("message", uuid_type, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    column("at", sa.BigInteger),
    column("result", sa.SmallInteger),
    column("detail", sa.Text),
)
"""Tries that did not deliver."""
sa.Index("outbox_tries_at", outbox_tries.c.at)

stagings: Final = sa.Table(
    "stagings",
    metadata,
    sa.Column("effect", sa.LargeBinary, primary_key=True),
    column("tenant", sa.Integer),
    optional("token", uuid_type),
    column("messages", sa.LargeBinary),
    column("at", sa.BigInteger),
)
"""Which effects have staged: their rows are attached once, whoever brings proof later. `messages` are their ids."""

mails: Final = sa.Table(
    "mails",
    metadata,
    sa.Column("mail_id", sa.Text, primary_key=True),
    column("tenant", sa.Integer),
    column("message", uuid_type),
    column("epoch", sa.Integer),
    optional("thread", sa.Text),
    optional("thread_name", sa.Text),
    optional("run_id", uuid_type),
    optional("run", sa.Text),
    column("destination", sa.Text),
    column("recipient", sa.Text),
    column("staged_at", sa.BigInteger),
)
"""Which mail has which Message-ID, for the replies to it. `thread` is the id of the thread's root."""
_THREADED: Final = sa.text("thread IS NOT NULL")
sa.Index("mails_thread", mails.c.thread, postgresql_where=_THREADED, sqlite_where=_THREADED)
sa.Index("mails_staged", mails.c.staged_at)

replies: Final = sa.Table(
    "replies",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("digest", sa.LargeBinary),
    column("mail_id", sa.Text),
    optional("thread", sa.Text),
    optional("thread_name", sa.Text),
    optional("run_id", uuid_type),
    optional("run", sa.Text),
    optional("message", uuid_type),
    column("received_at", sa.BigInteger),
    column("body", sa.LargeBinary),
    sa.UniqueConstraint("tenant", "digest", name="replies_digest"),
)
"""Mail that came in. `digest` is that of its own Message-ID, `mail_id`; `body` is JSON."""
_OF_RUN: Final = sa.text("run_id IS NOT NULL")
sa.Index("replies_run", replies.c.run_id, replies.c.id, postgresql_where=_OF_RUN, sqlite_where=_OF_RUN)
sa.Index("replies_thread", replies.c.thread, replies.c.id, postgresql_where=_THREADED, sqlite_where=_THREADED)
