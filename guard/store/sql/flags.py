"""Flags: raised once of a kind for a subject, closed once."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, Key, TenantId
from guard.core.flags import ITSELF, Flag, RaisedFlag
from guard.ports.flags import FlagFilter
from guard.store.sql.cursors import AfterFlag, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import new_id
from guard.store.sql.policy_tables import flags
from guard.store.sql.tables import evidence
from twiceshy_contract.flags import FlagKind


class SqlFlags:
    """The port's flags over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def raise_all(self, tenant: TenantId, flags: Sequence[Flag]) -> None:
        """Raise each flag whose kind was never raised for its subject; what a person has closed stays closed."""
        if flags:
            await self._database.write(lambda connection, at: _insert(connection, at, tenant, flags))

    async def settle(self, tenant: TenantId, kind: FlagKind, subjects: str, reason: str) -> None:
        """Close by itself every open flag of a kind whose subject begins with these words."""
        said = {"closed_by": ITSELF, "reason": reason}
        await self._database.write(lambda connection, at: _update_of(connection, at, (tenant, kind, subjects), said))

    async def page(self, tenant: TenantId, chosen: FlagFilter) -> tuple[list[RaisedFlag], str | None]:
        """Return flags, newest first, and the cursor of the next page. Raises ValueError for a foreign cursor."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterFlag | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of flags before.")
        last = None if place is None else place.flag
        found = await self._database.read(lambda connection: _select_page(connection, tenant, chosen, last))
        if len(found) <= chosen.limit:
            return found, None
        return found[: chosen.limit], cursor_of(AfterFlag(found[chosen.limit - 1].id))

    async def close(self, tenant: TenantId, flag: UUID, by: str | None, reason: str) -> RaisedFlag | None:
        """Close a flag; return it as it stands (a closed one unchanged), or None where there is none."""

        def work(connection: Connection, at: Instant) -> RaisedFlag | None:
            _update_open(connection, at, tenant, flag, {"closed_by": by, "reason": reason})
            return _select_one(connection, tenant, flag)

        return await self._database.write(work)

    async def count_open(self, tenant: TenantId) -> int:
        """Count the flags that nobody has closed."""
        return await self._database.read(lambda connection: _select_open(connection, tenant))

    async def unflagged(self, limit: int) -> list[Key]:
        """Return keys of effects that have more pieces of evidence than flags."""
        return await self._database.read(lambda connection: _select_unflagged(connection, limit))


def _flag_of(row: sa.Row[Any]) -> RaisedFlag:
    flag = Flag(
        kind=row.kind,
        subject=row.subject,
        detail=row.detail,
        run=row.run,
        tool=row.tool,
        key=None if row.key is None else Key(row.key),
    )
    return RaisedFlag(
        id=row.id,
        flag=flag,
        at=Instant(row.at),
        closed_at=row.closed_at,
        closed_by=row.closed_by,
        reason=row.reason,
    )


def _insert(connection: Connection, at: Instant, tenant: TenantId, raised: Sequence[Flag]) -> None:
    """Add each flag unless there is one of its kind for its subject, and open what was closed by itself.

    They are sorted, so that no two batches deadlock.
    """
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    rows = [
        {"id": new_id(at), "tenant": tenant, "at": at, **{name: getattr(flag, name) for name in Flag.__struct_fields__}}
        for _, flag in sorted({(flag.kind, flag.subject): flag for flag in raised}.items())
    ]
    statement = dialect.insert(flags).values(rows)
    again = {"detail": statement.excluded.detail, "at": at, "closed_at": None, "closed_by": None, "reason": None}
    subject = ("tenant", "kind", "subject")
    went = sa.and_(flags.c.closed_at.is_not(None), flags.c.closed_by == ITSELF)
    connection.execute(statement.on_conflict_do_update(index_elements=subject, set_=again, where=went))


def _update_of(
    connection: Connection, at: Instant, whose: tuple[TenantId, FlagKind, str], said: dict[str, str]
) -> None:
    """Close the flags of a kind that are open and whose subject begins so."""
    tenant, kind, subjects = whose
    of_kind = (flags.c.tenant == tenant, flags.c.kind == kind, flags.c.closed_at.is_(None))
    begins_so = sa.func.substr(flags.c.subject, 1, len(subjects)) == subjects
    connection.execute(sa.update(flags).where(*of_kind, begins_so).values(closed_at=at, **said))


def _update_open(
    connection: Connection, at: Instant, tenant: TenantId, flag: UUID, said: dict[str, str | None]
) -> None:
    """Close the flag if it is open."""
    connection.execute(
        sa.update(flags)
        .where(flags.c.tenant == tenant, flags.c.id == flag, flags.c.closed_at.is_(None))
        .values(closed_at=at, **said)
    )


def _select_one(connection: Connection, tenant: TenantId, flag: UUID) -> RaisedFlag | None:
    """Select the flag of an id."""
    row = connection.execute(sa.select(flags).where(flags.c.tenant == tenant, flags.c.id == flag)).first()
    return None if row is None else _flag_of(row)


def _select_page(connection: Connection, tenant: TenantId, chosen: FlagFilter, last: UUID | None) -> list[RaisedFlag]:
    """Select the flags that come next, newest first, one more than the page holds."""
    statement = sa.select(flags).where(flags.c.tenant == tenant).order_by(flags.c.id.desc()).limit(chosen.limit + 1)
    if chosen.kind is not None:
        statement = statement.where(flags.c.kind == chosen.kind)
    if chosen.state is not None:
        is_open = flags.c.closed_at.is_(None)
        statement = statement.where(is_open if chosen.state == "open" else ~is_open)
    if last is not None:
        statement = statement.where(flags.c.id < last)
    return [_flag_of(row) for row in connection.execute(statement)]


def _select_open(connection: Connection, tenant: TenantId) -> int:
    """Count the flags that nobody has closed."""
    counted = sa.select(sa.func.count()).select_from(flags)
    return connection.execute(counted.where(flags.c.tenant == tenant, flags.c.closed_at.is_(None))).scalar_one()


def _select_unflagged(connection: Connection, limit: int) -> list[Key]:
    """Select the effects that have more pieces of evidence than flags that are raised of evidence."""
    raised = (
        sa.select(sa.func.count())
        .select_from(flags)
        .where(flags.c.key == evidence.c.key, flags.c.kind.in_(("contradiction", "double")))
        .scalar_subquery()
    )
    statement = (
        sa.select(evidence.c.key).group_by(evidence.c.key).having(sa.func.count() > raised).order_by(evidence.c.key)
    )
    return [Key(key) for key in connection.execute(statement.limit(limit)).scalars()]
