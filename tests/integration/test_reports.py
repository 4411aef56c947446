"""Commit, fail, renew, release, resolve over HTTP: only the right hand writes, and nothing is overwritten."""

from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

ERROR = {"type": "Declined", "message": "no funds"}


def in_doubt(service: ServiceProcess, run: str) -> Reply:
    grant = service.begin(run)
    assert service.report("fail", grant, kind="unknown", error=ERROR).body["state"] == "in_doubt"
    return grant


def state(service: ServiceProcess, grant: Reply) -> dict[str, object]:
    shown: dict[str, object] = service.ask("GET", f"/v1/effects/{grant.body['key']}").body
    return shown


def test_a_repeated_commit_answers_the_same(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    first = service.report("commit", grant, result=[1, {"$dec": "1.50"}])
    second = service.report("commit", grant, result=[1, {"$dec": "1.50"}])
    assert (first.status, second.status) == (200, 200)
    assert first.body == second.body


@pytest.mark.parametrize("verb", ["commit", "fail", "renew"])
@pytest.mark.parametrize("stale", [{"fence": 2}, {"attempt": str(uuid4())}])
def test_a_stale_fence_or_a_wrong_token_writes_nothing(
    service: ServiceProcess, run: str, verb: str, stale: dict[str, object]
) -> None:
    grant = service.begin(run)
    before = state(service, grant)
    bodies: dict[str, dict[str, object]] = {"commit": {"result": 1}, "fail": {"kind": "unknown", "error": ERROR}}
    fields = bodies.get(verb, {})
    refused = service.report(verb, grant, **fields | stale)
    assert (refused.status, refused.code) == (409, "lease-lost")
    after = state(service, grant)
    assert before | {"as_of": ""} == after | {"as_of": ""}


def test_an_unknown_key_is_not_found(service: ServiceProcess) -> None:
    for path in ("0" * 64, "nonsense", "A" * 64):
        answer = service.ask("POST", f"/v1/effects/{path}/renew", {"attempt": str(uuid4()), "fence": 1})
        assert (answer.status, answer.code) == (404, "not-found")


def test_not_applied_is_tried_again_under_a_new_downstream_key(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    failed = service.report("fail", grant, kind="not_applied", error=ERROR, retry_after=0)
    assert (failed.status, failed.body["state"]) == (200, "pending")
    again = service.begin(run)
    assert (again.status, again.body["fence"]) == (201, 2)
    assert again.body["downstream_key"] != grant.body["downstream_key"]


def test_before_its_retry_time_the_answer_is_retry_later(service: ServiceProcess, run: str) -> None:
    service.report("fail", service.begin(run), kind="not_applied", error=ERROR, retry_after=60)
    early = service.begin(run)
    assert (early.status, early.code) == (409, "retry-later")
    assert 50 < int(early.headers["retry-after"]) <= 60


def test_after_the_last_attempt_only_reopening_helps(service: ServiceProcess, run: str) -> None:
    tool = f"twice-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"attempts": 2})
    for _ in range(2):
        service.report("fail", service.begin(run, tool), kind="not_applied", error=ERROR, retry_after=0)
    exhausted = service.begin(run, tool)
    assert (exhausted.status, exhausted.code) == (409, "attempts-exhausted")
    assert service.begin(run, tool, reopen=True).status == 201


def test_a_rejection_is_the_answer_for_these_arguments_and_others_are_a_new_generation(
    service: ServiceProcess, run: str
) -> None:
    grant = service.begin(run, arguments={"card": 1}, step=1)
    assert service.report("fail", grant, kind="rejected", error=ERROR).body["state"] == "failed"
    same = service.begin(run, arguments={"card": 1}, step=1)
    assert (same.status, same.body["outcome"]) == (200, {"error": ERROR})
    other = service.begin(run, arguments={"card": 2}, step="1")
    assert (other.status, other.body["generation"]) == (201, 2)
    service.report("commit", other, result="ok")
    assert service.begin(run, arguments={"card": 2}, step=1).body["outcome"] == {"result": "ok"}
    assert service.begin(run, arguments={"card": 1}, step=1).body["outcome"] == {"error": ERROR}


def test_doubt_is_told_and_never_retried(service: ServiceProcess, run: str) -> None:
    in_doubt(service, run)
    answer = service.begin(run)
    assert (answer.status, answer.code, answer.body["state"]) == (409, "outcome-in-doubt", "in_doubt")
    assert "retry-after" not in answer.headers


def test_late_proof_heals_doubt(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    assert service.report("commit", grant, result="it worked").body["state"] == "succeeded"
    assert service.begin(run).body["outcome"] == {"result": "it worked"}


def test_an_operator_settles_doubt_as_applied_once(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "applied", "fence": 1, "reason": "seen in the calendar", "result": {"id": 7}}
    first = service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word)
    assert (first.status, first.body["state"]) == (200, "succeeded")
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).body == first.body
    assert service.begin(run).body["outcome"] == {"result": {"id": 7}}


def test_not_applied_is_not_believed_before_the_settle_time(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "not_applied", "fence": 1, "reason": "not in the calendar"}
    early = service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word)
    assert (early.status, early.code) == (409, "not-possible")
    assert 8 <= int(early.headers["retry-after"]) <= 10
    assert state(service, grant)["state"] == "in_doubt"


