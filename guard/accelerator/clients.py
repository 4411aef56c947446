"""The connections to one Redis, whatever it is made of: a server, one behind sentinels, or a cluster.

Nothing here is tried again: whoever asks is better off without an answer than with one that comes late.
"""

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any, Final, Protocol

from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from guard.accelerator.address import Address, Host
from guard.accelerator.pipe import Command, Lost, Pipe, Told, connected

_SOCKET_SECONDS: Final = 1.0
"""Of what a connection does for itself; who asks has less patience."""
_READY: Final = 3
"""So many connections to each node are made before anybody asks: one each for reads, writes and words."""


class Client(Protocol):
    """Speaks to Redis. Every method raises whatever is raised beneath it."""

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands together; answer each in its place, with an error where it was refused."""

    async def greet(self, lost: Lost) -> None:
        """Connect anew, and see that it is answered; `lost` is told where a connection ends by itself."""

    async def listener(self, told: Told, lost: Lost) -> Pipe:
        """Return a pipe of its own, on which whoever has subscribed is told what is published."""

    async def close(self) -> None:
        """Close all connections but those that listen."""


def client_of(address: Address) -> Client:
    """Return the client of an address. It connects to nothing yet."""
    return _Cluster(address) if address.kind == "cluster" else _Server(address)


class _Server:
    """One server; behind sentinels, the one that they name."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._pipe: Pipe | None = None
        self._sentinel: Sentinel | None = None
        if address.kind == "sentinel":
            login = {"username": address.sentinel_user, "password": address.sentinel_password}
            self._sentinel = Sentinel(address.hosts, sentinel_kwargs=_options(address) | login)

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        if self._pipe is None:
            raise ConnectionError("nobody has connected yet")
        return await self._pipe.ask(commands)

    async def greet(self, lost: Lost) -> None:
        if self._pipe is not None:
            self._pipe.close()
        self._pipe = await connected(self._address, await self._host(), lost)

    async def listener(self, told: Told, lost: Lost) -> Pipe:
        return await connected(self._address, await self._host(), lost, told)

    async def close(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
        if self._sentinel is not None:
            await self._sentinel.aclose()

    async def _host(self) -> Host | None:
        if self._sentinel is None:
            return self._address.hosts[0] if self._address.hosts else None
        host, port = await self._sentinel.discover_master(self._address.service)
        return str(host), int(port)


class _Cluster:
    """A cluster; a word that is published at any of its nodes is heard at all of them."""

    def __init__(self, address: Address) -> None:
        self._address = address
        nodes = [ClusterNode(host, port) for host, port in address.hosts]
        self._cluster: RedisCluster = RedisCluster(
            startup_nodes=nodes, require_full_coverage=False, **_options(address)
        )
        self._turns = itertools.cycle(address.hosts)

    async def ask(self, commands: Sequence[Command]) -> list[Any]:
        pipe = self._cluster.pipeline()
        for command in commands:
            pipe.execute_command(*command)
        return list(await pipe.execute(raise_on_error=False))

    async def greet(self, lost: Lost) -> None:
        del lost  # the next who asks finds out
        await self._cluster.aclose()
        await self._cluster.initialize()
        nodes = self._cluster.get_primaries()
        await asyncio.gather(*(node.execute_command("PING") for node in nodes for _ in range(_READY)))

    async def listener(self, told: Told, lost: Lost) -> Pipe:
        return await connected(self._address, next(self._turns), lost, told)

    async def close(self) -> None:
        await self._cluster.aclose()


def _options(address: Address) -> dict[str, Any]:
    """Return what is said of every connection. Nothing is said to the server but what is needed, in RESP 2."""
    plain: dict[str, Any] = {
        "username": address.user,
        "password": address.password,
        "socket_timeout": _SOCKET_SECONDS,
        "socket_connect_timeout": _SOCKET_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }
    if not address.is_encrypted:
        return plain
    return plain | {"ssl": True, "ssl_ca_certs": address.ca}
