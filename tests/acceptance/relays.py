"""Relays as processes, and a receiver of webhooks that remembers what arrived, in which order."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from guard.ports.store import Store
from tests.integration.relaying import TENANT, stage
from twiceshy_contract.destinations import WebhookDestination

LANES: Final = 20
_SHIM: Final = """
import time
_now, _now_ns = time.time, time.time_ns
time.time = lambda: _now() + {seconds}
time.time_ns = lambda: _now_ns() + {seconds} * 1_000_000_000
"""


class Receiver:
    """Takes POSTs over HTTP/1.1; `arrivals` are pairs of `webhook-id` and body.

    `astray` is by how many seconds the worst `webhook-timestamp` was wrong.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.arrivals: list[tuple[str, str]] = []
        self.astray = 0.0
        self._changed = asyncio.Condition()

    @property
    def bodies(self) -> list[str]:
        """What arrived for the first time, in order."""
        return list(dict.fromkeys(body for _, body in self.arrivals))

    @property
    def duplicates(self) -> int:
        """How often something arrived that was there already."""
        return len(self.arrivals) - len(self.bodies)

    async def wait_for(self, count: int, seconds: float = 60) -> None:
        """Wait until so many different bodies have arrived."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: len(self.bodies) >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests on a connection until it ends."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                headers = {name.lower(): value for name, value in fields.items()}
                body = (await reader.readexactly(int(headers["content-length"]))).decode()
                async with self._changed:
                    self.arrivals.append((headers["webhook-id"], body))
                    self.astray = max(self.astray, abs(time.time() - int(headers["webhook-timestamp"])))
                    self._changed.notify_all()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Receive on a free port of the loopback."""
    receiver = Receiver(0)
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()


class RelayProcess:
    """`twiceshy relay`, ended by the pid that was started. `ahead` puts its clock wrong by so many seconds."""

    def __init__(self, database_url: str, folder: Path, *options: str, ahead: int = 0) -> None:
        self._command = [sys.executable, "-m", "twiceshy", "relay", "--database", database_url]
        self._command += ["--allow", "127.0.0.1/32", *options]
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}
        if ahead:
            (folder / "sitecustomize.py").write_text(_SHIM.format(seconds=ahead))
            self._environment["PYTHONPATH"] = str(folder)
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Start it, without waiting until it relays."""
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self._environment
        )
        return self

    def first_line(self) -> str:
        """Wait for the first line that it says."""
        assert self.process is not None
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, how: signal.Signals = signal.SIGKILL) -> int:
        """Send it a signal, and return its exit code."""
        process, self.process = self.process, None
        if process is None:
            return 0
        process.send_signal(how)
        try:
            return process.wait(20)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


async def staged(store: Store, receiver: Receiver, count: int) -> None:
    """Declare the receiver, and stage so many messages for it: half in lanes, half without."""
    settings = WebhookDestination(
        url=f"http://127.0.0.1:{receiver.port}/", deduplicates=True, timeout_seconds=1, concurrency=16, lanes="block"
    )
    record, _ = await store.destinations.declare(TENANT, "there", settings)
    half = count // 2
    await stage(store, record.place.id, [f"free {number}" for number in range(half)])
    for lane in range(LANES):
        bodies = [f"lane-{lane} {number}" for number in range(half // LANES)]
        await stage(store, record.place.id, bodies, lane=f"lane-{lane}")


def check_arrivals(receiver: Receiver, count: int) -> None:
    """Check that nothing was lost, that lanes kept their order, and that what came twice is told to be the same."""
    assert len(receiver.bodies) == count
    identities: Mapping[str, set[str]] = {body: set() for body in receiver.bodies}
    for identity, body in receiver.arrivals:
        identities[body].add(identity)
    assert {len(found) for found in identities.values()} == {1}
    assert max(Counter(next(iter(found)) for found in identities.values()).values()) == 1
    for lane in range(LANES):
        came = [body for body in receiver.bodies if body.startswith(f"lane-{lane} ")]
        assert came == [f"lane-{lane} {number}" for number in range(count // 2 // LANES)]


async def while_killed(receiver: Receiver, count: int, kill: Callable[[], None], times: int) -> None:
    """Kill something each time when another part of all messages has arrived, and wait for the rest."""
    for turn in range(1, times + 1):
        await receiver.wait_for(count * turn // (times + 1))
        await asyncio.to_thread(kill)
    await receiver.wait_for(count)
