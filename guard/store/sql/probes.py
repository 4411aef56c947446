"""Probes: whose provider is asked next, claimed by compare and set so that no two ask at once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Duration, Instant, Key, TenantId
from guard.core.probing import pause
from guard.ports.probes import Claim, ProbeState
from guard.store.sql.clock import database_now
from guard.store.sql.codes import IN_DOUBT
from guard.store.sql.database import Database
from guard.store.sql.policy_tables import probes
from guard.store.sql.tables import effects, tools

_IN_DOUBT: Final = sa.literal_column(str(IN_DOUBT), sa.SmallInteger)
"""As text of the statement: the planner then sees that the partial index fits."""
_IS_DUE: Final = (
    effects.c.state == _IN_DOUBT,
    effects.c.closed.is_(sa.false()),
    sa.or_(probes.c.key.is_(None), probes.c.next_at <= database_now()),
)
_ASKED: Final = effects.outerjoin(probes, probes.c.key == effects.c.key)
_DECLARES_PROBE: Final[Mapping[str, sa.ColumnElement[bool]]] = {
    "postgresql": sa.literal_column("""position('"probe":{'::bytea in tools.declaration) > 0""", sa.Boolean),
    "sqlite": sa.literal_column("""instr(tools.declaration, CAST('"probe":{' AS BLOB)) > 0""", sa.Boolean),
}
"""The text in which a declaration with a probe differs from one without."""
_SINCE: Final = sa.func.coalesce(probes.c.next_at, 0)


class _Due(NamedTuple):
    """An effect about which it is time to ask, and how often it was asked about."""

    key: bytes
    tenant: TenantId
    tool: str
    tries: int


class SqlProbes:
    """The port's probes over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def due_tools(self) -> list[tuple[TenantId, str]]:
        """Return the tools with an HTTP probe and an effect in open doubt about which it is time to ask.

        That which is due longest comes first.
        """
        names = await self._database.read(_select_probed)
        if not names:
            return []
        return await self._database.read(lambda connection: _select_due_tools(connection, names))

    async def claim(self, tenant: TenantId, tools: Sequence[str], limit: int, hold: Duration) -> list[Claim]:
        """Claim effects of these tools in open doubt about which it is time to ask, longest due first."""
        found = await self._database.read(lambda connection: _select_due(connection, tenant, tools, limit))
        if not found:
            return []
        return await self._database.write(lambda connection, at: _claim(connection, at, found, hold))

    async def answered(self, claim: Claim, said: str, earliest: Instant | None) -> None:
        """Write what was said; the next question comes after a pause, and not before `earliest`."""

        def work(connection: Connection, at: Instant) -> None:
            next_at = Instant(max(at + pause(claim.tries), earliest or 0))
            _update_claimed(connection, claim, {"said": said, "said_at": at, "next_at": next_at, "claim": None})

        await self._database.write(work)

    async def forget(self, key: Key) -> None:
        """Forget that there were questions: the doubt is settled."""
        await self._database.write(lambda connection, _at: _delete(connection, key))

    async def get(self, key: Key) -> ProbeState | None:
        """Return how the questions about an effect stand; None: there were none."""
        return await self._database.read(lambda connection: _select_one(connection, key))


def _claim(connection: Connection, at: Instant, found: Sequence[_Due], hold: Duration) -> list[Claim]:
    token = uuid4()
    until = {row.key: Instant(at + max(hold, pause(row.tries + 1))) for row in found}
    rows = [
        {"key": row.key, "tenant": row.tenant, "tool": row.tool, "tries": 1, "next_at": until[row.key], "claim": token}
        for row in sorted(found)
    ]
    tries = _upsert_due(connection, at, rows)
    return [
        Claim(key=Key(row.key), token=token, tries=tries[row.key], until=until[row.key])
        for row in found
        if row.key in tries
    ]


def _select_probed(connection: Connection) -> list[str]:
    """Select the names of tools of which a version declares an HTTP probe; where none does, nobody looks further."""
    statement = sa.select(tools.c.name).where(_DECLARES_PROBE[connection.dialect.name]).distinct()
    return list(connection.execute(statement).scalars())


def _select_due_tools(connection: Connection, names: Sequence[str]) -> list[tuple[TenantId, str]]:
    """Select those of these tools with an effect in open doubt about which it is time to ask, longest due first."""
    statement = (
        sa.select(effects.c.tenant, effects.c.tool)
        .select_from(_ASKED)
        .where(*_IS_DUE, effects.c.tool.in_(names))
        .group_by(effects.c.tenant, effects.c.tool)
        .order_by(sa.func.min(_SINCE), effects.c.tool)
    )
    return [(TenantId(tenant), tool) for tenant, tool in connection.execute(statement)]


def _select_due(connection: Connection, tenant: TenantId, tools: Sequence[str], limit: int) -> Sequence[_Due]:
    """Select the effects of these tools about which it is time to ask, longest due first."""
    statement = (
        sa.select(effects.c.key, effects.c.tenant, effects.c.tool, sa.func.coalesce(probes.c.tries, 0))
        .select_from(_ASKED)
        .where(*_IS_DUE, effects.c.tenant == tenant, effects.c.tool.in_(tools))
        .order_by(_SINCE, effects.c.key)
        .limit(limit)
    )
    return [_Due(bytes(key), tenant, tool, tries) for key, tenant, tool, tries in connection.execute(statement)]


def _upsert_due(connection: Connection, at: Instant, rows: Sequence[dict[str, Any]]) -> dict[bytes, int]:
    """Claim each effect about which it is still time to ask; return how often each was asked about, by its key.

    The rows are sorted by key, so that no two batches deadlock.
    """
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(probes).values(list(rows))
    statement = statement.on_conflict_do_update(
        index_elements=[probes.c.key],
        set_={
            "claim": statement.excluded.claim,
            "next_at": statement.excluded.next_at,
            "tries": probes.c.tries + 1,
        },
        where=probes.c.next_at <= at,
    ).returning(probes.c.key, probes.c.tries)
    return {bytes(key): tries for key, tries in connection.execute(statement)}


def _update_claimed(connection: Connection, claim: Claim, values: dict[str, str | Instant | UUID | None]) -> None:
    """Write to a question that is still claimed by whom it was."""
    connection.execute(
        sa.update(probes).where(probes.c.key == claim.key, probes.c.claim == claim.token).values(**values)
    )


def _delete(connection: Connection, key: Key) -> None:
    """Delete the questions about an effect."""
    connection.execute(sa.delete(probes).where(probes.c.key == key))


def _select_one(connection: Connection, key: Key) -> ProbeState | None:
    """Select how the questions about an effect stand."""
    columns = (probes.c.tries, probes.c.next_at, probes.c.said)
    row = connection.execute(sa.select(*columns).where(probes.c.key == key)).first()
    return None if row is None else ProbeState(tries=row.tries, next_at=Instant(row.next_at), said=row.said)
