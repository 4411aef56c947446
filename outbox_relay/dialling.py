"""Where a request is dialled: every address is judged as the socket is made for it, however it was spelled or found.

A resolver alone cannot guard this: an address that is written into a URL never meets one.
"""

import asyncio
import contextvars
import re
import socket
from typing import Final

import aiohttp

from outbox_relay.names import AddressInfo, look_up
from outbox_relay.networks import Networks


class AddressRefused(OSError):
    """An address is not dialled. The text says why, and how an operator allows it."""


class Attempt:
    """One try of a request, and how far it came: before it `may_have_left`, nothing of it was written.

    `heard` is the beginning of what came back.
    """

    __slots__ = ("dialled", "heard", "may_have_left", "refused")

    def __init__(self) -> None:
        """Watch what is dialled from here on in this task."""
        self.refused: list[str] = []
        self.dialled: list[str] = []
        self.may_have_left = False
        self.heard = bytearray()
        _current.set(self)

    def heard_status(self) -> int | None:
        """Return the status of an answer whose whole head came, also where what stood behind it was no HTTP."""
        heads = bytes(self.heard)
        while found := _HEAD.match(heads):
            if found[1][0] != ord("1"):
                return int(found[1])
            heads = heads[found.end() :]
        return None


_current: Final[contextvars.ContextVar[Attempt]] = contextvars.ContextVar("attempt")
_HEAD: Final = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2})[ \r].*?\r\n\r\n", re.DOTALL)


class DialGuard:
    """Makes the sockets of a connector, and none for an address that is refused."""

    def __init__(self, networks: Networks) -> None:
        self._networks = networks

    def open_socket(self, address_info: aiohttp.AddrInfoType | AddressInfo) -> socket.socket:
        """Judge the address that is about to be dialled. Raises AddressRefused."""
        family, kind, protocol, _, address = address_info
        attempt = _current.get()
        literal = str(address[0])
        refusal = self._networks.refusal(literal)
        if refusal is not None:
            attempt.refused.append(refusal)
            raise AddressRefused(refusal)
        attempt.dialled.append(literal)
        return socket.socket(family, kind, protocol)


async def dial(guard: DialGuard, host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a host, one address after the other, among which the time is shared out.

    Raises AddressRefused where none of them may be dialled, and OSError where none answers.
    """
    attempt, failed = Attempt(), OSError(None, f"{host} has no address")
    found = await look_up(host, port)
    for info in found:
        try:
            async with asyncio.timeout(seconds / len(found)):
                return await _connected(guard, info)
        except AddressRefused:
            continue
        except OSError as error:  # TimeoutError is one
            failed = error
    if attempt.refused and not attempt.dialled:
        raise AddressRefused(" ".join(f"{text}." for text in dict.fromkeys(attempt.refused)))
    raise failed


async def _connected(guard: DialGuard, info: AddressInfo) -> socket.socket:
    made = guard.open_socket(info)
    try:
        made.setblocking(False)  # noqa: FBT003  it takes its argument by position alone
        await asyncio.get_running_loop().sock_connect(made, info[4])
    except BaseException:
        made.close()
        raise
    return made
