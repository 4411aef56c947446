"""The plans by which a database would answer what is asked of it."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

Work = Callable[[Connection], object]


async def plans(url: str, work: Work) -> list[str]:
    """Do work on a bare connection, and return the plan of each of its statements."""
    if url.startswith("sqlite"):
        with sa.create_engine(url, poolclass=NullPool).begin() as connection:
            return _plans(connection, work, "EXPLAIN QUERY PLAN ")
    remote = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"), poolclass=NullPool)
    async with remote.begin() as held:
        return await held.run_sync(lambda connection: _plans(connection, work, "EXPLAIN "))


async def do(url: str, *statements: str) -> None:
    """Execute statements on a bare connection."""

    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    await plans(url, work)


async def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    """Select rows on a bare connection."""
    found: list[tuple[Any, ...]] = []
    await plans(url, lambda connection: found.extend(tuple(row) for row in connection.exec_driver_sql(statement)))
    return found


def _plans(connection: Connection, work: Work, prefix: str) -> list[str]:
    asked: list[tuple[str, Any]] = []

    def note(_c: object, _cursor: object, statement: str, parameters: Any, _context: object, _many: object) -> None:
        asked.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    work(connection)
    event.remove(connection, "before_cursor_execute", note)
    explained = [pair for pair in asked if pair[0].split(" ", 1)[0] in ("SELECT", "UPDATE", "WITH")]
    return ["\n".join(str(row[-1]) for row in connection.exec_driver_sql(prefix + s, p)) for s, p in explained]
