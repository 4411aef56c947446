"""The thread that delivers: in which order, how long between tries, what is final, and what it says."""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.unit.sdk.scripted import committed, problem
from tests.unit.sdk.spooled import SILENCE, Delivering, files, undelivered
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy.exceptions import SetupError

OTHER = "1f" * 32


def test_all_is_sent_in_the_order_of_writing_and_the_files_go(it: Delivering, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    it.given(undelivered(2), undelivered(1))
    it.given(undelivered(3))
    it.answers(committed(), committed(), committed())
    assert it.spooler.run_once() is None
    assert it.sent == [2, 1, 3]
    assert files(it.folder) == []
    delivered = [record.getMessage() for record in caplog.records if "is delivered" in record.getMessage()]
    assert len(delivered) == 3
    assert delivered[0].endswith("is succeeded.")


def test_one_that_is_stuck_is_overtaken_by_those_of_other_effects_alone(it: Delivering) -> None:
    it.given(undelivered(1), undelivered(2, key=OTHER))
    it.given(undelivered(3))
    it.answers(problem("store-unavailable", 503), committed())
    assert it.spooler.run_once() == 0.5
    assert it.sent == [1, 2]
    it.now += 0.5
    it.answers(committed(), committed())
    assert it.spooler.run_once() is None
    assert it.sent == [1, 2, 1, 3]


def test_an_effect_that_is_always_answered_500_pauses_alone_and_starves_no_other(it: Delivering) -> None:
    it.given(*(undelivered(number, key=f"{number:064x}") for number in range(1, 30)))
    it.service.always = lambda request: problem("internal", 500) if f"{1:064x}" in request.path else committed()
    pauses = [it.spooler.run_once()]
    assert it.sent == list(range(1, 30))
    for _ in range(3):
        assert it.spooler.run_once() is not None
        it.now += pauses[-1] or 0
        pauses.append(it.spooler.run_once())
    assert (pauses, it.sent[29:]) == ([0.5, 1, 2, 4], [1, 1, 1])


def test_a_service_that_takes_none_is_asked_three_times_a_round_by_each_in_turn(it: Delivering) -> None:
    it.given(*(undelivered(number, key=f"{number:064x}") for number in range(1, 8)))
    it.service.always = problem("store-unavailable", 503)
    assert [it.spooler.run_once(), it.spooler.run_once()] == [0.5, 1]
    assert it.sent == [1, 2, 3, 4, 5, 6]
    it.spooler.visit(10)()
    assert it.sent[6:] == [7, 1, 2, 3], "a call lets each have its turn that was never tried"


def test_where_nobody_answers_one_is_asked_and_the_others_wait(it: Delivering) -> None:
    for number in range(1, 16):
        it.given(undelivered(number, key=f"{number:064x}"))
    it.service.always = SILENCE
    it.spooler.visit(3)()
    assert it.sent == [1]
    assert it.spooler.run_once() == 0.5
    assert it.sent == [1, 2], "each in turn"


def test_a_visit_lasts_no_longer_than_the_patience_of_its_call(it: Delivering) -> None:
    it.given(*(undelivered(number, key=f"{number:064x}") for number in range(1, 16)))

    def slow(request: Request) -> Reply:
        it.now += 1.25
        return committed()

    it.service.always = slow
    it.spooler.visit(3)()
    assert it.sent == [1, 2, 3]
    assert [request.timeout_seconds for request in it.service.requests] == [2, 1.75, 0.5]


def test_an_embedded_database_that_cannot_be_opened_is_said_in_one_line(
    it: Delivering, caplog: pytest.LogCaptureFixture
) -> None:
    def shut(_: Request) -> Reply:
        raise SetupError("The database is of a newer version.")

    it.given(undelivered(1), undelivered(2, key=OTHER))
    it.answers(shut)
    assert it.spooler.run_once() == 0.5
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (record.exc_info, "of a newer version" in record.getMessage()) == (None, True)


@pytest.mark.parametrize(
    "answer",
    [
        SILENCE,
        problem("internal", 500),
        problem("store-unavailable", 503),
        problem("unauthorized", 401),
        problem("forbidden", 403),
        problem("too-many-requests", 429),
        Reply(status=404, content_type="text/html", body=b"<p>a proxy</p>"),
        Reply(status=200, content_type="text/html", body=b"<p>a proxy</p>"),
    ],
)
def test_what_is_no_last_word_of_the_guard_keeps_it(it: Delivering, answer: Reply | NoReply) -> None:
    it.given(undelivered(1))
    it.answers(answer)
    assert it.spooler.run_once() is not None
    assert len(files(it.folder)) == 1


def test_the_pauses_double_to_a_minute_and_obey_the_service(it: Delivering) -> None:
    it.given(undelivered(1))
    it.service.always = SILENCE
    pauses = [it.spooler.run_once() for _ in range(9)]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 32, 60, 60]
    it.service.always = problem("too-many-requests", 429, retry_after_seconds=90.0)
    assert it.spooler.run_once() == 90
    it.service.always = problem("too-many-requests", 429, retry_after_seconds=9000.0)
    assert it.spooler.run_once() == 600


