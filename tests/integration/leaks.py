"""Where a secret is found that should be nowhere: in the files of a database, or in its rows."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import asyncpg


def places_of(text: str, database_url: str, files: Iterable[Path]) -> list[str]:
    """Name the files and the columns that hold a text."""
    found = [path.name for path in files if text.encode() in path.read_bytes()]
    if database_url.startswith("postgresql"):
        found += asyncio.run(_columns_with(database_url, text))
    return found


async def _columns_with(url: str, text: str) -> list[str]:
    connection = await asyncpg.connect(url)
    try:
        found = []
        for (table,) in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            columns = await connection.fetch(
                "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = $1", table
            )
            for column, kind in columns:
                readable = f"encode({column}, 'escape')" if kind == "bytea" else f"{column}::text"
                count = await connection.fetchval(
                    f"SELECT count(*) FROM {table} WHERE position($1 in {readable}) > 0", text
                )
                found += [f"{table}.{column}"] if count else []
        return found
    finally:
        await connection.close()
