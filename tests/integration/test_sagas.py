"""Sagas over HTTP: forward, and back again."""

from uuid import uuid4

import pytest

from tests.integration.booking import Booking
from tests.service import ServiceProcess


@pytest.fixture
def trip(service: ServiceProcess, run: str) -> Booking:
    """A saga that nobody has opened."""
    return Booking(service, run)


def test_what_was_done_is_taken_back_one_after_the_other_last_things_first(trip: Booking) -> None:
    opened = trip.open()
    assert (opened.status, opened.body["state"], opened.body["run"]) == (200, "running", trip.run)
    hold, pay = trip.done("hold"), trip.done("pay")
    trip.report(trip.begin("confirm"), "rejected")
    failed = trip.fail("Full: the house is full")
    assert (failed.status, failed.body["state"]) == (200, "compensating")
    due = trip.due()
    assert (due["tool"], due["arguments"], due["key"]) == (trip.tool("refund"), {"id": "pay-1"}, pay)
    assert (due["step"], due["run"], due["occurrence"]) == (f"compensate:{pay}", trip.run, 1)
    assert trip.taken_back() == trip.tool("refund")
    assert trip.due()["key"] == hold
    assert trip.taken_back() == trip.tool("release")
    ended = trip.next()
    assert (ended["state"], ended["due"], ended["waits"]) == ("compensated", None, None)
    assert ended["reason"] == "Full: the house is full"
    assert trip.steps() == [("hold", "compensated"), ("pay", "compensated"), ("confirm", "skipped")]
    assert trip.fail().body["state"] == "compensated"
    assert trip.flags() == []


