"""What contradicts a record, or may have happened twice, is kept, listed and told to operators."""

import asyncio
from uuid import uuid4

from guard.core.effects import Evidence, Instant, Key
from guard.ports.steps import Found, Look, Replace
from guard.store.sql.engine import open_store
from tests.integration.flagged import flags_about
from tests.service import Reply, ServiceProcess

ERROR = {"type": "TimeoutError", "message": "no word"}


def succeeded(service: ServiceProcess, run: str) -> Reply:
    grant = service.begin(run)
    assert service.report("commit", grant, result="receipt").status == 200
    return grant


def twice(service: ServiceProcess, run: str) -> Reply:
    """Settle that nothing was applied, let another attempt begin, and then hear from the first that it succeeded."""
    service.ask("PUT", f"/v1/tools/pay-{run}", {"settle_seconds": 0})
    first = service.begin(run, f"pay-{run}")
    service.report("fail", first, kind="unknown", error=ERROR)
    word = {"as": "not_applied", "fence": 1, "reason": "the bank has no such payment"}
    assert service.ask("POST", f"/v1/effects/{first.body['key']}/resolve", word).status == 200
    assert service.begin(run, f"pay-{run}").status == 201
    assert service.report("commit", first, result="receipt").body["state"] == "succeeded"
    return first


def test_a_success_that_comes_while_another_attempt_executes_is_flagged_as_perhaps_double(
    service: ServiceProcess, run: str
) -> None:
    """The first had sent as well, although it was settled that nothing was applied."""
    first = twice(service, run)
    (flag,) = flags_about(service, first)
    assert (flag["kind"], flag["state"], flag["run"], flag["tool"]) == ("double", "open", run, f"pay-{run}")
    assert str(first.body["attempt"]) in str(flag["detail"])
    shown = service.ask("GET", f"/v1/effects/{first.body['key']}").body
    assert [(proof["kind"], proof["body"]) for proof in shown["evidence"]] == [("late_success", {"result": "receipt"})]


def test_a_second_success_is_flagged_as_perhaps_double(service: ServiceProcess, run: str) -> None:
    grant = succeeded(service, run)
    for other in ("another receipt", "a third"):
        assert service.report("commit", grant, result=other).code == "superseded"
    flags = flags_about(service, grant, at_least=2)
    assert [(flag["kind"], str(flag["subject"]).partition("/")[2]) for flag in flags] == [
        ("double", "2"),
        ("double", "1"),
    ]


def test_word_that_contradicts_a_record_is_flagged(service: ServiceProcess, run: str) -> None:
    grant = succeeded(service, run)
    word = {"as": "not_applied", "fence": 1, "reason": "the bank has no such payment"}
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).code == "superseded"
    (flag,) = flags_about(service, grant)
    assert flag["kind"] == "contradiction"
    assert flag["detail"] == (
        "The effect is succeeded, and somebody who asked the provider says that nothing was applied. "
        "The record may be wrong."
    )


def test_a_success_of_what_was_rejected_is_flagged_as_a_contradiction(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("fail", grant, kind="rejected", error=ERROR)
    assert service.report("commit", grant, result=1).code == "superseded"
    assert [flag["kind"] for flag in flags_about(service, grant)] == ["contradiction"]


def run_again(service: ServiceProcess, run: str, **declared: object) -> tuple[Reply, Reply]:
    """Let a second attempt begin while nobody knows of the first, and then hear from the first that it succeeded."""
    service.ask("PUT", f"/v1/tools/pay-{run}", {"settle_seconds": 0, "lease_seconds": 5, **declared})
    first = service.begin(run, f"pay-{run}")
    service.report("fail", first, kind="unknown", error=ERROR, retry_after=0)
    second = service.begin(run, f"pay-{run}")
    assert (second.status, second.body["downstream_key"]) == (201, first.body["downstream_key"])
    assert service.report("commit", first, result="receipt").status == 200
    return first, second


def test_two_successes_under_one_downstream_key_with_one_result_contradict_nothing(
    service: ServiceProcess, run: str
) -> None:
    """The provider has answered the second from its own record: that is what its window is for."""
    _, second = run_again(service, run, provider_window_seconds=600)
    for _ in range(2):
        again = service.report("commit", second, result="receipt")
        assert (again.status, again.body["state"]) == (200, "succeeded")
    assert service.ask("GET", f"/v1/effects/{second.body['key']}").body["evidence"] == []
    flags = service.ask("GET", "/v1/flags?limit=500").body["items"]
    assert [flag for flag in flags if flag["key"] == second.body["key"]] == []


def test_another_result_under_one_downstream_key_is_flagged_as_a_contradiction(
    service: ServiceProcess, run: str
) -> None:
    _, second = run_again(service, run, provider_window_seconds=600)
    assert service.report("commit", second, result="another").code == "superseded"
    (flag,) = flags_about(service, second)
    assert flag["kind"] == "contradiction"
    assert str(flag["detail"]).endswith(
        "reported success with another result than the record shows. The record may be wrong."
    )
    shown = service.ask("GET", f"/v1/effects/{second.body['key']}").body
    assert [(proof["kind"], proof["body"]) for proof in shown["evidence"]] == [("other_result", {"result": "another"})]


def test_the_only_attempt_that_reports_another_result_than_a_person_recorded_contradicts(
    service: ServiceProcess, run: str
) -> None:
    grant = service.begin(run)
    service.report("fail", grant, kind="unknown", error=ERROR)
    word = {"as": "applied", "fence": 1, "result": 5, "reason": "the bank's clerk says so"}
    assert service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).status == 200
    assert service.report("commit", grant, result=6).code == "superseded"
    assert [flag["kind"] for flag in flags_about(service, grant)] == ["contradiction"]


