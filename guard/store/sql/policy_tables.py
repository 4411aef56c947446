"""The tables of people and policy: what stands around the effects. None of them is touched by an ordinary call.

As on `effects`, instants are integers of microseconds by the database's clock.
"""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import INT8RANGE, ExcludeConstraint

from guard.store.sql.tables import column, metadata, optional, uuid_type

tool_terms: Final = sa.Table(
    "tool_terms",
    metadata,
    sa.Column("tenant", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("since", sa.BigInteger, primary_key=True, autoincrement=False),
    column("version", sa.Integer),
)
"""From when on which version of a tool held. Rows are only added."""

loops: Final = sa.Table(
    "loops",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("slot", sa.LargeBinary, primary_key=True),
    column("calls", sa.BigInteger),
    column("tokens", sa.Text),
)
"""How often a run began a slot of a tool that has a loop limit, and with which attempts: the latest, 32 digits each."""

fork_answers: Final = sa.Table(
    "fork_answers",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    column("origin", sa.LargeBinary),
    column("token", uuid_type),
    column("delivered", sa.Boolean),
    sa.UniqueConstraint("run_id", "origin", name="fork_answers_origin"),
)
"""Which effect of its record a fork was given for which of its calls. Each is given once."""

fork_calls: Final = sa.Table(
    "fork_calls",
    metadata,
    sa.Column("run_id", uuid_type, primary_key=True),
    sa.Column("tool", sa.Text, primary_key=True),
    sa.Column("key", sa.LargeBinary, primary_key=True),
)
"""The calls of a fork that were let run."""

flags: Final = sa.Table(
    "flags",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("kind", sa.Text),
    column("subject", sa.Text),
    column("at", sa.BigInteger),
    optional("run", sa.Text),
    optional("tool", sa.Text),
    optional("key", sa.LargeBinary),
    column("detail", sa.Text),
    optional("closed_at", sa.BigInteger),
    optional("closed_by", sa.Text),
    optional("reason", sa.Text),
    sa.UniqueConstraint("tenant", "kind", "subject", name="flags_subject"),
)
"""What an operator should see. One of a kind for one subject."""
_OF_EFFECT: Final = sa.text("key IS NOT NULL")
sa.Index("flags_key", flags.c.key, postgresql_where=_OF_EFFECT, sqlite_where=_OF_EFFECT)

probes: Final = sa.Table(
    "probes",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    column("tenant", sa.Integer),
    column("tool", sa.Text),
    column("tries", sa.Integer),
    column("next_at", sa.BigInteger),
    optional("claim", uuid_type),
    optional("said_at", sa.BigInteger),
    optional("said", sa.Text),
)
"""When a doubtful effect's provider is asked next, and what the last answer was."""

approvals: Final = sa.Table(
    "approvals",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("key", sa.LargeBinary),
    column("round", sa.Integer),
    column("tool", sa.Text),
    column("tool_version", sa.Integer),
    optional("run", sa.Text),
    column("digest", sa.LargeBinary),
    column("arguments", sa.LargeBinary),
    optional("edited", sa.LargeBinary),
    optional("edited_digest", sa.LargeBinary),
    optional("edited_key", sa.LargeBinary),
    column("summary", sa.Text),
    optional("evidence", sa.LargeBinary),
    optional("requester", sa.Text),
    column("quorum", sa.Integer),
    column("four_eyes", sa.Boolean),
    column("state", sa.SmallInteger),
    column("asked_at", sa.BigInteger),
    optional("expires_at", sa.BigInteger),
    optional("decided_at", sa.BigInteger),
    optional("cancelled_by", sa.Text),
    optional("cancel_reason", sa.Text),
    sa.UniqueConstraint("key", "round", name="approvals_key"),
)
sa.Index("approvals_state", approvals.c.tenant, approvals.c.state, approvals.c.id)
sa.Index("approvals_digest", approvals.c.tenant, approvals.c.digest)
_EDITED: Final = sa.text("edited_key IS NOT NULL")
sa.Index("approvals_edited", approvals.c.edited_key, postgresql_where=_EDITED, sqlite_where=_EDITED)

approval_decisions: Final = sa.Table(
    "approval_decisions",
    metadata,
    sa.Column("approval", uuid_type, primary_key=True),
    sa.Column("person", sa.Text, primary_key=True),
    column("verdict", sa.SmallInteger),
    column("at", sa.BigInteger),
    optional("reason", sa.Text),
    optional("edited_digest", sa.LargeBinary),
)

sagas: Final = sa.Table(
    "sagas",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("name", sa.Text),
    column("run", sa.Text),
    column("state", sa.SmallInteger),
    optional("deadline", sa.BigInteger),
    optional("reason", sa.Text),
    column("started_at", sa.BigInteger),
    optional("failed_at", sa.BigInteger),
    optional("changed_at", sa.BigInteger),
    optional("ended_at", sa.BigInteger),
    sa.UniqueConstraint("tenant", "name", name="sagas_name"),
)
sa.Index("sagas_state", sagas.c.state, sagas.c.id)
_TIMED: Final = sa.text("state = 1 AND deadline IS NOT NULL")
sa.Index("sagas_deadline", sagas.c.deadline, postgresql_where=_TIMED, sqlite_where=_TIMED)

saga_steps: Final = sa.Table(
    "saga_steps",
    metadata,
    sa.Column("saga", uuid_type, primary_key=True),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    column("number", sa.Integer),
    column("tool", sa.Text),
    optional("compensation", sa.LargeBinary),
    column("state", sa.SmallInteger),
    optional("compensation_key", sa.LargeBinary),
    column("round", sa.Integer),
    column("enlisted_at", sa.BigInteger),
    optional("note", sa.Text),
    optional("misfit", sa.Text),
    optional("done_at", sa.BigInteger),
    optional("done_step", sa.BigInteger),
    sa.UniqueConstraint("key", name="saga_steps_key"),
)
_PASSED_OVER: Final = sa.text("state = 5")
sa.Index("saga_steps_late", saga_steps.c.key, postgresql_where=_PASSED_OVER, sqlite_where=_PASSED_OVER)

holds: Final = sa.Table(
    "holds",
    metadata,
    sa.Column("id", uuid_type, primary_key=True),
    column("tenant", sa.Integer),
    column("resource", sa.Text),
    column("starts_at", sa.BigInteger),
    column("ends_at", sa.BigInteger),
    column("priority", sa.Integer),
    column("state", sa.SmallInteger),
    column("holder", sa.Text),
    optional("run", sa.Text),
    optional("key", sa.LargeBinary),
    column("placed_at", sa.BigInteger),
    optional("expires_at", sa.BigInteger),
    optional("ended_at", sa.BigInteger),
    optional("rival", uuid_type),
    optional("rival_holder", sa.Text),
    optional("rival_priority", sa.Integer),
    ExcludeConstraint(
        (sa.column("tenant"), "="),
        (sa.column("resource"), "="),
        (sa.func.int8range(sa.column("starts_at"), sa.column("ends_at"), type_=INT8RANGE()), "&&"),
        name="holds_overlap",
        using="gist",
        where=sa.text("state IN (1, 2)"),
    ).ddl_if(dialect="postgresql"),
)
"""Claims on a resource for an interval: 1 held, 2 committed, 3 released, 4 lost, 5 expired."""
sa.Index("holds_resource", holds.c.tenant, holds.c.resource, holds.c.starts_at)
sa.Index("holds_key", holds.c.key, postgresql_where=_OF_EFFECT, sqlite_where=_OF_EFFECT)
_HELD: Final = sa.text("state = 1")
sa.Index("holds_expiring", holds.c.expires_at, postgresql_where=_HELD, sqlite_where=_HELD)
ENDED_HOLDS: Final = sa.text("state IN (3, 4, 5)")
sa.Index("holds_ended", holds.c.ended_at, postgresql_where=ENDED_HOLDS, sqlite_where=ENDED_HOLDS)
COMMITTED_HOLDS: Final = sa.text("state = 2")
sa.Index("holds_over", holds.c.ends_at, postgresql_where=COMMITTED_HOLDS, sqlite_where=COMMITTED_HOLDS)
sa.Index(
    "holds_claiming", holds.c.tenant, holds.c.resource, holds.c.ends_at, sqlite_where=sa.text("state IN (1, 2)")
).ddl_if(dialect="sqlite")
_LOST: Final = sa.text("state = 4")
sa.Index("holds_lost", holds.c.tenant, holds.c.resource, holds.c.ended_at, postgresql_where=_LOST, sqlite_where=_LOST)
