"""Who may answer a fork that stopped, and what is no answer."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.fork_driver import Driver
from tests.integration.forks import paid
from tests.service import ServiceProcess


@pytest.fixture
def driver(service: ServiceProcess, run: str) -> Driver:
    """A fork in which nothing may run."""
    return Driver(paid(service, run, "ann", "bob"))


@pytest.fixture(scope="module")
def guarded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that knows approvers by tokens of their own."""
    path = tmp_path_factory.mktemp("guarded") / "guard.db"
    with ServiceProcess(f"sqlite:///{path}", TWICESHY_TOKENS="agent", TWICESHY_APPROVERS="ann:ann-token") as process:
        yield process


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"answer": "inject"}, ""),
        ({"answer": "inject", "outcome": {}}, "/outcome"),
        ({"answer": "inject", "outcome": {"result": 1, "error": {"type": "E", "message": "m"}}}, "/outcome"),
        ({"answer": "inject", "outcome": {"result": {"$no": 1}}}, "/outcome/result/$no"),
        ({"answer": "inject", "outcome": {"error": {"type": "E", "message": "m", "data": {"$no": 1}}}},
         "/outcome/error/data/$no"),
        ({"answer": "allow"}, ""),
        ({"answer": "deny"}, ""),
        ({"answer": "allow", "reason": ""}, "/reason"),
        ({"answer": "allow", "reason": "r", "outcome": {"result": 1}}, ""),
        ({"answer": "skip", "reason": "r"}, "/answer"),
        ({"answer": "deny", "reason": "r", "forever": True}, "/forever"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_is_refused_with_its_place(driver: Driver, body: dict[str, Any], place: str) -> None:
    stopped = driver.begin(driver.fork, {"to": "dan"})
    refused = driver.answer(stopped, **body)
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)
    assert driver.pauses()[0]["state"] == "open"


def test_there_is_nothing_to_answer_where_nothing_stopped(driver: Driver) -> None:
    no = {"answer": "deny", "reason": "no"}
    for path in (
        f"/v1/runs/{driver.fork}/pauses/{'0' * 64}", f"/v1/runs/{driver.fork}/pauses/nonsense",
        f"/v1/runs/none-{driver.fork}/pauses/{'0' * 64}",
    ):  # fmt: skip
        assert driver.service.ask("POST", path, no).status == 404
    assert driver.service.ask("GET", f"/v1/runs/none-{driver.fork}/pauses").status == 404


def test_where_approvers_have_tokens_only_they_inject_and_allow_and_the_credential_answers_nothing(
    guarded_service: ServiceProcess, run: str
) -> None:
    agent, ann = {"Authorization": "Bearer agent"}, {"Authorization": "Bearer ann-token"}
    guarded_service.ask("POST", "/v1/runs", {"run": run}, **agent)
    fork = guarded_service.ask("POST", f"/v1/runs/{run}/forks", {"fork": f"{run}-f", "at": 0}, **agent).body
    own = {"Authorization": f"Bearer {fork['credential']}"}
    call = {"tool": f"pay-{run}", "arguments": {}, "run": f"{run}-f"}
    stopped = guarded_service.ask("POST", "/v1/effects", call | {"attempt": str(uuid4())}, **own)
    path = f"/v1/runs/{run}-f/pauses/{stopped.body['pause']}"
    inject, allow = {"answer": "inject", "outcome": {"result": 1}}, {"answer": "allow", "reason": "yes"}
    for body in (inject, allow, {"answer": "deny", "reason": "no"}):
        assert guarded_service.ask("POST", path, body, **own).status == 403
    for body in (inject, allow):
        assert guarded_service.ask("POST", path, body, **agent).status == 403
    assert guarded_service.ask("POST", path, allow | {"by": "bob"}, **ann).status == 403
    answered = guarded_service.ask("POST", path, allow, **ann)
    assert (answered.status, answered.body["by"]) == (200, "ann")
    assert guarded_service.ask("POST", "/v1/effects", call | {"attempt": str(uuid4())}, **own).status == 201


def test_an_agents_token_may_deny(guarded_service: ServiceProcess, run: str) -> None:
    agent = {"Authorization": "Bearer agent"}
    guarded_service.ask("POST", "/v1/runs", {"run": run}, **agent)
    guarded_service.ask("POST", f"/v1/runs/{run}/forks", {"fork": f"{run}-f", "at": 0}, **agent)
    call = {"tool": f"pay-{run}", "arguments": {}, "run": f"{run}-f", "attempt": str(uuid4())}
    stopped = guarded_service.ask("POST", "/v1/effects", call, **agent)
    path = f"/v1/runs/{run}-f/pauses/{stopped.body['pause']}"
    assert guarded_service.ask("POST", path, {"answer": "deny", "reason": "no"}, **agent).status == 200
