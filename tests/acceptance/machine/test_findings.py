"""What the machine found in the service, each by the shortest way that it told."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.acceptance.machine.clock import Clock
from tests.service import Reply, ServiceProcess

ERROR = {"type": "E", "message": "m"}
IDEMPOTENT = {"class": "idempotent", "backoff_seconds": 0}


@pytest.fixture
def run() -> str:
    """A run that no other test uses."""
    return f"run-{uuid4().hex[:12]}"


@pytest.fixture
def idempotent(honest_service: ServiceProcess, run: str) -> str:
    """A tool that may be repeated harmlessly."""
    honest_service.ask("PUT", f"/v1/tools/set-{run}", IDEMPOTENT)
    return f"set-{run}"


def pass_time(clock: Clock, grant: Reply, seconds: int) -> None:
    clock.move([grant.body["key"]], timedelta(seconds=seconds))


def show(service: ServiceProcess, grant: Reply) -> dict[str, object]:
    shown: dict[str, object] = service.ask("GET", f"/v1/effects/{grant.body['key']}").body
    return shown


def not_applied(service: ServiceProcess, grant: Reply, **fields: object) -> Reply:
    return service.report("fail", grant, kind="not_applied", error=ERROR, **fields)


def test_who_reads_an_effect_hears_that_its_lease_ran_out_before_the_sweep_came_by(
    honest_service: ServiceProcess, honest_clock: Clock, run: str
) -> None:
    for number in range(20):
        grant = honest_service.begin(run, arguments={"n": number})
        pass_time(honest_clock, grant, 31)
        shown = show(honest_service, grant)
        assert (shown["state"], shown["lease_expires_at"]) == ("in_doubt", None)


def test_an_attempt_that_lost_its_answer_gets_its_grant_again_though_the_run_is_finished(
    honest_service: ServiceProcess, run: str
) -> None:
    attempt = str(uuid4())
    assert honest_service.begin(run, attempt=attempt).status == 201
    honest_service.ask("POST", f"/v1/runs/{run}/finish")
    again = honest_service.begin(run, attempt=attempt, lease_seconds=60)
    assert (again.status, again.body["fence"]) == (201, 1)
    assert honest_service.begin(run, arguments={"to": "eve"}).code == "run-finished"


def test_a_downstream_key_is_not_used_again_after_not_applied_that_came_after_the_lease(
    honest_service: ServiceProcess, honest_clock: Clock, run: str, idempotent: str
) -> None:
    first = honest_service.begin(run, idempotent)
    pass_time(honest_clock, first, 31)
    assert not_applied(honest_service, first, retry_after=60).body["state"] == "pending"
    early = honest_service.begin(run, idempotent)
    assert early.code == "retry-later"
    assert 50 < int(early.headers["retry-after"]) <= 60
    pass_time(honest_clock, first, 61)
    second = honest_service.begin(run, idempotent)
    assert (second.status, second.body["fence"]) == (201, 2)
    assert second.body["downstream_key"] != first.body["downstream_key"]


def test_a_rejection_that_came_after_the_lease_is_the_answer(
    honest_service: ServiceProcess, honest_clock: Clock, run: str, idempotent: str
) -> None:
    first = honest_service.begin(run, idempotent)
    pass_time(honest_clock, first, 31)
    refused = honest_service.report("fail", first, kind="rejected", error=ERROR)
    assert (refused.status, refused.body["state"]) == (200, "failed")
    assert honest_service.begin(run, idempotent).body["outcome"] == {"error": ERROR}


def test_doubt_that_was_closed_and_came_back_is_closed_again(
    honest_service: ServiceProcess, honest_clock: Clock, run: str
) -> None:
    grant = honest_service.begin(run)
    word = {"as": "closed", "fence": 1, "reason": "nobody will ever know"}
    for _ in range(2):
        pass_time(honest_clock, grant, 61)
        assert honest_service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).status == 200
        assert show(honest_service, grant)["closed"] is True
        assert honest_service.report("renew", grant, lease_seconds=60).body["state"] == "executing"
        assert show(honest_service, grant)["closed"] is False


def test_a_release_by_an_idempotent_tool_beside_a_silent_attempt_asks_no_operator(
    honest_service: ServiceProcess, honest_clock: Clock, run: str, idempotent: str
) -> None:
    first, attempt = honest_service.begin(run, idempotent), str(uuid4())
    pass_time(honest_clock, first, 31)
    assert honest_service.begin(run, idempotent, attempt=attempt).status == 201
    body = {"tool": idempotent, "arguments": {"to": "bob"}, "run": run, "attempt": attempt}
    assert honest_service.ask("POST", "/v1/effects/release", body).body["state"] == "pending"


def test_a_release_of_what_another_tool_s_business_key_refused_leaves_its_doubt_alone(
    honest_service: ServiceProcess, honest_clock: Clock, run: str, idempotent: str
) -> None:
    for number in range(20):
        name = f"invoice-{run}-{number}"
        grant = honest_service.begin(None, business_key=name)
        pass_time(honest_clock, grant, 31)
        body = {"tool": idempotent, "arguments": {}, "business_key": name, "attempt": str(uuid4())}
        assert honest_service.ask("POST", "/v1/effects", body).code == "key-used-by-another-tool"
        assert honest_service.ask("POST", "/v1/effects/release", body).status == 200
        assert show(honest_service, grant)["state"] == "in_doubt"


def test_who_comes_first_to_a_lapsed_lease_does_not_matter_though_its_run_keeps_to_a_stricter_class(
    honest_service: ServiceProcess, honest_clock: Clock, run: str
) -> None:
    tool = f"set-{run}"
    honest_service.ask("PUT", f"/v1/tools/{tool}", {"class": "side_effect"})
    assert honest_service.begin(run, tool, arguments={"to": "eve"}).status == 201
    honest_service.ask("PUT", f"/v1/tools/{tool}", IDEMPOTENT)
    for number in range(20):
        grant = honest_service.begin(None, tool, business_key=f"{run}-{number}")
        pass_time(honest_clock, grant, 31)
        again = honest_service.begin(run, tool, business_key=f"{run}-{number}")
        assert (again.status, again.body["fence"]) == (201, 2)


def test_an_attempt_finds_its_own_grant_though_its_tool_s_class_was_raised_since(
    honest_service: ServiceProcess, run: str, idempotent: str
) -> None:
    first, attempt = honest_service.begin(run, idempotent), str(uuid4())
    honest_service.report("commit", first, result="on")
    second = honest_service.begin(run, idempotent, attempt=attempt, delivered=[first.body["key"]])
    assert (second.status, second.body["generation"]) == (201, 2)
    honest_service.ask("PUT", f"/v1/tools/{idempotent}", {"class": "side_effect"})
    again = honest_service.begin(run, idempotent, attempt=attempt)
    assert (again.status, again.body["key"]) == (201, second.body["key"])
    assert honest_service.begin(run, idempotent).code == "in-progress"


def test_a_refusal_because_of_a_lapsed_lease_says_that_it_is_in_doubt_before_the_sweep_came_by(
    honest_service: ServiceProcess, honest_clock: Clock, run: str
) -> None:
    for number in range(20):
        grant = honest_service.begin(f"{run}-{number}")
        pass_time(honest_clock, grant, 31)
        refused = honest_service.begin(f"{run}-{number}", arguments={"to": "eve"})
        assert (refused.code, refused.body["state"]) == ("sibling-in-doubt", "in_doubt")
