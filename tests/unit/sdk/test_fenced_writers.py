"""A writer that the service refuses passes no boundary any more; what its code did already still counts."""

import msgspec
import pytest

from tests.unit.sdk.recording import LogService, recorded, recorder_of
from tests.unit.sdk.scripted import answered, problem
from twiceshy import RecordingDiverged, RunTakenOver
from twiceshy._recorder import Recorder
from twiceshy._transports.base import Reply, Request


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent in the background: the test calls run_once."""
    monkeypatch.setattr(Recorder, "_run", lambda _: None)


@pytest.mark.usefixtures("by_hand")
def test_whoever_was_taken_over_passes_no_boundary_any_more(service: LogService) -> None:
    with recorded(service) as guard, guard.run("r1") as run:
        run.random()
        service.take_over("r1")
        recorder_of(guard).run_once()
        with pytest.raises(RunTakenOver, match=r"now did not run: The service says run-taken-over\."):
            run.now()
        with pytest.raises(RunTakenOver):
            run.now()
    assert service.kinds("r1") == []


def test_a_run_that_was_taken_over_can_be_taken_back(service: LogService) -> None:
    with recorded(service) as guard:
        with guard.run("r1") as run:
            service.take_over("r1")
            run.random()
        with guard.run("r1") as run:
            run.now()
    assert service.kinds("r1") == ["1 time now", "2 result of 1"]


@pytest.mark.parametrize("code", ["recording-diverged", "recording-gap", "not-found"])
@pytest.mark.usefixtures("by_hand")
def test_a_log_that_cannot_go_on_stops_the_run(service: LogService, code: str) -> None:
    with recorded(service) as guard, guard.run("r1") as run:
        run.random()
        service.appends = [problem(code)]
        recorder_of(guard).run_once()
        with pytest.raises(RecordingDiverged, match=f"The service says {code}"):
            run.random()


@pytest.mark.usefixtures("by_hand")
def test_an_outcome_after_the_takeover_reaches_the_code(service: LogService) -> None:
    with recorded(service) as guard, guard.run("r1") as run:

        def slow() -> str:
            service.take_over("r1")
            recorder_of(guard).run_once()
            return "done"

        assert run.custom("slow", slow) == "done"


@pytest.mark.usefixtures("by_hand")
def test_values_that_went_ahead_and_are_missing_go_again(service: LogService) -> None:
    parts = {f"part_{number}": chr(97 + number) * 6_000_000 for number in range(4)}
    with recorded(service) as guard, guard.run("r1") as run:
        run.custom("take", lambda **parts: len(parts), **parts)
        missing: list[str] = []

        def lose(request: Request) -> Reply:
            missing.extend(msgspec.json.decode(request.body or b"")["blobs"])
            return answered(200, {"run": "r1", "next_seq": 1})

        service.appends = [lose, lose, lambda _: problem("blobs-missing", paths=missing)]
        recorder_of(guard).run_once()
        recorder_of(guard).run_once()
    assert set(missing) <= set(service.blobs)
    assert service.kinds("r1") == ["1 custom take", "2 result of 1"]


def test_a_child_process_of_the_os_does_not_write_the_parents_log(service: LogService) -> None:
    with recorded(service) as guard, guard.run("r1") as run:
        run.random()
        recorder_of(guard).start_anew_in_child()
        with pytest.raises(RunTakenOver, match="recorded by the process that this one was forked from"):
            run.random()
