"""The service or the database goes away: nothing runs unguarded, nothing is lost, and all recovers by itself."""

import itertools
import sqlite3
import time
from collections import Counter
from pathlib import Path

from guard.store.sql.schema import migrate
from tests.acceptance.conftest import Agent, StartAgent
from tests.servers import PostgresServer
from tests.service import Reply, ServiceProcess


def test_without_the_service_the_tool_does_not_run(service: ServiceProcess, sink: Path) -> None:
    service.stop()
    agent = Agent(service.url, sink, "impatient", "nobody", patience=2)
    try:
        assert agent.hear() == "GuardUnavailable"
    finally:
        agent.end()
    assert sink.read_text() == ""


def test_a_service_killed_in_the_middle_of_a_thousand_calls_executes_none_twice_and_loses_no_acknowledged_one(
    service: ServiceProcess, start_agent: StartAgent, sink: Path
) -> None:
    agents = [start_agent("many", "crash", str(first), "250") for first in (0, 250, 500, 750)]
    assert [agent.hear() for agent in agents] == ["ready"] * 4
    for agent in agents:
        agent.tell()
    heard: list[str] = []
    for _ in range(3):
        heard += [agent.hear() for _ in range(30) for agent in agents]
        service.kill()
        service.start()
    heard += list(itertools.chain.from_iterable(agent.hear_all() for agent in agents))

    assert len(heard) == 1000
    assert not [line for line in heard if line.startswith("gave-up")]
    executed = Counter(line.removeprefix("charge ") for line in sink.read_text().splitlines())
    assert max(executed.values()) == 1
    done = {line.removeprefix("done ") for line in heard if line.startswith("done ")}
    assert done <= set(executed)
    recorded = _succeeded(service)
    assert done <= set(recorded)
    assert all(outcome == {"result": int(number) * 10} for number, outcome in recorded.items())


def _succeeded(service: ServiceProcess) -> dict[str, object]:
    """Read every succeeded effect of the crash runs: its number and its recorded outcome."""
    found: dict[str, object] = {}
    cursor = ""
    while True:
        page = service.ask("GET", f"/v1/effects?state=succeeded&limit=500{cursor}").body
        for item in page["items"]:
            shown = service.ask("GET", f"/v1/effects/{item['key']}").body
            found[str(shown["arguments"]["number"])] = shown["outcome"]
        if page["next"] is None:
            return found
        cursor = f"&after={page['next']}"


async def test_a_postgresql_that_dies_is_a_503_and_the_service_recovers_by_itself(
    own_postgres_server: PostgresServer,
) -> None:
    url = own_postgres_server.url()
    await migrate(url)
    with ServiceProcess(url) as service:
        grant = service.begin("outage")
        own_postgres_server.kill()
        gone = service.report("commit", grant, result="kept")
        assert (gone.status, gone.code, gone.headers["retry-after"]) == (503, "store-unavailable", "1")
        assert service.ask("GET", "/health/ready").code == "store-unavailable"
        assert service.ask("GET", "/health/live").status == 200
        own_postgres_server.start()
        assert _until_taken(service, "commit", grant, result="kept") == {"result": "kept"}
        assert service.begin("outage").body["outcome"] == {"result": "kept"}


def test_a_sqlite_file_that_another_program_holds_is_a_503_and_the_service_recovers_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "held.db"
    with ServiceProcess(f"sqlite:///{path}") as service:
        grant = service.begin("held")
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        gone = service.report("commit", grant, result="kept")
        assert (gone.status, gone.code) == (503, "store-unavailable")
        holder.execute("ROLLBACK")
        holder.close()
        assert _until_taken(service, "commit", grant, result="kept") == {"result": "kept"}


def _until_taken(service: ServiceProcess, verb: str, grant: Reply, **fields: object) -> object:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        reply = service.report(verb, grant, **fields)
        if reply.status == 200:
            return reply.body["outcome"]
    raise AssertionError("the service did not recover")
