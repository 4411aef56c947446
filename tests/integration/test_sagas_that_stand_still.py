"""Sagas that cannot end, or go on, by themselves: what is said of it, to whom, and until when."""

import pytest

from tests.integration.booking import Booking
from tests.service import ServiceProcess


@pytest.fixture
def trip(service: ServiceProcess, run: str) -> Booking:
    """A saga that is open."""
    booking = Booking(service, run)
    booking.open()
    return booking


def compensated_by(trip: Booking, expression: str, **said: object) -> None:
    back = {"tool": trip.tool("refund"), "arguments": {"id": expression}}
    trip.declare("pay", compensation=back, **said)


@pytest.mark.parametrize(
    "expression", ["${sort([result.id, `1`])}", "${abs(result.id)}", "${result.id > `1` && max_by(@, &run)}"]
)
def test_a_template_that_cannot_be_evaluated_is_a_persons_to_settle(trip: Booking, expression: str) -> None:
    compensated_by(trip, expression)
    trip.done("hold")
    key = trip.done("pay")
    failed = trip.fail()
    assert (failed.status, failed.body["state"]) == (200, "stuck")
    assert failed.body["waits"]["why"].startswith("the arguments of its compensation cannot be made: ")
    assert trip.shown()["waits"] == trip.next()["waits"]
    retried = trip.settle(key, "retry")
    assert (retried.status, retried.code) == (409, "not-possible")
    assert "Settle the step as done or skip." in retried.body["detail"]
    assert trip.settle(key, "done").body["due"]["tool"] == trip.tool("release")
    assert trip.taken_back() == trip.tool("release")


def test_a_text_that_only_looks_redacted_is_taken_back_as_it_is(trip: Booking) -> None:
    compensated_by(trip, "${arguments.x}")
    grant = trip.service.begin(trip.run, trip.tool("pay"), {"x": "see [redacted] and [redacted]"}, saga=trip.saga)
    trip.service.report("commit", grant, result=None)
    again = trip.service.begin(trip.run, trip.tool("pay"), {"x": "[redacted]"}, saga=trip.saga)
    trip.service.report("commit", again, result=None)
    trip.fail()
    assert trip.due()["arguments"] == {"id": "[redacted]"}
    trip.taken_back()
    assert trip.due()["arguments"] == {"id": "see [redacted] and [redacted]"}


def test_what_the_tool_redacts_is_never_sent_as_a_mark(trip: Booking) -> None:
    compensated_by(trip, "of ${arguments.x}", redacted=["/x"])
    trip.done("pay")
    trip.declare("pay", compensation=None, redacted=[])
    trip.fail()
    assert trip.next()["waits"]["why"] == (
        "the arguments of its compensation cannot be made: the template takes what is redacted in the record"
    )


def test_a_saga_is_not_completed_while_a_step_is_under_way_open_or_in_doubt(trip: Booking) -> None:
    trip.done("hold")
    grant = trip.begin("pay")
    for kind, state, how in (
        (None, "executing", "being executed"),
        ("not_applied", "pending", "not applied, and may still be tried"),
        ("unknown", "in_doubt", "in doubt"),
    ):
        if kind is not None:
            grant = trip.begin("pay") if kind == "unknown" else grant
            trip.report(grant, kind)
            assert trip.steps_with_effects()[1] == ("pay", state)
        refused = trip.complete()
        assert (refused.status, refused.code) == (409, "not-possible")
        assert (refused.body["key"], refused.body["state"]) == (grant.body["key"], state)
        step = f"step {grant.body['key']} is a call of tool '{trip.tool('pay')}', which is {how}."
        assert f"Saga '{trip.saga}' cannot be completed: {step} Run the block again" in refused.body["detail"]
        if kind == "not_applied":
            trip.service.ask("POST", f"/v1/effects/{grant.body['key']}/reopen", {"reason": "at once"})
    assert trip.shown()["state"] == "running"
    word = {"as": "not_applied", "fence": grant.body["fence"], "reason": "the bank says so"}
    assert trip.service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word).status == 200
    assert trip.complete().code == "not-possible"
    cancelled = trip.service.ask("POST", f"/v1/effects/{grant.body['key']}/cancel", {"reason": "paid in cash"})
    assert cancelled.status == 200
    assert (trip.complete().status, trip.complete().body["state"]) == (200, "completed")