def test_a_completed_saga_answers_its_steps_from_the_record_and_takes_no_others(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    completed = trip.service.ask("POST", f"{trip.path}/complete")
    assert (completed.status, completed.body["state"]) == (200, "completed")
    assert trip.service.ask("POST", f"{trip.path}/complete").body == completed.body
    assert trip.open().body["state"] == "completed"
    assert trip.begin("hold").body["decision"] == "replay"
    refused = trip.begin("pay")
    assert (refused.status, refused.code) == (409, "saga-over")
    assert (trip.fail().status, trip.fail().code) == (409, "saga-over")
    assert (trip.next()["state"], trip.next()["due"]) == ("completed", None)


def test_a_crash_at_the_third_step_goes_on_there_and_repeats_nothing(trip: Booking) -> None:
    """Idempotency 4, durable 1: the steps that were done are answered from the record, only the third runs."""
    trip.open()
    trip.done("hold")
    trip.done("pay")
    trip.open()
    assert [trip.begin(tool).body["decision"] for tool in ("hold", "pay", "confirm")] == ["replay", "replay", "execute"]


def test_a_failed_saga_begins_nothing_any_more(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    trip.fail()
    for tool in ("hold", "pay"):
        refused = trip.begin(tool)
        assert (refused.status, refused.code) == (409, "saga-over")
    assert trip.service.ask("POST", f"{trip.path}/complete").code == "saga-over"
    assert trip.service.begin(trip.run, trip.tool("pay")).status == 201


def test_a_saga_that_nobody_opened_is_not_found(trip: Booking) -> None:
    assert (trip.begin("hold").status, trip.begin("hold").code) == (404, "not-found")
    for verb in ("complete", "next"):
        assert trip.service.ask("POST", f"{trip.path}/{verb}").code == "not-found"
    assert trip.fail().code == "not-found"
    assert trip.service.ask("GET", trip.path).code == "not-found"
    assert trip.settle("00" * 32, "done").code == "not-found"


def test_a_saga_belongs_to_one_run(trip: Booking) -> None:
    trip.open()
    other = trip.open(run=f"{trip.run}-other")
    assert (other.status, other.code) == (409, "not-possible")
    step = trip.service.begin(f"{trip.run}-other", trip.tool("hold"), {"x": 1}, saga=trip.saga)
    assert (step.status, step.body["errors"][0]["path"]) == (400, "/run")


def test_only_the_compensation_that_is_due_begins_and_only_as_it_is_due(trip: Booking) -> None:
    trip.open()
    hold = trip.done("hold")
    pay = trip.done("pay")
    trip.fail()
    due = trip.due()
    early = trip.take_back(due | {"key": hold, "step": f"compensate:{hold}", "tool": trip.tool("release")})
    assert (early.status, early.code) == (409, "saga-over")
    other = trip.take_back(due, arguments={"id": "pay-2", "more": 1})
    assert (other.status, other.code, other.body["paths"]) == (
        422,
        "arguments-changed",
        ["/arguments/more", "/arguments/id"],
    )
    assert trip.take_back(due, tool=trip.tool("release")).code == "saga-over"
    assert trip.take_back(due, occurrence=2).code == "saga-over"
    elsewhere = trip.take_back(due, run=f"{trip.run}-other")
    assert (elsewhere.status, elsewhere.body["errors"][0]["path"]) == (400, "/run")
    unknown = "ab" * 32
    assert trip.take_back(due, compensates=unknown, step=f"compensate:{unknown}").code == "saga-over"
    assert trip.due() == due
    assert due["key"] == pay


def test_nothing_else_may_take_the_name_of_a_compensation(trip: Booking) -> None:
    trip.open()
    pay = trip.done("pay")
    trip.fail()
    due = trip.due()
    for changed, path in (
        ({"compensates": None}, "/compensates"),
        ({"saga": None}, "/saga"),
        ({"step": "compensate:other"}, "/step"),
        ({"step": "7"}, "/step"),
    ):
        refused = trip.take_back(due, **changed)
        assert (refused.status, refused.body["errors"][0]["path"]) == (400, path)
    plain = trip.service.begin(trip.run, trip.tool("refund"), {"id": "pay-1"}, step=f"compensate:{pay}")
    assert (plain.status, plain.body["errors"][0]["path"]) == (400, "/compensates")


def test_a_compensation_whose_answer_was_lost_is_begun_again_and_runs_once(trip: Booking) -> None:
    trip.open()
    trip.done("pay")
    trip.fail()
    due, attempt = trip.due(), str(uuid4())
    grant = trip.take_back(due, attempt=attempt)
    again = trip.take_back(due, attempt=attempt)
    assert (again.status, again.body["fence"]) == (201, 1)
    assert trip.next()["waits"]["why"] == "its compensation is being executed"
    assert trip.service.report("commit", grant, result=None).status == 200
    assert trip.take_back(due, attempt=attempt).body["decision"] == "replay"
    assert trip.take_back(due).code == "saga-over"
    assert trip.next()["state"] == "compensated"


def test_of_two_workers_that_take_back_one_step_at_once_one_has_the_lease(trip: Booking) -> None:
    """Durable 17: there is one winner."""
    trip.open()
    trip.done("pay")
    trip.fail()
    one, other = trip.due(), trip.due()
    assert one == other
    grant = trip.take_back(one)
    beaten = trip.take_back(other)
    assert (grant.status, beaten.status, beaten.code) == (201, 409, "in-progress")


def test_a_step_that_waits_for_another_try_is_cancelled(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    grant = trip.begin("pay")
    trip.report(grant, "not_applied")
    trip.fail()
    assert trip.due()["tool"] == trip.tool("release")
    pay = trip.service.ask("GET", f"/v1/effects/{grant.body['key']}").body
    assert (pay["state"], pay["outcome"]["error"]["type"]) == ("failed", "Cancelled")
    assert trip.steps()[1] == ("pay", "skipped")


def test_a_step_without_a_compensation_is_told_of_and_stands_in_nobodys_way(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    said = trip.done("say")
    trip.fail()
    assert trip.next()["uncompensated"] == [f"{trip.tool('say')} ({said})"]
    assert trip.taken_back() == trip.tool("release")
    assert (trip.next()["state"], trip.steps()[1]) == ("compensated", ("say", "uncompensated"))


def test_what_another_run_has_done_is_not_taken_back(trip: Booking) -> None:
    key = f"order-{trip.run}"
    other = trip.service.begin(f"{trip.run}-other", trip.tool("pay"), {"x": 1}, business_key=key)
    trip.service.report("commit", other, result={"id": "pay-1"})
    trip.open()
    assert trip.begin("pay", business_key=key).body["shared"]["run"] == f"{trip.run}-other"
    trip.fail()
    assert trip.next()["state"] == "compensated"
    assert trip.steps() == [("pay", "skipped")]


def test_what_the_run_did_before_the_saga_is_not_taken_back(trip: Booking) -> None:
    before = trip.service.begin(trip.run, trip.tool("hold"), {"x": 1})
    trip.service.report("commit", before, result={"id": "hold-1"})
    trip.open()
    assert trip.begin("hold").body["decision"] == "replay"
    trip.fail()
    assert (trip.next()["state"], trip.steps()) == ("compensated", [("hold", "skipped")])


def test_another_saga_of_the_run_does_again_what_one_took_back(trip: Booking) -> None:
    trip.open()
    first = trip.done("hold")
    trip.fail()
    trip.taken_back()
    trip.saga = f"{trip.saga}-again"
    trip.open()
    second = trip.done("hold")
    assert second != first
    assert trip.begin("hold").body["key"] == second
    trip.fail()
    assert trip.due()["key"] == second


def test_a_step_that_another_saga_is_about_to_take_back_is_not_taken_for_done(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    trip.fail()
    trip.saga = f"{trip.saga}-again"
    trip.open()
    waits = trip.begin("hold")
    assert (waits.status, waits.code) == (409, "retry-later")


def test_two_sagas_do_not_both_take_back_one_effect(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    first, trip.saga = trip.saga, f"{trip.saga}-other"
    trip.open()
    assert trip.begin("hold").body["decision"] == "replay"
    trip.fail()
    assert trip.next()["state"] == "compensated"
    assert trip.steps() == []
    trip.saga = first
    trip.fail()
    assert trip.due()["tool"] == trip.tool("release")


def test_a_fork_has_a_saga_of_its_own(trip: Booking) -> None:
    trip.open()
    trip.done("hold")
    fork = trip.service.ask("POST", f"/v1/runs/{trip.run}/forks", {"fork": f"{trip.run}-fork", "at": 0})
    assert fork.status == 200, fork.body
    opened = trip.open(run=f"{trip.run}-fork")
    assert (opened.status, opened.body["saga"]) == (200, f"{trip.saga}@{trip.run}-fork")
    assert (opened.body["state"], opened.body["run"]) == ("running", f"{trip.run}-fork")


def test_sagas_are_listed_newest_first_by_state_and_run(trip: Booking) -> None:
    trip.open()
    first, trip.saga = trip.saga, f"{trip.saga}-other"
    trip.open()
    trip.fail()
    listed = trip.service.ask("GET", f"/v1/sagas?run={trip.run}").body
    assert [(saga["saga"], saga["state"]) for saga in listed["items"]] == [
        (trip.saga, "compensated"),
        (first, "running"),
    ]
    paged = trip.service.ask("GET", f"/v1/sagas?run={trip.run}&limit=1").body
    rest = trip.service.ask("GET", f"/v1/sagas?run={trip.run}&limit=1&after={paged['next']}").body
    assert [saga["saga"] for saga in rest["items"]] == [first]
    failed = trip.service.ask("GET", f"/v1/sagas?run={trip.run}&state=compensated").body
    assert [saga["saga"] for saga in failed["items"]] == [trip.saga]


@pytest.mark.parametrize(
    ("method", "path", "body", "place"),
    [
        ("POST", "/v1/sagas", {"saga": "a/b", "run": "r"}, "/saga"),
        ("POST", "/v1/sagas", {"saga": "a"}, "/run"),
        ("POST", "/v1/sagas", {"saga": "a", "run": "r", "deadline_seconds": 0}, "/deadline_seconds"),
        ("POST", "/v1/sagas/a/fail", {"reason": ""}, "/reason"),
        ("POST", f"/v1/sagas/a/steps/{'00' * 32}/settle", {"as": "maybe", "by": "ann", "reason": "r"}, "/as"),
        ("POST", "/v1/sagas/a/resume", {"reason": "r"}, "/by"),
        ("GET", "/v1/sagas?state=lost", None, "/state"),
        ("GET", "/v1/sagas?after=x", None, "/after"),
    ],
)
def test_bad_input_names_its_place(service: ServiceProcess, method: str, path: str, body: object, place: str) -> None:
    refused = service.ask(method, path, body)
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)
