"""What the SDK and the server agree on, so that the service can be served inside the agent's own process.

The server's distribution names its `OpenApp` as the entry point `app` of the group `twiceshy.embedded`; so neither
of the two imports the other.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import msgspec

ENTRY_POINTS: Final = "twiceshy.embedded"
ENTRY_POINT: Final = "app"


class EmbeddedApp(msgspec.Struct, frozen=True, kw_only=True):
    """The service over one database.

    `asgi` is the ASGI application; `stop_waiting`, called on its event loop, answers every request that is held.
    """

    asgi: Callable[..., Awaitable[None]]
    stop_waiting: Callable[[], None]


OpenApp: TypeAlias = Callable[[str], Awaitable[EmbeddedApp]]
"""Opens the service over the database at an address. Raises NotOpened."""


class NotOpened(Exception):
    """The database cannot be used; the message says why, and what to do."""