def test_jitter_takes_up_to_half_of_a_pause(it: Delivering) -> None:
    it.given(undelivered(1))
    it.service.always = SILENCE
    it.spooler._chance = lambda: 0.0
    assert it.spooler.run_once() == 0.25


def test_files_of_the_dead_are_looked_for_at_first_and_every_minute(it: Delivering) -> None:
    assert not it.spooler.has_work
    it.given(undelivered(1))
    it.now += 59
    assert not it.spooler.has_work
    it.now += 1
    assert it.spooler.has_work


def test_a_transport_that_breaks_does_not_end_the_delivery(it: Delivering) -> None:
    def broken(_: Request) -> Reply:
        raise ValueError("a defect")

    it.given(undelivered(1))
    it.answers(broken, committed())
    assert it.spooler.run_once() == 0.5
    it.now += 0.5
    assert it.spooler.run_once() is None


def test_the_thread_runs_while_something_waits_and_ends(it: Delivering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._spooler.FIRST_PAUSE", 0.001)
    it.answers(SILENCE, committed())
    it.spooler.keep(undelivered(1))
    assert "twiceshy-spool" not in [thread.name for thread in threading.enumerate()]
    it.spooler.hand_over(UUID(int=1))
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "twiceshy-spool"]
    assert thread.daemon
    thread.join(10)
    assert (it.sent, files(it.folder)) == ([1, 1], [])
    it.answers(committed())
    it.spooler.keep(undelivered(2))
    it.spooler.hand_over(UUID(int=2))
    for thread in threading.enumerate():
        if thread.name == "twiceshy-spool":
            thread.join(10)
    assert it.sent == [1, 1, 2]


def test_closing_tries_once_more_and_leaves_the_rest_to_the_next(it: Delivering, tmp_path: Path) -> None:
    it.service.always = SILENCE
    it.spooler.keep(undelivered(1))
    it.spooler.hand_over(UUID(int=1))
    it.spooler.close()
    assert it.service.requests[-1].timeout_seconds == 2
    other = Delivering(tmp_path)
    other.answers(committed())
    other.spooler.visit(10)()
    assert (other.sent, files(tmp_path)) == ([1], [])


def test_calls_that_arrive_while_one_sends_wait_for_it_and_send_nothing_twice(it: Delivering) -> None:
    it.given(undelivered(1), undelivered(2, key=OTHER))
    inside, going, done = threading.Event(), threading.Event(), list[int]()

    def slow(_: Request) -> Reply:
        inside.set()
        assert going.wait(10)
        return committed()

    def call(work: Callable[[], None]) -> None:
        work()
        done.append(len(files(it.folder)))

    it.answers(slow, problem("internal", 500))
    threads = [threading.Thread(target=call, args=(it.spooler.visit(10),)) for _ in range(5)]
    for thread in threads:
        thread.start()
        assert inside.wait(10)
        assert it.spooler.has_work, "the next one is to wait too"
    assert done == []
    going.set()
    for thread in threads:
        thread.join(10)
    assert (done, it.sent) == ([1] * 5, [1, 2])


def test_a_call_waits_for_others_no_longer_than_its_patience(it: Delivering) -> None:
    it.given(undelivered(1))

    def slow(_: Request) -> Reply:
        it.spooler.visit(0.05)()
        return committed()

    it.answers(slow)
    it.spooler.visit(10)()
    assert it.sent == [1]


def test_a_call_that_waited_sends_what_the_others_did_not_know_of(it: Delivering) -> None:
    it.given(undelivered(1))
    arrived: list[Callable[[], None]] = []

    def slow(_: Request) -> Reply:
        it.spooler.keep(undelivered(2, key=OTHER))
        it.spooler._spool.hand_over(UUID(int=2))
        arrived.append(it.spooler.visit(10))
        return committed()

    it.answers(slow, committed())
    it.spooler.visit(10)()
    arrived[0]()
    assert it.sent == [1, 2]
