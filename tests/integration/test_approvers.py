"""Who decides: where approvers have tokens of their own, nobody else; so that no agent approves what it asks for."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

AGENT, ALICE, BOB = ({"Authorization": f"Bearer {token}"} for token in ("agent-1", "a-secret", "b-secret"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that knows an agent, alice and bob by their tokens."""
    url = f"sqlite:///{tmp_path_factory.mktemp('approvers') / 'guard.db'}"
    approvers = "alice:a-secret, bob:b-secret"
    with ServiceProcess(url, TWICESHY_TOKENS="agent-1", TWICESHY_APPROVERS=approvers) as process:
        process.ask("PUT", "/v1/tools/refund", {"approval": {}}, **AGENT)
        yield process


@pytest.fixture
def waiting(guarded: ServiceProcess) -> Reply:
    """A begin that awaits approval."""
    run = f"run-{uuid4().hex}"
    body = {"tool": "refund", "arguments": {"amount": 80}, "run": run, "attempt": str(uuid4()), "requester": "alice"}
    asked = guarded.ask("POST", "/v1/effects", body, **AGENT)
    assert asked.status == 202
    return asked


def decide(service: ServiceProcess, waiting: Reply, who: dict[str, str], **said: str) -> Reply:
    """Approve, with somebody's token."""
    path = f"/v1/approvals/{waiting.body['approval']}/decide"
    return service.ask("POST", path, {"verdict": "approve"} | said, **who)


def test_an_agents_token_decides_nothing_whatever_name_it_gives(guarded: ServiceProcess, waiting: Reply) -> None:
    for said in ({}, {"by": "bob"}, {"by": "agent-1"}):
        minted = decide(guarded, waiting, AGENT, **said)
        assert (minted.status, minted.code) == (403, "forbidden")
    assert decide(guarded, waiting, {}).status == 401
    assert decide(guarded, waiting, {"Authorization": "Bearer wrong"}).status == 401


def test_an_approver_decides_in_their_own_name(guarded: ServiceProcess, waiting: Reply) -> None:
    other = decide(guarded, waiting, BOB, by="carol")
    assert (other.status, other.code) == (403, "forbidden")
    decided = decide(guarded, waiting, BOB)
    assert (decided.status, [vote["by"] for vote in decided.body["decisions"]]) == (200, ["bob"])
    assert decide(guarded, waiting, BOB, by="bob").status == 200


def test_an_approver_does_not_decide_what_was_asked_for_in_their_name(guarded: ServiceProcess, waiting: Reply) -> None:
    own = decide(guarded, waiting, ALICE)
    assert (own.status, own.code) == (403, "forbidden")
    assert "was asked for by alice" in own.body["detail"]


def test_an_approver_reads_everything_and_does_nothing_else(guarded: ServiceProcess, waiting: Reply) -> None:
    for path in ("/v1/approvals", "/v1/effects", f"/v1/effects/{waiting.body['key']}", "/v1/tools", "/v1/runs"):
        assert guarded.ask("GET", path, **ALICE).status == 200
    assert guarded.ask("POST", "/v1/blobs/read", {"digests": ["ab" * 32]}, **ALICE).body == {"blobs": {}, "left": []}
    body = {"tool": "refund", "arguments": {}, "run": "alices", "attempt": str(uuid4())}
    for method, path, said in (
        ("POST", "/v1/effects", body),
        ("POST", "/v1/batch", {"items": []}),
        ("POST", "/v1/runs", {"run": "alices"}),
        ("POST", "/v1/runs/alices/events", {"epoch": 1}),
        ("POST", f"/v1/effects/{waiting.body['key']}/resolve", {"as": "applied", "fence": 0, "reason": "x"}),
    ):
        refused = guarded.ask(method, path, said, **ALICE)
        assert (refused.status, refused.code) == (403, "forbidden"), path


def test_a_question_is_taken_back_in_ones_own_name(guarded: ServiceProcess, waiting: Reply) -> None:
    path = f"/v1/approvals/{waiting.body['approval']}/cancel"
    assert guarded.ask("POST", path, {"reason": "x", "by": "alice"}, **BOB).status == 403
    taken = guarded.ask("POST", path, {"reason": "no use"}, **BOB)
    assert (taken.status, taken.body["state"], taken.body["cancelled_by"]) == (200, "cancelled", "bob")


