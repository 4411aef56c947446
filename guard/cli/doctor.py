"""What `twiceshy doctor --database` asks: a database looked at without a service in between."""

import asyncio

from guard.cli.migrate import said_plainly
from guard.service.status import Status
from guard.store.sql.engine import open_store
from guard.web.api.status import database_status
from guard.web.requests import DEFAULT_TENANT
from twiceshy_contract.status import DatabaseStatus


def examine(database: str) -> DatabaseStatus:
    """Look at a database. Raises click.ClickException, one line that says what is wrong with it."""
    with said_plainly():
        return asyncio.run(_examine(database))


async def _examine(database: str) -> DatabaseStatus:
    store = await open_store(database)
    try:
        return database_status(await Status(store)(DEFAULT_TENANT))
    finally:
        await store.close()
