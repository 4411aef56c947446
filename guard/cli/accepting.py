"""Take connections from a listening socket, so that several processes have their share and none is lost at an end.

A server of uvloop takes all that wait at once, and so one of two workers would have all the connections of a client
that opens them together; of those that are opened one by one, whoever wakes first. And what is on its way into a socket
that is closed is reset: so the last act is to take what is there.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from typing import Final

from guard.logs import logger

_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_REST_SECONDS: Final = 1.0
"""How long no connection is taken where the system has no room for one."""
_log = logger("guard.serve")


class Accepting:
    """Takes one connection a turn of the loop, the next one being anybody's; begun within the loop.

    When the first of several comes, it waits for the seconds of `modesty`, in which others may be faster.
    """

    def __init__(
        self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol], modesty: Callable[[], float]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._protocol = protocol
        self._modesty = modesty
        self._connecting: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._rest = 0.0
        listening.settimeout(0)
        self._wait()

    def close(self) -> None:
        """Take no more; the socket stays open where others listen at it."""
        self._is_closed = True
        self._loop.remove_reader(self._listening)

    async def close_for_good(self) -> None:
        """Take what waits, and close the socket."""
        self.close()
        while self._take():
            pass
        self._listening.close()
        await asyncio.gather(*self._connecting, return_exceptions=True)

    def _wait(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listening, self._step_back)

    def _step_back(self) -> None:
        self._loop.remove_reader(self._listening)
        self._loop.call_later(self._modesty(), self._take_on)

    def _take_on(self) -> None:
        if self._is_closed:
            return
        if self._take():
            self._loop.call_soon(self._take_on)
        else:
            self._loop.call_later(self._rest, self._wait)

    def _take(self) -> bool:
        """Take a connection, if one waits; say whether one did."""
        self._rest = 0.0
        try:
            connection, _ = self._listening.accept()
        except OSError as error:  # mostly: there is none, or it has gone
            if error.errno in _EXHAUSTED:
                _log.error("no_room_for_connections", reason=str(error))
                self._rest = _REST_SECONDS
            return False
        connection.settimeout(0)
        task = self._loop.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        return True

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError as error:  # it has gone again
            connection.close()
            _log.info("connection_lost", reason=str(error))
