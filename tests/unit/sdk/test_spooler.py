"""The thread that delivers: in which order, how long between tries, what is final, and what it says."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.unit.sdk.scripted import Answer, ScriptedService, committed, failed, problem
from tests.unit.sdk.spooled import failure, files, undelivered
from twiceshy._spool import Spool
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_record import Undelivered
from twiceshy._spooler import Spooler
from twiceshy._transports.base import NoReply, Reply, Request

SILENCE = NoReply(reason="connection refused")
OTHER = "1f" * 32


class Delivering:
    """A spooler with what it needs, in a folder of its own; time stands still."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.service = ScriptedService()
        self.now = 1000.0
        self.spooler = Spooler(Spool(folder, "http://guard.test"), self.service, lambda: self.now, lambda: 1.0)

    def given(self, *outcomes: Undelivered) -> None:
        """Leave outcomes behind as a dead process does."""
        file = SpoolFile.create(self.folder)
        for outcome in outcomes:
            file.keep(outcome)
        file.let_go()

    def answers(self, *answers: Answer) -> None:
        self.service.answers = list(answers)

    @property
    def sent(self) -> list[int]:
        """The numbers of the attempts that were sent, in order."""
        bodies = self.service.bodies("/commit") + self.service.bodies("/fail")
        return [UUID(str(body["attempt"])).int for body in bodies]


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Delivering]:
    delivering = Delivering(tmp_path)
    yield delivering
    delivering.answers()
    delivering.service.always = SILENCE
    delivering.spooler.close()


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


def test_one_that_is_stuck_is_overtaken_by_none_of_its_file(it: Delivering) -> None:
    it.given(undelivered(1), undelivered(2, key=OTHER))
    it.given(undelivered(3))
    it.answers(problem("store-unavailable", 503), committed())
    assert it.spooler.run_once() is not None
    assert it.sent == [1, 3]
    it.answers(committed(), committed())
    assert it.spooler.run_once() is None
    assert it.sent == [1, 3, 1, 2]


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


@pytest.mark.parametrize(
    ("code", "status"), [("superseded", 409), ("lease-lost", 409), ("not-possible", 409), ("not-found", 404)]
)
def test_a_final_refusal_ends_it_and_says_what_would_be_lost(
    it: Delivering, code: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    it.given(undelivered(1, result={"receipt": 77}), undelivered(2, key=OTHER))
    it.answers(problem(code, status), committed())
    assert it.spooler.run_once() is None
    assert (it.sent, files(it.folder)) == ([1, 2], [])
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert code in record.getMessage()
    assert '"result":{"receipt":77}' in record.getMessage()


def test_a_result_that_the_service_cannot_take_is_left_out_and_the_effect_succeeds(it: Delivering) -> None:
    it.given(undelivered(1, result={"$odd": 1}))
    it.answers(problem("invalid-request", 400), committed())
    assert it.spooler.run_once() is None
    result = it.service.bodies("/commit")[1]["result"]
    assert isinstance(result, dict)
    assert (result["$opaque"]["size"], len(result["$opaque"]["sha256"])) == (10, 64)


def test_the_data_of_a_rejection_that_the_service_cannot_take_is_left_out(it: Delivering) -> None:
    it.given(failure(1, data={"missing": 5}))
    it.answers(problem("too-large", 413), failed("failed"))
    assert it.spooler.run_once() is None
    assert it.service.bodies("/fail")[1]["error"] == {"type": "Rejected", "message": "no money"}


def test_a_failure_without_data_that_is_refused_is_refused_for_good(it: Delivering) -> None:
    it.given(failure(1))
    it.answers(problem("invalid-request", 400))
    assert it.spooler.run_once() is None
    assert files(it.folder) == []


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
    assert it.spooler.run_once() is not None
    assert it.spooler.run_once() is None


def test_the_thread_runs_while_something_waits_and_ends(it: Delivering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._spooler._FIRST_PAUSE", 0.001)
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
    other.spooler.visit()
    assert (other.sent, files(tmp_path)) == ([1], [])


def test_a_visit_does_not_wait_for_a_delivery_that_is_under_way(it: Delivering) -> None:
    it.given(undelivered(1))

    def slow(_: Request) -> Reply:
        it.spooler.visit()
        return committed()

    it.answers(slow)
    it.spooler.visit()
    assert it.sent == [1]
