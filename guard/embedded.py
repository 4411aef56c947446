"""The service inside somebody else's program: the same application, over a database that is prepared first."""

import functools
import os
from typing import Final

from guard import logs
from guard.app import app, stop_waiting
from guard.preparation import prepare
from guard.settings import Settings
from guard.store.sql.forks import FORKS
from guard.store.sql.refusals import DatabaseRefused
from outbox_relay.networks import VARIABLE, networks_of
from outbox_relay.reaching import opener, reaching_with
from twiceshy_contract.embedded import EmbeddedApp, NotOpened, OpenApp


class _Opening:
    """Opens the application over a database; all databases of this process stand still for a fork."""

    async def __call__(self, database: str) -> EmbeddedApp:
        """Return the application over a database, which it opens when its life starts. Raises NotOpened."""
        logs.keep_quiet()
        try:
            await prepare(database)
        except DatabaseRefused as error:
            raise NotOpened(str(error)) from error
        try:
            networks = networks_of(os.environ.get(VARIABLE, ""))
        except ValueError as error:
            raise NotOpened(str(error)) from error
        served = app(Settings(database=database), reaching_with(opener(networks)))
        return EmbeddedApp(asgi=served, stop_waiting=functools.partial(stop_waiting, served))

    def before_fork(self) -> None:
        FORKS.begin()

    def after_fork_in_parent(self) -> None:
        FORKS.end()

    def after_fork_in_child(self) -> None:
        FORKS.forget()


open_app: Final[OpenApp] = _Opening()