def test_a_moment_in_the_future_does_not_switch_the_settle_time_off(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "not_applied", "fence": 1, "reason": "r", "as_of": "2099-01-01T00:00:00Z"}
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).code == "not-possible"


def test_applied_without_a_result_is_recorded_as_one_that_nobody_gave(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", {"as": "applied", "fence": 1, "reason": "seen"})
    opaque = service.begin(run).body["outcome"]["result"]["$opaque"]
    assert opaque["reason"] == "it was settled as applied and nobody gave its result"


def test_a_result_of_null_is_a_result(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "applied", "fence": 1, "reason": "seen", "result": None}
    service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word)
    assert service.begin(run).body["outcome"] == {"result": None}


def test_a_resolution_for_another_fence_is_refused(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "applied", "fence": 9, "reason": "r"}
    answer = service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word)
    assert (answer.status, answer.code) == (409, "changed-since")


def test_closed_doubt_stays_in_doubt_and_still_heals(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    word = {"as": "closed", "fence": 1, "reason": "nobody will ever know"}
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).body["state"] == "in_doubt"
    assert state(service, grant)["closed"] is True
    queue = service.ask("GET", f"/v1/effects?run={run}&state=in_doubt").body["items"]
    everything = service.ask("GET", f"/v1/effects?run={run}&state=in_doubt&closed=true").body["items"]
    assert (len(queue), len(everything)) == (0, 1)
    assert service.begin(run).code == "outcome-in-doubt"
    assert service.report("commit", grant, result=1).body["state"] == "succeeded"


def test_a_second_success_is_refused_and_kept_as_evidence(service: ServiceProcess, run: str) -> None:
    grant = in_doubt(service, run)
    service.ask(
        "POST", f"/v1/effects/{grant.body['key']}/resolve", {"as": "applied", "fence": 1, "reason": "r", "result": "A"}
    )
    late = service.report("commit", grant, result="B")
    assert (late.status, late.code) == (409, "superseded")
    shown = state(service, grant)
    assert shown["outcome"] == {"result": "A"}
    evidence = shown["evidence"]
    assert isinstance(evidence, list)
    assert [(proof["kind"], proof["body"]) for proof in evidence] == [("other_result", {"result": "B"})]


