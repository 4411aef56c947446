"""Sagas whose way back is barred: doubt, refusals, late proof, deadlines, and what an operator does."""

import pytest

from tests.integration.booking import Booking
from tests.service import Reply, ServiceProcess


@pytest.fixture
def trip(service: ServiceProcess, run: str) -> Booking:
    """A saga that is open."""
    booking = Booking(service, run)
    booking.open()
    return booking


def resolved(trip: Booking, grant: Reply, how: str, **said: object) -> None:
    word = {"as": how, "fence": grant.body["fence"], "reason": "the provider says so"} | said
    reply = trip.service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word)
    assert reply.status == 200, reply.body


def doubtful(trip: Booking, tool: str = "pay") -> Reply:
    grant = trip.begin(tool)
    trip.report(grant, "unknown")
    return grant


def test_doubt_is_settled_first_and_what_was_applied_is_taken_back(trip: Booking) -> None:
    trip.done("hold")
    grant = doubtful(trip)
    trip.fail()
    waits = trip.next()
    assert (waits["state"], waits["due"], waits["waits"]["key"]) == ("compensating", None, grant.body["key"])
    assert waits["waits"]["why"].startswith("the step may or may not have happened")
    assert 0 < waits["waits"]["retry_after_seconds"] <= 1
    resolved(trip, grant, "applied", result={"id": "pay-9"})
    assert trip.due()["arguments"] == {"id": "pay-9"}
    assert [trip.taken_back(), trip.taken_back()] == [trip.tool("refund"), trip.tool("release")]


def test_doubt_that_comes_to_nothing_is_skipped(trip: Booking) -> None:
    trip.done("hold")
    grant = doubtful(trip)
    trip.fail()
    trip.next()
    resolved(trip, grant, "not_applied")
    assert trip.due()["tool"] == trip.tool("release")
    assert trip.steps()[1] == ("pay", "skipped")


def test_a_step_that_is_being_executed_is_waited_for_and_then_taken_back(trip: Booking) -> None:
    grant = trip.begin("pay")
    trip.fail()
    assert trip.next()["waits"]["why"] == "the step is being executed"
    trip.service.report("commit", grant, result={"id": "pay-1"})
    assert trip.taken_back() == trip.tool("refund")


def test_doubt_within_the_providers_window_is_settled_by_running_the_step_again(trip: Booking) -> None:
    trip.declare(
        "pay",
        provider_window_seconds=3600,
        compensation={"tool": trip.tool("refund"), "arguments": {"id": "${result.id}"}},
    )
    trip.open()
    grant = doubtful(trip)
    trip.fail()
    due = trip.due()
    assert (due["purpose"], due["tool"], due["arguments"]) == ("settle", trip.tool("pay"), {"x": 1})
    again = trip.take_back(due)
    assert (again.status, again.body["key"], again.body["fence"]) == (201, grant.body["key"], 2)
    assert again.body["downstream_key"] == grant.body["downstream_key"]
    trip.service.report("commit", again, result={"id": "pay-1"})
    assert trip.due()["purpose"] == "compensate"


def test_a_compensation_before_it_is_known_whether_the_step_was_done_is_refused(trip: Booking) -> None:
    trip.declare(
        "pay",
        provider_window_seconds=3600,
        compensation={"tool": trip.tool("refund"), "arguments": {"id": "${result.id}"}},
    )
    key = doubtful(trip).body["key"]
    trip.fail()
    early = trip.take_back(
        trip.due(), tool=trip.tool("refund"), arguments={"id": "x"}, compensates=key, step=f"compensate:{key}"
    )
    assert (early.status, early.code) == (409, "saga-over")


@pytest.mark.parametrize("how", ["looked at", "left alone"])
def test_proof_that_comes_after_the_end_queues_the_compensation(trip: Booking, how: str) -> None:
    trip.done("hold")
    grant = doubtful(trip)
    trip.fail()
    settled = trip.settle(grant.body["key"], "skip")
    assert (settled.status, settled.body["steps"][1]["state"]) == (200, "passed_over")
    assert settled.body["steps"][1]["note"] == "skip by ann: seen to"
    trip.taken_back()
    assert trip.next()["state"] == "compensated"
    late = trip.service.report("commit", grant, result={"id": "pay-late"})
    assert late.status == 200
    if how == "left alone":
        trip.see(lambda: trip.shown()["state"] == "compensating")
    due = trip.due()
    assert (due["tool"], due["arguments"]) == (trip.tool("refund"), {"id": "pay-late"})
    assert trip.taken_back() == trip.tool("refund")
    assert (trip.next()["state"], trip.next()["ended_at"] is None) == ("compensated", False)


def test_a_deadline_that_passes_takes_the_saga_back_with_nobody_there(service: ServiceProcess, run: str) -> None:
    trip = Booking(service, run)
    trip.open(deadline_seconds=0.5)
    trip.done("hold")
    grant = trip.begin("pay")
    trip.report(grant, "not_applied")
    trip.see(lambda: trip.shown()["state"] == "compensating")
    trip.see(lambda: trip.steps()[1] == ("pay", "skipped"))
    assert trip.shown()["reason"] == "its deadline has passed"
    late = trip.begin("confirm")
    assert late.code == "saga-over"
    assert "(its deadline has passed): it takes no step of tool" in late.body["detail"]
    assert trip.service.ask("POST", f"{trip.path}/complete").code == "saga-over"
    assert trip.taken_back() == trip.tool("release")


def test_a_saga_of_which_nothing_was_done_is_compensated_by_the_sweep(service: ServiceProcess, run: str) -> None:
    trip = Booking(service, run)
    trip.open(deadline_seconds=0.1)
    trip.see(lambda: trip.shown()["state"] == "compensated")