def test_an_agent_takes_its_question_back_in_nobodys_name(guarded: ServiceProcess, waiting: Reply) -> None:
    path = f"/v1/approvals/{waiting.body['approval']}/cancel"
    named = guarded.ask("POST", path, {"reason": "x", "by": "alice"}, **AGENT)
    assert (named.status, named.code) == (403, "forbidden")
    taken = guarded.ask("POST", path, {"reason": "no use"}, **AGENT)
    assert (taken.status, taken.body["cancelled_by"]) == (200, None)


@pytest.mark.parametrize(
    "lower",
    [
        {},
        {"approval": {"quorum": 1}},
        {"approval": {"quorum": 2, "four_eyes": False}},
        {"approval": {"quorum": 2, "when": "arguments.amount > `50`"}},
        {"approval": {"quorum": 2}, "repeat": "allow"},
        {"class": "read"},
    ],
)
def test_an_agents_token_lowers_no_rule_of_approval_and_an_approvers_does(
    guarded: ServiceProcess, lower: dict[str, Any]
) -> None:
    tool = f"pay-{uuid4().hex[:8]}"
    path, held = f"/v1/tools/{tool}", {"approval": {"quorum": 2}, "repeat": "ask"}
    assert guarded.ask("PUT", path, held, **AGENT).status == 200
    said = {"repeat": "ask"} | lower
    for method, to, body in (("PUT", path, said), ("POST", "/v1/tools/apply", {"tools": {tool: said}})):
        refused = guarded.ask(method, to, body, **AGENT)
        assert (refused.status, refused.code) == (403, "forbidden")
        assert tool in refused.body["detail"]
    assert guarded.ask("GET", path, **AGENT).body["version"] == 1
    raised = {"approval": {"quorum": 3}, "repeat": "ask"}
    assert guarded.ask("PUT", path, raised, **AGENT).body["declaration"]["approval"]["quorum"] == 3
    assert guarded.ask("POST", "/v1/tools/apply", {"tools": {tool: raised}}, **AGENT).status == 200
    if "class" not in lower:
        assert guarded.ask("PUT", path, said, **ALICE).status == 200


def test_an_agents_token_makes_the_service_send_no_request_and_an_approvers_does(guarded: ServiceProcess) -> None:
    path = f"/v1/tools/charge-{uuid4().hex}"
    asks = {"url": "http://127.0.0.1:9/", "applied": "status == `200`", "not_applied": "status == `404`"}
    said = {"probe": asks | {"headers": {"X-Key": "${env.TWICESHY_SECRET_BANK}"}}}
    refused = guarded.ask("PUT", path, said, **AGENT)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert guarded.ask("GET", path, **AGENT).status == 404
    assert guarded.ask("PUT", path, said, **ALICE).status == 200
    assert guarded.ask("PUT", path, said | {"attempts": 2}, **AGENT).status == 200


def test_code_that_says_less_than_a_person_leaves_the_rule_as_it_is(guarded: ServiceProcess) -> None:
    path = f"/v1/tools/pay-{uuid4().hex[:8]}"
    assert guarded.ask("PUT", path, {"approval": {}}, **AGENT).status == 200
    declared = guarded.ask("PUT", path, {"declared_by": "code"}, **AGENT)
    assert (declared.status, declared.body["declaration"]["approval"]["quorum"]) == (200, 1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"TWICESHY_APPROVERS": "alice"}, "name:token"),
        ({"TWICESHY_APPROVERS": "alice:"}, "name:token"),
        ({"TWICESHY_APPROVERS": "alice:a secret"}, "cannot carry"),
        ({"TWICESHY_APPROVERS": "alice:x,bob:x"}, "gives alice and bob one token"),
        ({"TWICESHY_APPROVERS": "alice:x", "TWICESHY_TOKENS": "x"}, "could approve its own calls"),
    ],
)
def test_approvers_that_cannot_be_told_apart_stop_the_service(
    settings: dict[str, str], said: str, tmp_path: Path
) -> None:
    started = subprocess.run(
        [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", f"sqlite:///{tmp_path / 'guard.db'}"],
        env=settings,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (started.returncode, said in started.stderr) == (2, True), started.stderr
