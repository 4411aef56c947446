"""What an operator sees of the service: one line a request, its id everywhere, and meters."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service import ServiceProcess


def meter(service: ServiceProcess, name: str) -> float:
    """Read one meter, 0 where it has not been touched."""
    reply = service.ask("GET", "/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain")
    found = re.search(rf"^{re.escape(name)} (\S+)$", str(reply.body), re.MULTILINE)
    return 0.0 if found is None else float(found[1])


def test_a_replay_counts_as_a_cache_hit_and_a_rival_as_contention(service: ServiceProcess, run: str) -> None:
    tool = f"pay-{run}"
    assert service.ask("PUT", f"/v1/tools/{tool}", {"class": "side_effect"}).status == 200
    granted = service.begin(run, tool=tool)
    service.begin(run, tool=tool)
    service.report("commit", granted, result=1)
    service.begin(run, tool=tool)
    service.begin(run, tool=tool)
    assert meter(service, f'idempotency_lock_contention_total{{tool="{tool}"}}') == 1
    assert meter(service, f'idempotency_cache_hit_total{{tool="{tool}"}}') == 2
    decisions = {kind: meter(service, f'twiceshy_decisions_total{{decision="{kind}",tool="{tool}"}}') for kind in
                 ("execute", "replay", "in-progress")}  # fmt: skip
    assert decisions == {"execute": 1, "replay": 2, "in-progress": 1}


def test_names_that_callers_make_up_share_one_label(service: ServiceProcess, run: str) -> None:
    before = meter(service, 'twiceshy_decisions_total{decision="execute",tool="(undeclared)"}')
    service.begin(run, tool=f"made-up-{run}")
    assert meter(service, 'twiceshy_decisions_total{decision="execute",tool="(undeclared)"}') == before + 1
    assert run not in str(service.ask("GET", "/metrics").body)


def test_doubt_and_leases_are_counted_as_they_stand(service: ServiceProcess, run: str) -> None:
    doubts, leases = meter(service, "twiceshy_in_doubt"), meter(service, "twiceshy_executing")
    granted = service.begin(run)
    assert meter(service, "twiceshy_executing") == leases + 1
    assert meter(service, "twiceshy_oldest_lease_seconds") > 0
    service.report("fail", granted, kind="unknown", error={"type": "TimeoutError", "message": "?"})
    assert meter(service, "twiceshy_executing") == leases
    assert meter(service, "twiceshy_in_doubt") == doubts + 1
    assert meter(service, 'twiceshy_states_total{state="in_doubt"}') >= 1
    assert meter(service, 'twiceshy_reports_total{answer="in_doubt",verb="fail"}') >= 1


def test_batches_and_the_time_of_the_database_are_measured(service: ServiceProcess, run: str) -> None:
    names = ("twiceshy_batch_size", "twiceshy_queue_wait_seconds", "twiceshy_database_seconds")
    before = [meter(service, f"{name}_count") for name in names]
    service.begin(run)
    after = [meter(service, f"{name}_count") for name in names]
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health/live"), ("GET", "/v1/effects"), ("POST", "/v1/effects"), ("GET", "/nowhere")],
)
def test_a_request_id_that_the_client_sends_comes_back(service: ServiceProcess, method: str, path: str) -> None:
    reply = service.ask(method, path, X_Request_Id="mine-7")
    assert reply.headers["x-request-id"] == "mine-7"
    if reply.status >= 400:
        assert reply.body["request_id"] == "mine-7"


@pytest.mark.parametrize("sent", ["", "two words", "x" * 129, "naïve"])
def test_a_request_id_that_no_log_line_should_carry_is_replaced(service: ServiceProcess, sent: str) -> None:
    reply = service.ask("GET", "/health/live", X_Request_Id=sent)
    assert re.fullmatch("[0-9a-f]{32}", reply.headers["x-request-id"])


def test_every_request_is_one_line_with_its_facts(tmp_path: Path, run: str) -> None:
    """The lines go to standard error, as JSON."""
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", f"sqlite:///{tmp_path}/a.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        service = ServiceProcess("", port=int(process.stdout.readline().split("127.0.0.1:")[1].split()[0]))
        granted = service.begin(run)
        service.report("commit", granted, result="a secret")
        service.ask("POST", "/v1/batch", {"requests": [{"path": "/v1/effects", "body": {}}] * 2})
        service.ask("GET", "/nowhere", X_Request_Id="mine-7")
        process.terminate()
        text = process.stderr.read()
    lines = [json.loads(line) for line in text.splitlines()]
    facts = [(line["method"], line["path"], line["status"], line.get("said")) for line in lines]
    assert facts == [
        ("POST", "/v1/effects", 201, "execute"),
        ("POST", f"/v1/effects/{granted.body['key']}/commit", 200, "succeeded"),
        ("POST", "/v1/batch", 200, "batch"),
        ("GET", "/nowhere", 404, None),
    ]
    assert (lines[0]["tool"], lines[0]["run"]) == ("pay", run)
    assert (lines[2]["batch"], lines[2]["answers"]) == (2, {"invalid-request": 2})
    assert lines[3]["request_id"] == "mine-7"
    assert all(line["event"] == "request" and line["milliseconds"] > 0 for line in lines)
    assert "a secret" not in text


def test_a_log_that_cannot_be_written_keeps_nobody_from_being_served(tmp_path: Path, run: str) -> None:
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", f"sqlite:///{tmp_path}/a.db"]
    with Path("/dev/full").open("w") as full, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=full) as process:
        assert process.stdout is not None
        said = process.stdout.readline().decode()
        service = ServiceProcess("", port=int(said.split("127.0.0.1:")[1].split()[0]))
        granted = service.begin(run)
        assert (granted.status, service.report("commit", granted, result=1).status) == (201, 200)
        process.terminate()


def test_with_log_problems_only_what_goes_wrong_is_written(tmp_path: Path, run: str) -> None:
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--log", "problems"]
    command += ["--database", f"sqlite:///{tmp_path}/a.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        service = ServiceProcess("", port=int(process.stdout.readline().split("127.0.0.1:")[1].split()[0]))
        granted = service.begin(run)
        service.report("commit", granted, result=1)
        service.report("commit", granted, result=2)
        process.terminate()
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert [line["event"] for line in lines] == ["executed_twice_perhaps"]
    assert re.fullmatch("[0-9a-f]{32}", lines[0]["request_id"])