def stuck(trip: Booking, kind: str = "rejected") -> str:
    """Let the compensation of a step fail, and return the step's key."""
    key = trip.done("pay")
    trip.fail()
    trip.report(trip.take_back(trip.due()), kind)
    return key


def test_a_compensation_that_is_refused_calls_for_a_person(trip: Booking) -> None:
    trip.done("hold")
    key = stuck(trip)
    found = trip.next()
    why = "its compensation was refused: Full: the house is full"
    assert (found["state"], found["due"], found["waits"]["why"]) == ("stuck", None, why)
    trip.next()
    assert trip.flags() == [f"Saga {trip.saga} cannot be taken back by itself: {why}."]
    listed = trip.service.ask("GET", f"/v1/sagas?state=stuck&run={trip.run}").body["items"]
    assert [saga["saga"] for saga in listed] == [trip.saga]
    again = trip.settle(key, "retry")
    assert (again.body["state"], again.body["due"]["occurrence"]) == ("compensating", 2)
    assert [trip.taken_back(), trip.taken_back()] == [trip.tool("refund"), trip.tool("release")]
    assert trip.next()["state"] == "compensated"


def test_each_round_that_is_refused_tells_the_operator_again(trip: Booking) -> None:
    key = stuck(trip)
    trip.next()
    trip.settle(key, "retry")
    trip.report(trip.take_back(trip.due()), "rejected")
    assert trip.next()["state"] == "stuck"
    assert len(trip.flags()) == 2


@pytest.mark.parametrize(("how", "state"), [("done", "compensated"), ("skip", "skipped")])
def test_an_operator_settles_a_step_by_hand_once(trip: Booking, how: str, state: str) -> None:
    key = stuck(trip)
    settled = trip.settle(key, how)
    assert (settled.status, settled.body["state"]) == (200, "compensated")
    (step,) = settled.body["steps"]
    assert (step["state"], step["note"]) == (state, f"{how} by ann: seen to")
    assert trip.settle(key, how).body == settled.body
    other = trip.settle(key, how, by="bob")
    assert (other.status, other.code) == (409, "saga-over")
    assert trip.settle("00" * 32, "done").code == "not-found"


def test_a_running_saga_has_nothing_to_settle(trip: Booking) -> None:
    key = trip.done("pay")
    assert trip.settle(key, "done").code == "saga-over"
    assert trip.service.ask("POST", f"{trip.path}/resume", {"by": "ann", "reason": "go on"}).code == "saga-over"


def test_a_compensation_whose_tries_are_used_up_is_resumed_by_a_person(trip: Booking) -> None:
    trip.declare("refund", attempts=1)
    stuck(trip, "not_applied")
    assert trip.next()["waits"]["why"] == "its compensation was tried 1 times, and no try said that it was done"
    resumed = trip.service.ask("POST", f"{trip.path}/resume", {"by": "ann", "reason": "the bank is back"})
    assert (resumed.status, resumed.body["due"]["occurrence"]) == (200, 1)
    assert trip.taken_back() == trip.tool("refund")


def test_resume_tries_again_what_was_refused(trip: Booking) -> None:
    stuck(trip)
    resumed = trip.service.ask("POST", f"{trip.path}/resume", {"by": "ann", "reason": "the bank is back"})
    assert (resumed.body["state"], resumed.body["due"]["occurrence"]) == ("compensating", 2)


def test_doubt_of_a_compensation_is_waited_for_and_heals(trip: Booking) -> None:
    key = trip.done("pay")
    trip.fail()
    grant = trip.take_back(trip.due())
    trip.report(grant, "unknown")
    waits = trip.next()
    assert (waits["state"], waits["due"]) == ("compensating", None)
    assert waits["waits"]["why"].startswith("its compensation may or may not have happened")
    retried = trip.settle(key, "retry")
    assert (retried.status, retried.code) == (409, "not-possible")
    again = trip.service.begin(trip.run, trip.tool("refund"), {"id": "pay-1"}, saga=trip.saga, compensates=key,
                               step=f"compensate:{key}")  # fmt: skip
    assert again.code == "outcome-in-doubt"
    resolved(trip, grant, "applied")
    assert trip.next()["state"] == "compensated"


def test_a_refund_of_something_that_is_not_on_record_is_never_guessed(trip: Booking) -> None:
    grant = doubtful(trip)
    resolved(trip, grant, "applied")
    trip.fail()
    found = trip.next()
    assert found["state"] == "stuck"
    assert "`${result.id}` at /id finds nothing, and the result of the step was not kept" in found["waits"]["why"]
    assert trip.settle(grant.body["key"], "done").body["state"] == "compensated"


def test_a_run_that_is_finished_holds_its_saga_up_until_a_person_sees_to_it(trip: Booking) -> None:
    trip.done("pay")
    trip.service.ask("POST", f"/v1/runs/{trip.run}/finish")
    trip.fail()
    found = trip.next()
    assert (found["state"], found["waits"]["why"]) == (
        "stuck", f"run {trip.run} is finished and takes no new effects",
    )  # fmt: skip


def test_a_stuck_saga_goes_on_by_itself_once_its_doubt_is_settled(trip: Booking) -> None:
    grant = doubtful(trip)
    resolved(trip, grant, "closed")
    trip.fail()
    assert trip.next()["waits"]["key"] == grant.body["key"]
    resolved(trip, grant, "applied", result={"id": "pay-1"})
    trip.see(lambda: trip.shown()["due"] is not None)
    assert trip.taken_back() == trip.tool("refund")
