"""The service inside somebody else's program: the same application, over a database that is prepared first."""

import functools

from guard import logs
from guard.app import app, stop_waiting
from guard.preparation import prepare
from guard.settings import Settings
from guard.store.sql.refusals import DatabaseRefused
from twiceshy_contract.embedded import EmbeddedApp, NotOpened


async def open_app(database: str) -> EmbeddedApp:
    """Return the application over the database at an address; it opens it when its life starts. Raises NotOpened."""
    logs.keep_quiet()
    try:
        await prepare(database)
    except DatabaseRefused as error:
        raise NotOpened(str(error)) from error
    served = app(Settings(database=database))
    return EmbeddedApp(asgi=served, stop_waiting=functools.partial(stop_waiting, served))
