"""The tables of recordings: the logs of runs, what they hold by content, and what is found by it.

Instants are integers of microseconds: `at` by the recorder's clock, all others by the database's. Events and blobs are
only added; a trigger refuses to change an event.
"""

from typing import Final

import sqlalchemy as sa

from guard.store.sql.tables import bytewise, column, metadata, optional, uuid_type

_INTENTS: Final = sa.text("intent IS NULL")
_DELIVERIES: Final = sa.text("intent IS NOT NULL")
_NOTABLE: Final = sa.text("empty OR outcome > 1")
"""What people look for, and what is rare: a result that holds nothing, and an end without a result."""

events: Final = sa.Table(
    "events",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    column("tenant", sa.Integer),
    column("kind", sa.SmallInteger),
    column("name", sa.Text),
    optional("intent", sa.BigInteger),
    optional("outcome", sa.SmallInteger),
    optional("empty", sa.Boolean),
    column("at", sa.BigInteger),
    column("kept_at", sa.BigInteger),
    column("digest", sa.LargeBinary),
    column("body", sa.LargeBinary),
)
"""An event: an intent, or the delivery of the outcome of the one that `intent` numbers. `body` is its JSON text."""
sa.Index(
    "events_name",
    events.c.tenant,
    events.c.name,
    events.c.run_id,
    events.c.seq,
    postgresql_where=_INTENTS,
    sqlite_where=_INTENTS,
)
sa.Index(
    "events_kept",
    events.c.tenant,
    events.c.name,
    events.c.kept_at,
    events.c.run_id,
    postgresql_where=_INTENTS,
    sqlite_where=_INTENTS,
)
sa.Index("events_delivery", events.c.run_id, events.c.intent, postgresql_where=_DELIVERIES, sqlite_where=_DELIVERIES)
sa.Index(
    "events_notable",
    events.c.tenant,
    events.c.name,
    events.c.run_id,
    events.c.intent,
    postgresql_where=_NOTABLE,
    sqlite_where=_NOTABLE,
)

event_arguments: Final = sa.Table(
    "event_arguments",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("argument", sa.Text, primary_key=True),
    column("tenant", sa.Integer),
    column("name", sa.Text),
    column("value", bytewise),
)
"""The small arguments at the top of each call, by their names: what a search finds it by."""
sa.Index(
    "event_arguments_value",
    event_arguments.c.tenant,
    event_arguments.c.name,
    event_arguments.c.argument,
    event_arguments.c.value,
    event_arguments.c.run_id,
)

blobs: Final = sa.Table(
    "blobs",
    metadata,
    sa.Column("tenant", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("address", sa.LargeBinary, primary_key=True),
    column("size", sa.Integer),
    column("body", sa.LargeBinary),
    column("kept_at", sa.BigInteger),
)
"""Texts of JSON by their content: `address` is their digest under the tenant's salt, `body` compressed (zstd)."""

run_tags: Final = sa.Table(
    "run_tags",
    metadata,
    sa.Column("tenant", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("tag", sa.Text, primary_key=True),
    sa.Column("run_id", uuid_type, primary_key=True),
)

run_facts: Final = sa.Table(
    "run_facts",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("at", sa.BigInteger, primary_key=True, autoincrement=False),
    column("tenant", sa.Integer),
    column("value", sa.Text),
)
"""What became known of a run afterwards; rows are only added, and the latest of a name counts. `value` is JSON."""
sa.Index("run_facts_value", run_facts.c.tenant, run_facts.c.name, run_facts.c.value, run_facts.c.run_id)

fork_pauses: Final = sa.Table(
    "fork_pauses",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    column("tenant", sa.Integer),
    column("tool", sa.Text),
    column("arguments", sa.LargeBinary),
    column("identity_digest", sa.LargeBinary),
    column("arguments_digest", sa.LargeBinary),
    column("rule", sa.Text),
    column("at", sa.BigInteger),
    optional("answer", sa.SmallInteger),
    optional("outcome", sa.LargeBinary),
    optional("reason", sa.Text),
    optional("answered_by", sa.Text),
    optional("answered_at", sa.BigInteger),
    optional("spent_by", uuid_type),
)
"""The calls at which a fork stopped, and what a person answered: an outcome, no, or yes for the one `spent_by`."""
