"""A service, or a proxy before it, that asks to be spared for a while: it is, and nothing is in doubt for that."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.unit.sdk.scripted import FakeClock, ScriptedService, attempts, committed, executes, payer, problem
from tests.unit.sdk.spooled import Delivering, files, undelivered
from twiceshy import Guard, GuardUnavailable, OutcomeNotDelivered
from twiceshy._replies import Unanswered, read
from twiceshy._spool_list import look
from twiceshy._transports.base import Reply
from twiceshy_contract.events import AppendAnswer

Serve = Callable[..., tuple[Guard, ScriptedService]]


def overloaded(seconds: float) -> Reply:
    return problem("overloaded", 503, retry_after_seconds=seconds)


def spared_by_proxy(status: int, seconds: str) -> Reply:
    return Reply(status=status, content_type="text/html", body=b"<p>busy</p>", retry_after=seconds)


@pytest.mark.parametrize(
    "answer",
    [
        overloaded(4.0),
        spared_by_proxy(503, "4"),
        spared_by_proxy(429, "4"),
        problem("too-many-requests", 429, retry_after_seconds=4.0),
    ],
)
def test_a_begin_and_its_commit_wait_as_they_are_asked_to_and_up_to_a_quarter_more(
    serve: Serve, clock: FakeClock, answer: Reply
) -> None:
    guard, service = serve(answer, executes(), answer, committed())
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert calls == [7]
    assert clock.sleeps == [5.0, 5.0]
    assert len(set(attempts(service))) == 1
    assert not [path for path in service.paths if path.endswith("/release")]


def test_too_many_is_never_the_last_word_so_that_a_recorder_sends_again() -> None:
    answer = problem("too-many-requests", 429, retry_after_seconds=4.0)
    assert read(answer, msgspec.json.Decoder(AppendAnswer)) == Unanswered(
        "status 429: The service says too-many-requests.", is_said=True, retry_after=4.0
    )


def test_where_it_would_be_too_late_a_begin_asks_once_more_at_the_end(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(overloaded(3600.0), executes(), committed())
    pay = payer(guard, [])
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert clock.sleeps == [pytest.approx(9.0)]
    assert len(set(attempts(service))) == 1


def test_a_begin_that_is_put_off_until_its_deadline_executes_nothing_and_gives_up(
    serve: Serve, clock: FakeClock
) -> None:
    guard, service = serve(*[overloaded(2.0)] * 100)
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"), pytest.raises(GuardUnavailable, match="overloaded"):
        pay(7)
    assert calls == []
    assert 9 <= clock.now - 1000 <= 10
    assert len(service.bodies("/v1/effects")) <= 7


def test_a_commit_that_is_put_off_until_its_deadline_goes_to_the_spool(
    serve: Serve, clock: FakeClock, tmp_path: Path
) -> None:
    guard, service = serve(executes(), *[overloaded(3.0)] * 100, spool=tmp_path)
    pay = payer(guard, [])
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert [(entry.tool, entry.kind) for entry in look(tmp_path)] == [("pay", "succeeded")]
    assert 28 <= clock.now - 1000 <= 30
    assert len(service.bodies("/commit")) <= 14


def test_without_a_spool_such_a_commit_is_not_delivered_and_has_its_result(serve: Serve) -> None:
    guard, _ = serve(executes(), *[overloaded(3.0)] * 100)
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(OutcomeNotDelivered) as caught:
        pay(7)
    assert (caught.value.has_result, caught.value.result) == (True, 14)


def test_what_waits_in_the_spool_is_sent_no_sooner_than_the_service_asks(it: Delivering) -> None:
    it.given(undelivered(1))
    it.service.always = overloaded(40.0)
    assert it.spooler.run_once() == 40
    assert len(files(it.folder)) == 1
