"""What the SDK and the server agree on, so that the service can be served inside the agent's own process.

The server's distribution names its `OpenApp` as the entry point `app` of the group `twiceshy.embedded`; so neither
of the two imports the other.
"""

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

ENTRY_POINTS: Final = "twiceshy.embedded"
ENTRY_POINT: Final = "app"


class EmbeddedApp(msgspec.Struct, frozen=True, kw_only=True):
    """The service over one database.

    `asgi` is the ASGI application; `stop_waiting`, called on its event loop, answers every request that is held.
    """

    asgi: Callable[..., Awaitable[None]]
    stop_waiting: Callable[[], None]


class OpenApp(Protocol):
    """Opens services, and lets all that it has opened or is opening in this process stand still for a fork."""

    async def __call__(self, database: str) -> EmbeddedApp:
        """Open the service over the database at an address. Raises NotOpened."""
        ...

    def before_fork(self) -> None:
        """Let go of what no child may inherit, and touch no database until the fork is over."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on, in the thread that forked."""
        ...

    def after_fork_in_child(self) -> None:
        """Begin empty: all that stands still is the parent's."""
        ...


class NotOpened(Exception):
    """The database cannot be used; the message says why, and what to do."""
