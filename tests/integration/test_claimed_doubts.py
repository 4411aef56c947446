"""Doubt that is handed to workers over HTTP: each effect to one at a time, with all that is needed to find out."""

import threading
from datetime import datetime

import pytest

from tests.service import Reply, ServiceProcess

ERROR = {"type": "TimeoutError", "message": "no word"}


def in_doubt(service: ServiceProcess, run: str, to: str = "bob", settle_seconds: float = 0) -> Reply:
    declared = {"settle_seconds": settle_seconds, "arguments": {"identity": ["/to"]}}
    service.ask("PUT", f"/v1/tools/pay-{run}", declared)
    grant = service.begin(run, f"pay-{run}", {"to": to})
    assert service.report("fail", grant, kind="unknown", error=ERROR).body["state"] == "in_doubt"
    return grant


def claims(service: ServiceProcess, run: str, **fields: object) -> list[dict[str, object]]:
    body = {"tools": [f"pay-{run}"], "worker": "w-1"} | fields
    answer = service.ask("POST", "/v1/probes/claims", body)
    assert answer.status == 200, answer.body
    items: list[dict[str, object]] = answer.body["items"]
    return items


def test_a_doubtful_effect_is_handed_out_with_all_that_is_needed_to_ask_and_to_settle(
    service: ServiceProcess, run: str
) -> None:
    grant = in_doubt(service, run, settle_seconds=60)
    (claimed,) = claims(service, run)
    assert claimed["key"] == grant.body["key"]
    assert claimed["downstream_key"] == grant.body["downstream_key"]
    assert (claimed["tool"], claimed["run"], claimed["step"]) == (f"pay-{run}", run, 1)
    assert (claimed["arguments"], claimed["fence"], claimed["tries"]) == ({"to": "bob"}, 1, 1)
    as_of, settles_at, until = (
        datetime.fromisoformat(str(claimed[name])) for name in ("as_of", "settles_at", "claimed_until")
    )
    assert claimed["settles_in_seconds"] == pytest.approx((settles_at - as_of).total_seconds(), abs=1e-6)
    assert 25 < (until - as_of).total_seconds() <= 30
    assert claims(service, run) == []
    shown = service.ask("GET", f"/v1/effects/{grant.body['key']}").body
    assert shown["probe"] == {"tries": 1, "next_at": claimed["claimed_until"], "said": None}


def test_a_commit_that_comes_late_leaves_no_question_to_show(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    assert len(claims(service, run)) == 1
    assert service.report("commit", grant, result="paid").body["state"] == "succeeded"
    assert service.ask("GET", f"/v1/effects/{grant.body['key']}").body["probe"] is None


def test_what_a_worker_finds_settles_the_effect_and_a_later_doubt_is_handed_out_at_once(
    service: ServiceProcess, run: str
) -> None:
    grant = in_doubt(service, run)
    (claimed,) = claims(service, run)
    word = {"as": "not_applied", "fence": claimed["fence"], "as_of": claimed["as_of"], "reason": "the bank has none"}
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).body["state"] == "pending"
    assert claims(service, run) == []
    again = in_doubt(service, run)
    (later,) = claims(service, run)
    assert (later["key"], later["fence"], later["tries"]) == (grant.body["key"], again.body["fence"], 1)


def test_a_claim_that_runs_out_is_handed_to_the_next(service: ServiceProcess, run: str) -> None:
    in_doubt(service, run)
    (first,) = claims(service, run, claim_seconds=1)
    (second,) = claims(service, run, wait_seconds=10)
    assert (second["key"], second["tries"]) == (first["key"], 2)


def test_who_waits_is_handed_the_first_doubt_there_is(service: ServiceProcess, run: str) -> None:
    found: list[dict[str, object]] = []
    waiting = threading.Thread(target=lambda: found.extend(claims(service, run, wait_seconds=20)))
    waiting.start()
    grant = in_doubt(service, run)
    waiting.join(20)
    assert [claimed["key"] for claimed in found] == [grant.body["key"]]


def test_no_more_are_handed_out_than_were_asked_for(service: ServiceProcess, run: str) -> None:
    for number in range(3):
        in_doubt(service, run, str(number))
    assert [len(claims(service, run, limit=2)) for _ in range(3)] == [2, 1, 0]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"tools": []}, "/tools"),
        ({"tools": ["a/b"]}, "/tools/0"),
        ({"limit": 0}, "/limit"),
        ({"claim_seconds": 0.5}, "/claim_seconds"),
        ({"wait_seconds": 31}, "/wait_seconds"),
        ({"odd": 1}, "/odd"),
    ],
)
def test_a_bad_claim_names_its_place(service: ServiceProcess, run: str, fields: dict[str, object], place: str) -> None:
    refused = service.ask("POST", "/v1/probes/claims", {"tools": [f"pay-{run}"]} | fields)
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (400, [place])


def test_the_late_result_of_a_call_whose_client_gave_up_still_commits(service: ServiceProcess, run: str) -> None:
    """frameworks#19: a client's time-out says nothing of the server, which goes on and brings its result later."""
    grant = in_doubt(service, run)
    claims(service, run)
    assert service.report("commit", grant, result="receipt").body["state"] == "succeeded"
    assert claims(service, run, claim_seconds=1) == []
