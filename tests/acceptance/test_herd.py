"""A thundering herd: 5,000 clients while the database hangs. Queues stay bounded, all are answered in the end."""

import asyncio
import os
import resource
import signal
import subprocess
from collections import Counter
from pathlib import Path
from uuid import uuid4

import msgspec

from guard.store.sql.schema import migrate
from guard.web.room import MOST_BEGINS
from tests.servers import PostgresServer
from tests.service import Reply, ServiceProcess

CLIENTS = 5_000
SLOW = 600
LARGE = 2**20
FILES = 12_000
MIB_MORE = 600
RETRIES = 60
HEAD = "POST /v1/effects HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"


def allow_open_files() -> None:
    """Let this process, and those it starts, hold as many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < FILES:
        resource.setrlimit(
            resource.RLIMIT_NOFILE, (FILES if hard == resource.RLIM_INFINITY else min(FILES, hard), hard)
        )


def backends(server: PostgresServer) -> list[int]:
    """Return the server's processes."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    return [server.pid, *map(int, children)]


def memory(pid: int) -> int:
    """Return the most memory that a process has had, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


class Client:
    """One client of the herd: begins until it may execute, as Retry-After says."""

    def __init__(self, number: int, port: int, said: "Counter[str]") -> None:
        self._number, self._port, self._said = number, port, said
        attempt = f"019346a0-0000-7000-8000-{number:012d}"
        body = {"tool": "write", "arguments": {"n": number}, "run": f"herd-{number % 50}", "attempt": attempt}
        self._sent = msgspec.json.encode(body)

    async def act(self) -> str:
        """Return the decision."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        head = f"{HEAD}Content-Length: {len(self._sent)}"
        for _ in range(RETRIES):
            writer.write(f"{head}\r\n\r\n".encode() + self._sent)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.split(b"\r\n") if line.startswith(b"content-length"))
            body = msgspec.json.decode(await reader.readexactly(int(length.split(b":")[1])))
            if answer[9:12] in (b"200", b"201"):
                writer.close()
                return str(body["decision"])
            self._said[body["type"]] += 1
            await asyncio.sleep(body["retry_after_seconds"])
        return "gave up"


class SlowSenders:
    """Clients of reports that send half of a body, and nothing more."""

    def __init__(self, port: int, commit: str) -> None:
        self._port = port
        head = f"POST {commit} HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"
        self._sent = f"{head}Content-Length: {LARGE}\r\n\r\n".encode() + b" " * (LARGE // 2)
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> None:
        """Send the halves."""
        for _ in range(SLOW):
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(self._sent)
            await writer.drain()
            self._writers.append(writer)

    def leave(self) -> None:
        """Go."""
        for writer in self._writers:
            writer.transport.abort()


async def meters(service: ServiceProcess) -> dict[str, float]:
    """Read the meters of the service."""
    text: str = (await asyncio.to_thread(service.ask, "GET", "/metrics")).body
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


async def meet(service: ServiceProcess, granted: Reply) -> tuple["asyncio.Task[Reply]", "asyncio.Task[Reply]"]:
    """While too much is asked: what ends something waits, alone or in a batch; what begins something is put off."""
    commit = {"attempt": granted.body["attempt"], "fence": granted.body["fence"], "result": 7}
    path = f"/v1/effects/{granted.body['key']}/commit"
    begin = {"tool": "write", "arguments": {"n": -1}, "run": "late", "attempt": str(uuid4())}
    parts = [{"path": "/v1/effects", "body": begin}, {"path": path, "body": commit}]
    alone = asyncio.create_task(asyncio.to_thread(service.ask, "POST", path, commit))
    batch = asyncio.create_task(asyncio.to_thread(service.ask, "POST", "/v1/batch", {"requests": parts}))
    assert (await asyncio.to_thread(service.ask, "GET", "/health/live")).status == 200
    seen = await meters(service)
    assert seen["twiceshy_queue_length"] <= MOST_BEGINS + SLOW
    assert sum(value for name, value in seen.items() if name.startswith("twiceshy_put_off_total")) >= 500
    refused = await asyncio.to_thread(service.begin, "late", "write")
    assert (refused.status, refused.code) == (503, "overloaded")
    assert int(refused.headers["retry-after"]) >= refused.body["retry_after_seconds"] > 0
    return alone, batch


async def test_a_herd_meets_bounded_queues_and_every_client_is_answered_once(
    own_postgres_server: PostgresServer,
) -> None:
    allow_open_files()
    url = own_postgres_server.url()
    await asyncio.to_thread(lambda: asyncio.run(migrate(url)))
    with ServiceProcess(url, errors=subprocess.DEVNULL) as service:
        before = memory(service.pid)
        granted = await asyncio.to_thread(service.begin, "early", "write")
        slow = SlowSenders(service.port, f"/v1/effects/{granted.body['key']}/commit")
        await slow.connect()
        said: Counter[str] = Counter()
        frozen = backends(own_postgres_server)
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        herd = [asyncio.create_task(Client(number, service.port, said).act()) for number in range(CLIENTS)]
        try:
            for _ in range(2_000):
                if said["/problems/overloaded"] >= 500:
                    break
                await asyncio.sleep(0.01)
            committed, batched = await meet(service, granted)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(90):
            decisions = Counter(await asyncio.gather(*herd))
            assert [(await committed).status, (await batched).status] == [200, 200]
        begun, again = (await batched).body["answers"]
        assert begun["body"].get("decision") == "execute" or begun["body"]["type"] == "/problems/overloaded"
        assert (again["status"], again["body"]["outcome"]) == (200, {"result": 7})
        slow.leave()
        assert decisions == {"execute": CLIENTS}
        assert said["/problems/overloaded"] >= 500
        assert set(said) <= {"/problems/overloaded", "/problems/store-unavailable"}
        assert memory(service.pid) - before < MIB_MORE
        seen = await meters(service)
    assert seen["twiceshy_queue_length"] == 0
    assert seen["twiceshy_executing"] == CLIENTS + (begun["status"] == 201)