def test_a_call_that_does_not_fit_is_flagged_and_can_be_made_by_whom_it_fits(trip: Booking) -> None:
    key = trip.done("pay")
    trip.fail()
    report = f"{trip.path}/steps/{key}/report"
    told = trip.service.ask("POST", report, {"reason": "there is no id"})
    assert (told.status, told.body["state"], told.body["waits"]["why"]) == (200, "stuck", "there is no id")
    assert trip.flags("open") == [f"Saga {trip.saga} cannot be taken back by itself: there is no id."]
    assert trip.next()["due"]["tool"] == trip.tool("refund")
    assert trip.taken_back() == trip.tool("refund")
    assert trip.next()["state"] == "compensated"
    assert trip.flags("open") == []
    assert trip.service.ask("POST", report, {"reason": "late"}).body["state"] == "compensated"


def test_a_retry_of_what_did_not_fit_is_kept_with_its_reason(trip: Booking) -> None:
    key = trip.done("pay")
    trip.fail()
    trip.service.ask("POST", f"{trip.path}/steps/{key}/report", {"reason": "there is no id"})
    again = trip.settle(key, "retry")
    assert (again.body["state"], again.body["waits"]) == ("compensating", None)
    assert again.body["steps"][0]["note"] == "retry by ann: seen to"
    assert trip.flags("open") == []


@pytest.mark.parametrize("text", ["zz", "00"])
def test_what_is_no_key_of_a_step_is_said_to_be_none(trip: Booking, text: str) -> None:
    for verb, body in (("settle", {"as": "done", "by": "ann", "reason": "r"}), ("report", {"reason": "r"})):
        reply = trip.service.ask("POST", f"{trip.path}/steps/{text}/{verb}", body)
        assert (reply.status, reply.code) == (404, "not-found")
        assert reply.body["detail"].startswith(f"'{text}' is no key of a step: a key has 64 hexadecimal digits.")


def refused(trip: Booking, kind: str = "rejected") -> str:
    key = trip.done("pay")
    trip.fail()
    trip.report(trip.take_back(trip.due()), kind)
    trip.next()
    return key


def test_the_flag_of_a_saga_is_closed_once_the_saga_goes_on_and_open_again_where_it_sticks_again(trip: Booking) -> None:
    trip.declare("refund", attempts=1)
    key = refused(trip, "not_applied")
    why = "its compensation was tried 1 times, and no try said that it was done"
    detail = f"Saga {trip.saga} cannot be taken back by itself: {why}."
    assert trip.flags("open") == [detail]
    trip.resume()
    assert (trip.flags("open"), trip.flags("closed")) == ([], [detail])
    trip.report(trip.take_back(trip.due()), "not_applied")
    trip.next()
    assert trip.flags("open") == [detail]
    trip.settle(key, "done")
    assert (trip.flags("open"), trip.flags("closed")) == ([], [detail])


def test_a_retry_that_reopens_keeps_who_said_so_and_why(trip: Booking) -> None:
    trip.declare("refund", attempts=1)
    key = refused(trip, "not_applied")
    again = trip.settle(key, "retry")
    assert (again.status, again.body["due"]["occurrence"]) == (200, 1)
    assert again.body["steps"][0]["note"] == "retry by ann: seen to"


def test_a_retry_or_resume_that_changes_nothing_says_why(trip: Booking) -> None:
    first = trip.done("hold")
    key = trip.done("pay")
    trip.fail()
    early = trip.settle(key, "retry")
    assert (early.status, early.code) == (409, "not-possible")
    assert "the call that takes it back is due; a process that has the tool makes it." in early.body["detail"]
    assert "other steps are taken back before it" in trip.settle(first, "retry").body["detail"]
    assert trip.resume().body["detail"] == early.body["detail"]
    grant = trip.take_back(trip.due())
    assert "its compensation is being executed." in trip.resume().body["detail"]
    trip.service.report("commit", grant, result=None)
    trip.taken_back()
    over = trip.resume()
    assert (over.status, over.code) == (409, "saga-over")
    assert f"Saga '{trip.saga}' is compensated (the house is full): it has nothing to resume." in over.body["detail"]
    assert [step["note"] for step in trip.shown()["steps"]] == [None, None]
