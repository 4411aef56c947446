"""Operators end an effect that waits, or let it be tried again; neither hides what may have happened."""

import pytest

from tests.integration.flagged import flags_about
from tests.service import Reply, ServiceProcess

ERROR = {"type": "TimeoutError", "message": "no word"}
REASON = {"reason": "the customer has left"}


def waiting(service: ServiceProcess, run: str, tool: str, **fields: object) -> Reply:
    """Begin, and report that nothing was applied."""
    grant = service.begin(run, tool)
    fields = {"kind": "not_applied", "error": ERROR} | fields
    assert service.report("fail", grant, **fields).body["state"] == "pending"
    return grant


def path(grant: Reply, verb: str = "") -> str:
    return f"/v1/effects/{grant.body['key']}{verb}"


def test_a_cancelled_effect_is_answered_with_that_from_the_record(service: ServiceProcess, run: str) -> None:
    grant = waiting(service, run, "pay")
    cancelled = service.ask("POST", path(grant, "/cancel"), REASON | {"by": "ada"})
    assert (cancelled.status, cancelled.body["state"]) == (200, "failed")
    error = {"type": "Cancelled", "message": "the customer has left", "data": {"by": "ada"}}
    assert cancelled.body["outcome"] == {"error": error}
    replayed = service.begin(run, "pay")
    assert (replayed.status, replayed.body["decision"], replayed.body["outcome"]) == (200, "replay", {"error": error})
    assert service.ask("GET", path(grant)).body["resolution"] == "cancelled by ada: the customer has left"


def test_cancelling_said_twice_is_taken_once(service: ServiceProcess, run: str) -> None:
    grant = waiting(service, run, "pay")
    first, second = (service.ask("POST", path(grant, "/cancel"), REASON) for _ in range(2))
    assert (first.status, second.status) == (200, 200)
    assert first.body == second.body
    other = service.ask("POST", path(grant, "/cancel"), {"reason": "another reason"})
    assert (other.status, other.code) == (409, "not-possible")


def test_only_what_waits_can_be_cancelled_or_reopened(service: ServiceProcess, run: str) -> None:
    executing = service.begin(run, "pay")
    doubtful = service.begin(run, "mail")
    service.report("fail", doubtful, kind="unknown", error=ERROR)
    done = service.begin(run, "book")
    service.report("commit", done, result=1)
    for grant in (executing, doubtful, done):
        before = service.ask("GET", path(grant)).body
        for verb in ("/cancel", "/reopen"):
            refused = service.ask("POST", path(grant, verb), REASON)
            assert (refused.status, refused.code) == (409, "not-possible")
        assert service.ask("GET", path(grant)).body | {"as_of": ""} == before | {"as_of": ""}


def test_a_cancelled_effect_that_succeeded_after_all_is_flagged(service: ServiceProcess, run: str) -> None:
    """The record stays; that it is wrong is kept and told."""
    grant = waiting(service, run, "pay")
    service.ask("POST", path(grant, "/cancel"), REASON)
    assert service.report("commit", grant, result="receipt").code == "superseded"
    assert [flag["kind"] for flag in flags_about(service, grant)] == ["contradiction"]
    shown = service.ask("GET", path(grant)).body
    assert (shown["state"], [proof["body"] for proof in shown["evidence"]]) == ("failed", [{"result": "receipt"}])


def test_an_effect_with_a_silent_attempt_is_settled_before_it_is_cancelled(service: ServiceProcess, run: str) -> None:
    tool = f"sync-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent", "settle_seconds": 0})
    grant = service.begin(run, tool)
    assert service.report("fail", grant, kind="unknown", error=ERROR).body["state"] == "pending"
    refused = service.ask("POST", path(grant, "/cancel"), REASON)
    assert (refused.status, refused.code) == (409, "not-possible")
    assert "an attempt of it ended without word" in refused.body["detail"]
    word = {"as": "not_applied", "fence": 1, "reason": "the other side has nothing"}
    assert service.ask("POST", path(grant, "/resolve"), word).status == 200
    assert service.ask("POST", path(grant, "/cancel"), REASON).body["state"] == "failed"


def test_a_reopened_effect_is_tried_at_once_and_as_often_as_at_first(service: ServiceProcess, run: str) -> None:
    tool = f"pay-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"attempts": 1})
    grant = waiting(service, run, tool, retry_after=3600)
    assert service.begin(run, tool).code == "attempts-exhausted"
    reopened = service.ask("POST", path(grant, "/reopen"), {"reason": "the account is filled"})
    assert (reopened.status, reopened.body["state"]) == (200, "pending")
    assert service.ask("GET", path(grant)).body["resolution"] == "reopened: the account is filled"
    assert service.begin(run, tool).status == 201


@pytest.mark.parametrize("verb", ["cancel", "reopen"])
def test_a_bad_request_names_its_place_and_an_unknown_key_is_not_found(
    service: ServiceProcess, run: str, verb: str
) -> None:
    grant = waiting(service, run, "pay")
    for body, place in (({}, "/reason"), ({"reason": ""}, "/reason"), (REASON | {"who": "x"}, "/who")):
        refused = service.ask("POST", path(grant, f"/{verb}"), body)
        assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (400, [place])
    assert service.ask("POST", f"/v1/effects/{'0' * 64}/{verb}", REASON).code == "not-found"