def test_an_ordinary_success_raises_no_flag(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("fail", grant, kind="unknown", error=ERROR)
    assert service.report("commit", grant, result=1).status == 200
    flags = service.ask("GET", "/v1/flags?limit=500").body["items"]
    assert [flag for flag in flags if flag["key"] == grant.body["key"]] == []


def test_a_flag_is_closed_once_and_whoever_closes_it_again_hears_by_whom(service: ServiceProcess, run: str) -> None:
    (flag,) = flags_about(service, twice(service, run))
    path = f"/v1/flags/{flag['id']}/close"
    closed = service.ask("POST", path, {"by": "ada", "reason": "refunded"})
    assert (closed.status, closed.body["state"], closed.body["closed_by"]) == (200, "closed", "ada")
    assert service.ask("POST", path, {"by": "bob", "reason": "seen too"}).body == closed.body
    open_ones = service.ask("GET", "/v1/flags?state=open&limit=500").body["items"]
    assert flag["id"] not in [other["id"] for other in open_ones]
    assert service.ask("POST", f"/v1/flags/{uuid4()}/close", {"reason": "r"}).code == "not-found"
    assert service.ask("POST", "/v1/flags/nonsense/close", {"reason": "r"}).code == "not-found"


def test_bad_questions_about_flags_name_their_place(service: ServiceProcess) -> None:
    for query, place in (("kind=odd", "/kind"), ("state=odd", "/state"), ("limit=0", "/limit"), ("after=x", "/after")):
        refused = service.ask("GET", f"/v1/flags?{query}")
        assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (400, [place])
    refused = service.ask("POST", f"/v1/flags/{uuid4()}/close", {"reason": ""})
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (400, ["/reason"])


def test_the_meter_counts_the_flags_that_are_open(database_url: str, run: str) -> None:
    with ServiceProcess(database_url) as service:
        (flag,) = flags_about(service, twice(service, run))
        assert "twiceshy_open_flags 1.0" in service.ask("GET", "/metrics").body
        service.ask("POST", f"/v1/flags/{flag['id']}/close", {"reason": "refunded"})
        assert "twiceshy_open_flags 0.0" in service.ask("GET", "/metrics").body


def test_evidence_whose_flag_was_never_written_is_flagged_by_the_next_service(database_url: str, run: str) -> None:
    """A process that ends between the two leaves evidence alone."""
    with ServiceProcess(database_url) as service:
        grant = succeeded(service, run)
    asyncio.run(_add_evidence(database_url, Key(bytes.fromhex(grant.body["key"]))))
    with ServiceProcess(database_url) as service:
        assert [flag["kind"] for flag in flags_about(service, grant)] == ["double"]


async def _add_evidence(url: str, key: Key) -> None:
    store = await open_store(url)
    try:
        (found,) = await store.effects.apply(0, [Look(key=key)])
        assert isinstance(found, Found)
        assert found.effect is not None
        proof = Evidence(at=Instant(1), token=found.effect.life.attempts[0].token, kind="success", body=b'{"result":2}')
        await store.effects.apply(0, [Replace(seen=found.effect.version, effect=found.effect, evidence=(proof,))])
    finally:
        await store.close()
