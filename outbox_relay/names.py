"""The addresses of names, asked of the system in threads of their own.

The system cannot be interrupted while it looks for a name, and may look for half a minute. In a pool that others work
in, a few names that nobody answers for would hold up files, certificates and everything else that is done there.
"""

import asyncio
import os
import socket
import threading
from concurrent.futures import Future
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

Address = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
AddressInfo = tuple[int, int, int, str, Address]
"""Family, type, protocol, name and address, as sockets are made of."""
MOST_AT_ONCE: Final = 64
"""How many names are looked for at once; a name that is looked for already counts once."""
_Question = tuple[int, str, int, int]
_under_way: Final[dict[_Question, Future[list[AddressInfo]]]] = {}
_lock: Final = threading.Lock()


async def look_up(host: str, port: int, family: int = socket.AF_UNSPEC) -> list[AddressInfo]:
    """Return the addresses of a host. Raises OSError. Whoever waits no longer is not waited for by the thread."""
    question = (os.getpid(), host, port, family)  # after a fork there is no thread that would answer
    with _lock:
        answer = _under_way.get(question)
        if answer is None:
            if len(_under_way) >= MOST_AT_ONCE:
                raise OSError(None, f"{MOST_AT_ONCE} other names are being looked for, and none is found")
            answer = _under_way[question] = Future()
            threading.Thread(target=_ask, args=(question, answer), name="names", daemon=True).start()
    return await asyncio.shield(asyncio.wrap_future(answer))


class Names(AbstractResolver):
    """What a connector asks for the addresses of a name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses of a name. Raises OSError."""
        return [
            ResolveResult(
                hostname=host,
                host=literal(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in await look_up(host, port, family)
        ]

    async def close(self) -> None:
        """Close nothing."""


def literal(address: Address) -> str:
    """Return a socket's address without its port, with the zone that a link-local one needs."""
    text = str(address[0])
    return f"{text}%{address[3]}" if len(address) > 3 and address[3] and "%" not in text else text


def _ask(question: _Question, answer: "Future[list[AddressInfo]]") -> None:
    _, host, port, family = question
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
        answer.set_result(
            [(int(kind), int(type_), number, name, address) for kind, type_, number, name, address in found]
        )
    except Exception as error:  # noqa: BLE001  whoever asked is told
        answer.set_exception(error)
    finally:
        with _lock:
            del _under_way[question]
