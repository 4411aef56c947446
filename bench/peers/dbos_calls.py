"""DBOS: an async workflow with one step, everything else its default. Runs in DBOS's own environment.

`python -m bench.peers.dbos_calls DATABASE_URL`. What its connections say of their durability is read on the
connections that DBOS itself opens and uses.
"""

import asyncio
import sys
from contextlib import nullcontext
from typing import Any, Final
from uuid import uuid4

import sqlalchemy as sa
from dbos import DBOS, SetWorkflowID
from sqlalchemy.pool import Pool

from bench.turns import serve

_ASKED: Final = {
    "sqlite": {"journal_mode": "pragma journal_mode", "synchronous": "pragma synchronous"},
    "postgresql": {"fsync": "show fsync", "synchronous_commit": "show synchronous_commit"},
}


async def _empty(number: int) -> int:
    return number


empty: Final[Any] = DBOS.step()(_empty)


async def _call(number: int) -> int:
    result: int = await empty(number)
    return result


workflow: Final[Any] = DBOS.workflow()(_call)


async def main(facts: dict[str, str]) -> None:
    """Take turns; every call is a workflow with an id of its own."""
    process = uuid4().hex

    async def call(number: int) -> None:
        with SetWorkflowID(f"{process}-{number}"):
            await workflow(number)

    await call(-1)
    await serve(lambda _: nullcontext(call), facts)


def _read_back(url: str, facts: dict[str, str]) -> None:
    """Ask every connection that DBOS takes out of its pool, once, what it promises."""
    asked = _ASKED["sqlite" if url.startswith("sqlite") else "postgresql"]

    def read(connection: Any, record: Any, _: object) -> None:
        if record.info.setdefault("twiceshy_asked", False):
            return
        record.info["twiceshy_asked"] = True
        cursor = connection.cursor()
        for name, statement in asked.items():
            found = str(cursor.execute(statement).fetchone()[0])
            if facts.setdefault(name, found) != found:
                raise SystemExit(f"DBOS's connections differ in {name}: {facts[name]} and {found}")
        cursor.close()
        connection.rollback()

    sa.event.listen(Pool, "checkout", read)


if __name__ == "__main__":
    said: dict[str, str] = {}
    _read_back(sys.argv[1], said)
    DBOS(config={"name": "bench", "system_database_url": sys.argv[1]})
    DBOS.launch()
    try:
        asyncio.run(main(said))
    finally:
        DBOS.destroy()
