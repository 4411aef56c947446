"""What the service says of itself at /v1/status, on both databases."""

from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

from tests.service import ServiceProcess
from twiceshy_contract.wire import CONTRACT_VERSION


def test_the_status_names_versions_database_and_time(service: ServiceProcess, backend: str) -> None:
    before = datetime.now(UTC)
    reply = service.ask("GET", "/v1/status")
    after = datetime.now(UTC)
    assert reply.status == 200
    assert (reply.body["version"], reply.body["contract"]) == (version("twiceshy-server"), CONTRACT_VERSION)
    assert reply.body["lanes"] == 1
    assert before - timedelta(seconds=1) <= datetime.fromisoformat(reply.body["now"]) <= after + timedelta(seconds=1)
    database = reply.body["database"]
    assert (database["kind"], database["is_current"]) == (backend, True)
    assert database["revision"] == database["needed"]
    assert database["is_durable"] == (backend == "sqlite")


def test_the_status_counts_what_waits(service: ServiceProcess, run: str) -> None:
    before = service.ask("GET", "/v1/status").body["effects"]
    grants = [service.begin(run, lease_seconds=3600, arguments={"n": n}) for n in range(3)]
    service.report("fail", grants[0], kind="unknown", error={"type": "TimeoutError", "message": "no answer"})
    assert service.ask("GET", "/v1/status").body["effects"]["in_doubt"] >= before["in_doubt"] + 1
    assert service.ask("GET", "/v1/status").body["effects"]["executing"] >= 2


def test_the_status_takes_a_token_and_is_described(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db", TWICESHY_TOKENS="secret") as service:
        assert service.ask("GET", "/v1/status").code == "unauthorized"
        assert service.ask("GET", "/v1/status", Authorization="Bearer secret").status == 200
        schema = service.ask("GET", "/schema/openapi.json").body
        assert set(schema["paths"]["/v1/status"]["get"]["responses"]) == {"200", "401", "503"}
        assert schema["components"]["schemas"]["StatusView"]["required"][:2] == ["version", "contract"]
