"""How often each run began a slot: one row, its attempts in it."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import AttemptToken, RunId
from guard.store.sql.database import Database
from guard.store.sql.policy_tables import loops

_REMEMBERED: Final = 100 * 32
"""The digits of a hundred attempts."""


class SqlLoops:
    """The port's loops over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def admit(self, run: RunId, slot: bytes, token: AttemptToken, limit: int) -> bool:
        """Say whether an attempt is among those that may begin a slot; a new one is, while there is room.

        Of many attempts the latest hundred are remembered.
        """
        return await self._database.write(lambda connection, _at: _upsert(connection, run, slot, token, limit))


def _upsert(connection: Connection, run: RunId, slot: bytes, token: AttemptToken, limit: int) -> bool:
    """Count the attempt if it is new and there is room; return whether it is among those that were counted."""
    is_server = connection.dialect.name == "postgresql"
    dialect: Any = postgresql if is_server else sqlite
    find: Any = sa.func.strpos if is_server else sa.func.instr
    said, tokens = token.hex, loops.c.tokens
    is_counted = sa.and_(find(tokens, said) == 0, loops.c.calls < limit)
    more = sa.func.substr(sa.literal(said, sa.Text) + tokens, 1, _REMEMBERED)
    statement = (
        dialect.insert(loops)
        .values(run_id=run, slot=slot, calls=1, tokens=said)
        .on_conflict_do_update(
            index_elements=[loops.c.run_id, loops.c.slot],
            set_={
                "calls": loops.c.calls + sa.case((is_counted, 1), else_=0),
                "tokens": sa.case((is_counted, more), else_=tokens),
            },
        )
        .returning(find(tokens, said))
    )
    return bool(connection.execute(statement).scalar_one())
