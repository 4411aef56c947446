"""How statements are planned where statistics mislead: those of a queue are always of another moment."""

import sqlalchemy as sa
from sqlalchemy import Connection


def walk_indexes(connection: Connection) -> None:
    """Let nothing in this transaction scan a table for which an index serves; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SET LOCAL enable_seqscan = off"))
