"""The server of one process: uvicorn's, but for how it begins to listen and how it ends.

It ends in this order: who waits is answered, and readiness says no. For as long as it lingers, it takes connections
still, and tells each that its answer is the last. Then it takes no more, answers what is under way, and closes what is
idle (see `guard.cli.protocol`). Then the lanes finish, and the connections to the database go back.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Collection
from types import FrameType
from typing import Final, cast

import uvicorn

from guard.app import stop_waiting
from guard.cli.accepting import Accepting
from guard.cli.protocol import LAST_ANSWER, OnePieceProtocol
from guard.cli.stalled import Stalled, Watched
from guard.web.front import Front
from outbox_relay.command import end_at_once

GRACE_SECONDS: Final = 10
"""How long a service that is asked to stop waits for its last requests."""
KEPT_SECONDS: Final = 75
"""How long a connection may be idle: longer than clients and balancers keep theirs, so that it is they who close it."""
_LOOK_SECONDS: Final = 0.05


class Serving(uvicorn.Server):
    """Serves one application at a socket that listens. `serves` is called once it does."""

    def __init__(self, served: Front, listening: socket.socket, serves: Callable[[], None]) -> None:
        super().__init__(_config(served))
        self._served = served
        self._listening = listening
        self._serves = serves
        self._accepting: Accepting | None = None
        self._watching: asyncio.Task[None] | None = None
        self.linger_seconds = 0.0
        self.is_alone = True
        self.relays = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order, and what relays at once where it is asked a second time: it may wait for a slow receiver."""
        if self.relays and self.should_exit:
            end_at_once()
        super().handle_exit(sig, frame)

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until that is to stop."""
        super().run(sockets=[] if sockets is None else sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then take connections."""
        await super().startup(sockets)
        if self.started:
            self._accepting = Accepting(self._listening, self._protocol, self._modesty)
            connections = cast("Collection[Watched]", self.server_state.connections)
            self._watching = asyncio.create_task(Stalled(connections).run())
            self._serves()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order."""
        stop_waiting(self._served)
        self.server_state.default_headers = [*self.server_state.default_headers, LAST_ANSWER]
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await self._linger()
        if self._accepting is not None:
            if self.is_alone:
                await self._accepting.close_for_good()
            else:
                self._accepting.close()
        await super().shutdown(sockets)
        if self._watching is not None:
            self._watching.cancel()

    async def _linger(self) -> None:
        until = time.monotonic() + self.linger_seconds
        while time.monotonic() < until and not self.force_exit:  # noqa: ASYNC110 - a signal's handler sets it
            await asyncio.sleep(_LOOK_SECONDS)

    def _modesty(self) -> float:
        """Let workers with fewer connections come first, a millisecond for each power of two; the least that counts."""
        return 0.0 if self.is_alone else len(self.server_state.connections).bit_length() / 1000

    def _protocol(self) -> asyncio.Protocol:
        return OnePieceProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state, _loop=None
        )


def _config(served: Front) -> uvicorn.Config:
    return uvicorn.Config(
        served,
        http=OnePieceProtocol,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_keep_alive=KEPT_SECONDS,
    )
