"""Approvals while processes die: asked once, decided once, and what was decided holds whatever was lost."""

import threading
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from guard.core.approvals import Ballot, Question
from guard.core.effects import Key, TenantId
from guard.store.sql.engine import open_store
from tests.service import Reply, ServiceProcess

TENANT = TenantId(1)


@pytest.fixture
def service(database_url: str) -> Iterator[ServiceProcess]:
    """A service of the test's own, which it may kill."""
    with ServiceProcess(database_url) as process:
        assert process.ask("PUT", "/v1/tools/refund", {"approval": {}}).status == 200
        yield process


async def told(url: str, approval: UUID, ballot: Ballot) -> None:
    """Write a decision and no more, as a service that is killed right after it."""
    store = await open_store(url)
    try:
        assert await store.approvals.decide(TENANT, approval, ballot) is not None
    finally:
        await store.close()


async def asked(url: str, key: str, digest: bytes) -> str:
    """Write a question and no more, as a service that is killed before it writes the effect."""
    question = Question(
        key=Key(bytes.fromhex(key)),
        round=1,
        tool="refund",
        tool_version=1,
        run="run-1",
        digest=digest,
        arguments=b'{"to":"bob"}',
        summary="refund",
        evidence=b"{}",
        requester=None,
    )
    store = await open_store(url)
    try:
        return str((await store.approvals.ask(TENANT, question)).approval.id)
    finally:
        await store.close()


async def test_a_service_killed_between_the_denial_and_the_effect_heals_with_the_next_call(
    service: ServiceProcess, database_url: str
) -> None:
    waiting = service.begin("run-1", "refund")
    service.kill()
    await told(database_url, UUID(waiting.body["approval"]), Ballot(person="bob", verdict="deny", reason="no"))
    service.start()
    assert service.ask("GET", f"/v1/effects/{waiting.body['key']}").body["state"] == "pending"
    denied = service.begin("run-1", "refund")
    assert (denied.status, denied.body["state"]) == (200, "failed")
    assert denied.body["outcome"]["error"]["message"] == "no"
    assert service.ask("GET", f"/v1/effects/{waiting.body['key']}").body["state"] == "failed"


async def test_a_decision_that_is_said_again_writes_what_was_lost(service: ServiceProcess, database_url: str) -> None:
    waiting = service.begin("run-1", "refund")
    service.kill()
    await told(database_url, UUID(waiting.body["approval"]), Ballot(person="bob", verdict="deny", reason="no"))
    service.start()
    said = {"verdict": "deny", "by": "bob", "reason": "no"}
    assert service.ask("POST", f"/v1/approvals/{waiting.body['approval']}/decide", said).status == 200
    assert service.ask("GET", f"/v1/effects/{waiting.body['key']}").body["state"] == "failed"


async def test_a_service_killed_between_the_question_and_the_effect_does_not_ask_twice(
    service: ServiceProcess, database_url: str
) -> None:
    service.ask("POST", "/v1/runs", {"run": "run-1"})
    call = {"tool": "refund", "arguments": {"to": "bob"}, "run": "run-1"}
    named = service.ask("POST", "/v1/keys", call).body
    service.kill()
    approval = await asked(database_url, named["key"], bytes.fromhex(named["arguments_digest"]))
    service.start()
    waiting = service.begin("run-1", "refund")
    assert (waiting.status, waiting.body["key"], waiting.body["approval"]) == (202, named["key"], approval)


def test_it_is_asked_once_across_restarts(service: ServiceProcess) -> None:
    approvals = set()
    for _ in range(2):
        approvals.add(service.begin("run-1", "refund").body["approval"])
        service.kill()
        service.start()
    assert len(approvals) == 1
    assert len(service.ask("GET", "/v1/approvals").body["items"]) == 1


def test_a_service_killed_while_it_is_asked_has_asked_once(service: ServiceProcess) -> None:
    for number in range(2):
        replies: list[Reply | OSError] = []
        calls = [threading.Thread(target=_begin, args=(service, f"run-{number}", replies)) for _ in range(6)]
        for call in calls:
            call.start()
        service.kill()
        for call in calls:
            call.join()
        service.start()
        waiting = service.begin(f"run-{number}", "refund")
        listed = service.ask("GET", f"/v1/approvals?run=run-{number}").body["items"]
        assert [one["id"] for one in listed] == [waiting.body["approval"]]


def test_who_waits_at_one_service_hears_what_is_decided_at_another(service: ServiceProcess, database_url: str) -> None:
    waiting = service.begin("run-1", "refund")
    path = f"/v1/approvals/{waiting.body['approval']}"
    heard: list[Reply] = []
    listener = threading.Thread(target=lambda: heard.append(service.ask("GET", f"{path}?wait=30")))
    with ServiceProcess(database_url) as other:
        listener.start()
        assert other.ask("POST", f"{path}/decide", {"verdict": "approve", "by": "bob"}).status == 200
        listener.join(10)
    assert [reply.body["state"] for reply in heard] == ["approved"]


def test_an_approval_is_spent_by_its_effect_and_never_runs_a_doubtful_one_again(service: ServiceProcess) -> None:
    waiting = service.begin("run-1", "refund")
    service.ask("POST", f"/v1/approvals/{waiting.body['approval']}/decide", {"verdict": "approve", "by": "bob"})
    sent = service.begin("run-1", "refund", lease_seconds=1)
    assert sent.status == 201
    service.kill()  # with the agent: the mail is out, and nobody has said so
    service.start()
    while (again := service.begin("run-1", "refund")).code == "in-progress":
        pass
    assert (again.status, again.code) == (409, "outcome-in-doubt")
    assert service.report("commit", sent, result="sent").status == 200
    assert service.ask("POST", "/v1/runs/run-1/finish", {}).status == 200
    assert service.begin("run-1", "refund").body["decision"] == "replay"
    assert service.begin("run-1", "refund", {"to": "eve"}).code == "run-finished"


def test_a_service_that_stops_lets_nobody_wait(service: ServiceProcess) -> None:
    waiting = service.begin("run-1", "refund")
    heard: list[Reply] = []
    path = f"/v1/approvals/{waiting.body['approval']}?wait=30"
    listener = threading.Thread(target=lambda: heard.append(service.ask("GET", path)))
    listener.start()
    while not heard and service.ask("GET", "/health/live").status != 200:
        pass
    service.stop()
    listener.join(10)
    assert not listener.is_alive()


def _begin(service: ServiceProcess, run: str, replies: list[Reply | OSError]) -> None:
    try:
        replies.append(service.begin(run, "refund", worker=str(uuid4())))
    except OSError as error:
        replies.append(error)