def test_a_commit_repeated_with_another_result_contradicts_itself(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("commit", grant, result={"a": 1.0})
    assert service.report("commit", grant, result={"a": 1}).status == 200
    other = service.report("commit", grant, result={"a": 2})
    assert (other.status, other.code) == (409, "superseded")
    shown = state(service, grant)
    assert shown["outcome"] == {"result": {"a": 1.0}}
    evidence = shown["evidence"]
    assert isinstance(evidence, list)
    assert [proof["body"] for proof in evidence] == [{"result": {"a": 2}}]


def test_renew_moves_the_deadline(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run, lease_seconds=2)
    renewed = service.report("renew", grant, lease_seconds=60)
    assert (renewed.status, renewed.body["state"]) == (200, "executing")
    assert 59 < renewed.body["lease_seconds_left"] <= 60


def test_releases_by_strangers_do_not_grow_an_effect_without_end(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    body = {"tool": "pay", "arguments": {"to": "bob"}, "run": run}
    for _ in range(70):
        released = service.ask("POST", "/v1/effects/release", body | {"attempt": str(uuid4())})
        assert released.body["state"] == "executing"
    attempts = state(service, grant)["attempts"]
    assert isinstance(attempts, list)
    assert len(attempts) == 65
    assert service.report("commit", grant, result=1).status == 200


def test_a_released_begin_frees_the_lease_and_its_token_never_gets_one_again(service: ServiceProcess, run: str) -> None:
    body = {"tool": "pay", "arguments": {"to": "bob"}, "run": run, "attempt": str(uuid4())}
    assert service.ask("POST", "/v1/effects", body).status == 201
    assert service.ask("POST", "/v1/effects/release", body).body["state"] == "pending"
    assert service.ask("POST", "/v1/effects", body).code == "lease-lost"
    assert service.begin(run).status == 201


def test_a_release_that_overtakes_its_begin_wins(service: ServiceProcess, run: str) -> None:
    body = {"tool": "pay", "arguments": {"to": "bob"}, "run": run, "attempt": str(uuid4())}
    assert service.ask("POST", "/v1/effects/release", body).body["state"] == "pending"
    assert service.ask("POST", "/v1/effects", body).code == "lease-lost"
    assert service.begin(run).status == 201


def test_a_provider_idempotent_tool_runs_again_in_doubt_under_the_same_downstream_key(
    service: ServiceProcess, run: str
) -> None:
    tool = f"stripe-{run}"
    roles = {"content": ["/note"]}
    service.ask("PUT", f"/v1/tools/{tool}", {"provider_window_seconds": 3600, "arguments": roles})
    grant = service.begin(run, tool, {"amount": 5, "note": "first"})
    service.report("fail", grant, kind="unknown", error=ERROR)
    again = service.begin(run, tool, {"amount": 5, "note": "second"})
    assert (again.status, again.body["fence"]) == (201, 2)
    assert again.body["downstream_key"] == grant.body["downstream_key"]
    assert again.body["arguments"] == {"amount": 5, "note": "first"}


def test_an_opaque_result_is_kept_as_such(service: ServiceProcess, run: str) -> None:
    opaque = {"$opaque": {"type": "Image", "size": 3_000_000, "sha256": None, "reason": "too large"}}
    service.report("commit", service.begin(run), result=opaque)
    assert service.begin(run).body["outcome"] == {"result": opaque}


def test_the_type_that_a_result_had_is_kept_beside_it(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("commit", grant, result={"id": 7}, result_type="shop.Hold")
    assert service.begin(run).body["outcome"] == {"result": {"id": 7}, "result_type": "shop.Hold"}
    repeated = service.report("commit", grant, result={"id": 7})
    assert repeated.status == 200
    assert service.ask("GET", f"/v1/effects/{grant.body['key']}").body["evidence"] == []


@pytest.mark.parametrize("name", ["", "x" * 201, 7])
def test_the_name_of_a_type_has_1_to_200_characters(service: ServiceProcess, run: str, name: object) -> None:
    refused = service.report("commit", service.begin(run), result=None, result_type=name)
    assert (refused.status, refused.code) == (400, "invalid-request")
    assert [error["path"] for error in refused.body["errors"]] == ["/result_type"]


def test_the_only_attempt_may_confirm_what_a_person_recorded_and_alarms_nobody(
    service: ServiceProcess, run: str
) -> None:
    granted = service.begin(run)
    service.report("fail", granted, kind="unknown", error={"type": "TimeoutError", "message": "?"})
    path = f"/v1/effects/{granted.body['key']}"
    said = {"as": "applied", "fence": granted.body["fence"], "reason": "the bank shows it", "result": {"id": 5}}
    assert service.ask("POST", f"{path}/resolve", said).status == 200

    confirmed = service.report("commit", granted, result={"id": 5.0})
    assert (confirmed.status, confirmed.body["outcome"]) == (200, {"result": {"id": 5}})
    assert service.ask("GET", path).body["evidence"] == []

    contradicted = service.report("commit", granted, result={"id": 6})
    assert (contradicted.status, contradicted.code) == (409, "superseded")
    assert len(service.ask("GET", path).body["evidence"]) == 1
