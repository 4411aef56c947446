"""Two processes of the service, two writers of one run: each event once, each begin by the present writer only."""

import asyncio
import threading
from collections.abc import Iterator
from uuid import uuid4

import pytest

from guard.store.sql.schema import migrate
from tests.service import Reply, ServiceProcess

ROUNDS = 12
Services = tuple[ServiceProcess, ServiceProcess]


@pytest.fixture
def services(empty_database_url: str) -> Iterator[Services]:
    """Two processes on one database."""
    asyncio.run(migrate(empty_database_url))
    with ServiceProcess(empty_database_url) as one, ServiceProcess(empty_database_url) as other:
        yield one, other


class Writer(threading.Thread):
    """Takes the run over, then begins and commits until it is taken over itself; so many times."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        super().__init__()
        self._service = service
        self._run = run
        self.begun: list[int] = []
        self.committed: list[str] = []
        self.refused: list[str] = []

    def run(self) -> None:
        for _ in range(ROUNDS):
            opened = self._service.ask("POST", "/v1/runs", {"run": self._run, "record": True}).body
            epoch, seq = opened["epoch"], opened["events"]
            for _ in range(4):
                begun = self._begin(epoch, seq + 1)
                if begun.status != 201:
                    self.refused.append(begun.code)
                    break
                self.begun.append(seq + 1)
                committed = self._service.report("commit", begun, result="paid")
                self.committed.append(committed.body["state"])
                seq += 1

    def _begin(self, epoch: int, seq: int) -> Reply:
        intent = {
            "phase": "intent",
            "seq": seq,
            "at": 0,
            "kind": "tool_call",
            "name": "pay",
            "digest": "ab" * 32,
        }
        return self._service.begin(self._run, arguments={"to": str(uuid4())}, epoch=epoch, events=[intent])


def test_of_two_live_writers_one_at_a_time_is_heard_and_no_commit_is_lost(services: Services) -> None:
    name = f"run-{uuid4().hex[:12]}"
    writers = [Writer(service, name) for service in services]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert not writer.is_alive()
    begun = sorted(seq for writer in writers for seq in writer.begun)
    assert {code for writer in writers for code in writer.refused} <= {"run-taken-over"}
    assert {state for writer in writers for state in writer.committed} == {"succeeded"}
    log = [event["seq"] for event in services[0].ask("GET", f"/v1/runs/{name}/events").body["items"]]
    assert log == list(range(1, len(log) + 1))
    assert len(begun) == len(set(begun))
    kept = set(log) - set(begun)  # taken over between the event and the lease: the event stays, the lease is not told
    assert set(begun) <= set(log)
    assert len(kept) <= sum(len(writer.refused) for writer in writers)
    effects = services[1].ask("GET", f"/v1/effects?run={name}&limit=500").body["items"]
    states = [effect["state"] for effect in effects]
    assert states.count("succeeded") == len(begun)
    assert set(states) <= {"succeeded", "pending"}
