"""Every kind of address leads to a real server: with a password, over TLS, through a file, a cluster, sentinels."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from guard.ports.store import Store
from tests.brokers import Broker, ValkeyServer, free_port, valkey_binary
from tests.contract.given import TENANT, key
from tests.contract.given_redis import Replica, replica, until
from tests.contract.test_retention_store import done
from tests.integration.sinks.mail_servers import certificate

_PASSWORD: Final = "s3cret/with@all:of?it"
_ESCAPED: Final = "s3cret%2Fwith%40all%3Aof%3Fit"
Start = Callable[[Broker], None]

pytestmark = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


class SentinelServer(Broker):
    """A sentinel that watches one server."""

    def __init__(self, watched: ValkeyServer) -> None:
        super().__init__("sentinel")
        self._watched = watched

    @property
    def url(self) -> str:
        return f"redis+sentinel://:{_ESCAPED}@127.0.0.1:{self.port}/main/0"

    def start(self) -> None:
        settings = self.folder / "sentinel.conf"
        lines = [f"port {self.port}", "bind 127.0.0.1", f"sentinel monitor main 127.0.0.1 {self._watched.port} 1"]
        lines.append(f'sentinel auth-pass main "{_PASSWORD}"')
        settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._run([str(valkey_binary()), str(settings), "--sentinel"], greeting=b"PING\r\n", says=b"+PONG")


class FileServer(Broker):
    """A server that is reached through a file."""

    @property
    def url(self) -> str:
        return f"unix://{self.folder}/valkey.sock?db=3"

    def start(self) -> None:
        command = [str(valkey_binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        command += ["--unixsocket", f"{self.folder}/valkey.sock", "--dir", str(self.folder)]
        self._run(command, greeting=b"PING\r\n", says=b"+PONG")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start servers, and end them after the test."""
    started: list[Broker] = []

    def begin(broker: Broker) -> None:
        started.append(broker)
        broker.start()

    try:
        yield begin
    finally:
        for broker in reversed(started):
            broker.remove()


async def serves(store: Store, url: str) -> None:
    """Check that two replicas at an address keep, count and hear what the other tells."""
    heard: list[bytes | None] = []
    async with AsyncExitStack() as stack:
        one: Replica = await stack.enter_async_context(replica(store, url))
        other: Replica = await stack.enter_async_context(replica(store, url))
        await stack.enter_async_context(other.accelerator.wire.listening(heard.append))
        await until(lambda: heard == [None])
        await one.knows()
        effects = [await done(store, number) for number in range(8)]
        await one.keep(*effects)
        assert [await other.recall(key(number)) for number in range(8)] == effects
        one.accelerator.wire.tell(b"word")
        await until(lambda: heard == [None, b"word"])
        one.accelerator.contended(TENANT, "pay", key(1))
        await until(lambda: one.counted.sent == 12)
        hottest = await other.accelerator.hottest(TENANT, 10)
        assert hottest is not None
        assert [(hot.tool, hot.begins) for hot in hottest] == [("pay", 1)]
        assert (one.counted.failures, other.counted.failures) == ([], [])


async def test_a_server_with_a_password(store: Store, start: Start) -> None:
    server = ValkeyServer(password=_PASSWORD)
    start(server)
    await serves(store, f"redis://:{_ESCAPED}@127.0.0.1:{server.port}/2")


async def test_a_user_who_may_do_no_more_than_is_needed(store: Store, start: Start) -> None:
    """The rights are those that the page on Redis names."""
    server = ValkeyServer()
    start(server)
    ask(server.port, f"{documented_rights()}\r\n".encode(), b"+OK")
    await serves(store, f"redis://twiceshy:secret@127.0.0.1:{server.port}/0")


async def test_a_wrong_password_is_said_and_reaches_nothing(store: Store, start: Start) -> None:
    server = ValkeyServer(password=_PASSWORD)
    start(server)
    async with replica(store, f"redis://:wrong@127.0.0.1:{server.port}", is_reached=False) as one:
        await until(lambda: "invalid username-password" in one.accelerator.reached.why)
        assert "wrong" not in one.accelerator.reached.address


async def test_a_server_behind_a_file(store: Store, start: Start) -> None:
    server = FileServer("valkey")
    start(server)
    await serves(store, server.url)


async def test_a_server_over_tls(store: Store, start: Start, tmp_path: Path) -> None:
    server = ValkeyServer()
    start(server)
    tls, authority = certificate(tmp_path)
    async with encrypted(server.port, tls) as port:
        await serves(store, f"rediss://localhost:{port}/0?ca={authority}")
        async with replica(store, f"rediss://localhost:{port}/0", is_reached=False) as stranger:
            await until(lambda: "CERTIFICATE_VERIFY_FAILED" in stranger.accelerator.reached.why)


async def test_a_cluster_of_which_one_host_is_dead(store: Store, start: Start) -> None:
    server = ValkeyServer(is_cluster=True)
    start(server)
    ask(server.port, b"CLUSTER ADDSLOTSRANGE 0 16383\r\n", b"+OK")
    await until(lambda: b"cluster_state:ok" in ask(server.port, b"CLUSTER INFO\r\n"))
    ask(server.port, f"{documented_rights()} +cluster|slots +command\r\n".encode(), b"+OK")
    await serves(store, f"redis+cluster://twiceshy:secret@127.0.0.1:{server.port},127.0.0.1:{free_port()}")


async def test_a_server_behind_sentinels_of_which_one_is_dead(store: Store, start: Start) -> None:
    server = ValkeyServer(password=_PASSWORD)
    start(server)
    sentinel = SentinelServer(server)
    start(sentinel)
    await serves(store, sentinel.url.replace("@", f"@127.0.0.1:{free_port()},"))


def documented_rights() -> str:
    """Return the command that makes a user with the rights that the page on Redis names."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "redis.md").read_text()
    return next(line.strip() for line in page.splitlines() if line.strip().startswith("ACL SETUSER"))


def ask(port: int, command: bytes, says: bytes = b"") -> bytes:
    """Send one command, and return how its answer begins."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(command)
        answer = connection.recv(1000)
    assert answer.startswith(says)
    return answer


@asynccontextmanager
async def encrypted(port: int, tls: ssl.SSLContext) -> AsyncIterator[int]:
    """Serve what a server at a port serves, over TLS."""
    tasks: set[asyncio.Task[None]] = set()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(both_ways(reader, writer))
        tasks.add(task)

    async def both_ways(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, behind = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(passed(reader, behind))
                group.create_task(passed(there, writer))
        finally:
            behind.close()
            writer.close()

    async def passed(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while piece := await source.read(2**16):
            target.write(piece)
            await target.drain()
        raise ConnectionError("one side has gone")

    server = await asyncio.start_server(taken, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
