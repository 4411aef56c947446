"""The database's clock in a statement: microseconds since 1970 in UTC, one moment for a whole transaction."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from guard.core.effects import Instant


class database_now(GenericFunction[int]):  # noqa: N801 - SQLAlchemy names a function's class as the function
    """The present moment, by the database."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(database_now, "postgresql")
def _on_postgresql(element: database_now, compiler: SQLCompiler, **options: Any) -> str:
    del element, compiler, options
    return "(extract(epoch from now()) * 1000000)::bigint"


@compiles(database_now, "sqlite")
def _on_sqlite(element: database_now, compiler: SQLCompiler, **options: Any) -> str:
    del element, compiler, options
    return "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"


def now(connection: Connection) -> Instant:
    """Select the present moment."""
    return Instant(connection.execute(sa.select(database_now())).scalar_one())
