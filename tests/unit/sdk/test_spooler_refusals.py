"""What the service refuses of what waited: what may be left out, and what is kept for a person."""

import logging
from pathlib import Path

import pytest

from tests.unit.sdk.scripted import committed, failed, problem
from tests.unit.sdk.spooled import Delivering, failure, undelivered
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_list import look, look_at_refused

OTHER = "1f" * 32


@pytest.mark.parametrize(
    ("code", "status"), [("superseded", 409), ("lease-lost", 409), ("not-possible", 409), ("not-found", 404)]
)
def test_a_final_refusal_ends_it_and_says_what_would_be_lost(
    it: Delivering, code: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    it.given(undelivered(1, result={"receipt": 77}), undelivered(2, key=OTHER))
    it.answers(problem(code, status), committed())
    assert it.spooler.run_once() is None
    assert it.sent == [1, 2]
    (kept,) = it.folder.iterdir()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert f"It is kept in {kept}" in record.getMessage()
    assert code in record.getMessage()
    assert '"result":{"receipt":77}' in record.getMessage()


def test_a_report_that_is_refused_for_good_is_kept_whole_and_never_sent(it: Delivering) -> None:
    outcome = undelivered(1, result="x" * 50_000)
    it.given(outcome, undelivered(2, key=OTHER))
    it.answers(problem("superseded", 409), problem("not-found", 404))
    assert it.spooler.run_once() is None
    refused = look_at_refused(it.folder)
    assert [(entry.attempt.int, entry.reason.partition(":")[0]) for entry in refused] == [
        (1, "superseded"),
        (2, "not-found"),
    ]
    assert bytes(refused[0].report) == bytes(outcome.body)
    assert Path(refused[0].file).stat().st_mode & 0o777 == 0o600
    it.now += 60
    assert (it.spooler.has_work, look(it.folder)) == (False, [])


def test_a_refusal_that_cannot_be_kept_leaves_the_outcome_waiting(
    it: Delivering, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    it.given(undelivered(1))
    it.answers(problem("superseded", 409))
    monkeypatch.setattr(SpoolFile, "refuse", full)
    assert it.spooler.run_once() == 0.5
    (entry,) = look(it.folder)
    assert "cannot be kept: [Errno 28] No space left" in (entry.reason or "")


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
    assert [entry.attempt.int for entry in look_at_refused(it.folder)] == [1]
