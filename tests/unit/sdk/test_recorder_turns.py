"""Each run has its turn to be sent: one's refusal holds up no other, and what is in flight is not forgotten."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.sdk.logs import head
from tests.unit.sdk.recording import SILENCE, LogService, recorded, recorder_of
from tests.unit.sdk.scripted import problem
from twiceshy import RecordingDiverged
from twiceshy._boundaries import Boundary
from twiceshy._log import Log
from twiceshy._recorded_run import Recorded
from twiceshy._recorder import Recorder
from twiceshy._session import Session
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy._writer import Writer


class Stuck(LogService):
    """Answers no append until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.was_asked = threading.Event()
        self.may_answer = threading.Event()

    def send(self, request: Request) -> Reply | NoReply:
        if request.path.endswith("/events"):
            self.was_asked.set()
            self.may_answer.wait(30)
        return super().send(request)


class Refusing(LogService):
    """Refuses the appends of one run for some times."""

    def __init__(self, run: str, times: int) -> None:
        super().__init__()
        self._path, self._times = f"/v1/runs/{run}/events", times

    def send(self, request: Request) -> Reply | NoReply:
        if request.path == self._path and self._times:
            self._times -= 1
            self.requests.append(request)
            return problem("forbidden", 403, detail="It says forbidden.")
        return super().send(request)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stuck]:
    monkeypatch.setattr("twiceshy._recorder.HURRIED_SECONDS", 0.05)
    service = Stuck()
    yield service
    service.may_answer.set()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent in the background: the test calls run_once."""
    monkeypatch.setattr(Recorder, "_run", lambda _: None)


def entered(recorder: Recorder, service: LogService, run: str, credential: str | None = None) -> tuple[Recorded, Log]:
    """Enter a recorded run; return it, and its log."""
    service.send(Request(method="POST", path="/v1/runs", body=_OPEN % run.encode()))
    held, _ = recorder.claim(run)
    writer = Writer(head(run, epoch=1), recorder.wake, credential)
    log = Log(writer)
    held.open(Session(log, writer=writer), writer)
    return held, log


_OPEN = b'{"run":"%b","record":true}'


def pass_one(log: Log) -> None:
    log.intent(Boundary(kind="time", name="now"))


def appends(service: LogService) -> list[str]:
    return [request.path.split("/")[3] for request in service.requests if request.path.endswith("/events")]


def made(service: LogService, spool: Path | None = None) -> Recorder:
    return Recorder(service, "http://guard.test", spool, lambda: 1.0)


@pytest.mark.usefixtures("by_hand")
def test_a_run_that_is_refused_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "twiceshy")
    service = Refusing("r1", times=1)
    recorder = made(service)
    logs = [entered(recorder, service, run)[1] for run in ("r1", "r2")]
    for log in logs:
        pass_one(log)
    recorder.run_once()
    assert (service.kinds("r1"), service.kinds("r2")) == ([], ["1 time now"])
    recorder.run_once()
    assert service.kinds("r1") == ["1 time now"]
    assert [record.message for record in caplog.records] == [
        "What the run r1 records is held here, because http://guard.test refuses it: forbidden: It says forbidden.",
        "What the run r1 records is taken again by http://guard.test.",
    ]


@pytest.mark.usefixtures("by_hand")
def test_a_run_that_is_refused_waits_longer_and_longer_while_others_are_sent() -> None:
    now = [100.0]
    service = Refusing("r1", times=3)
    recorder = Recorder(service, "http://guard.test", None, lambda: 1.0, monotonic=lambda: now[0])
    refused, other = (entered(recorder, service, run)[1] for run in ("r1", "r2"))
    pass_one(refused)
    seen: list[tuple[float, int]] = []
    for now[0] in (100.25, 100.3, 100.36, 100.5, 100.57, 100.9, 100.98):
        pass_one(other)
        recorder.wake(recorder.claim("r2")[0].writer, 0.0)
        recorder.run_once(until=now[0])
        seen.append((now[0], appends(service).count("r1")))
    assert seen == [(100.25, 1), (100.3, 1), (100.36, 2), (100.5, 2), (100.57, 3), (100.9, 3), (100.98, 4)]
    assert (service.kinds("r1"), len(service.kinds("r2"))) == (["1 time now"], 7)


@pytest.mark.usefixtures("by_hand")
def test_where_nobody_answers_no_other_run_is_tried_and_another_one_is_the_next() -> None:
    service = LogService()
    recorder = made(service)
    for run in ("r1", "r2"):
        pass_one(entered(recorder, service, run)[1])
    service.appends = [SILENCE, SILENCE]
    recorder.run_once()
    assert appends(service) == ["r1"]
    recorder.run_once()
    recorder.run_once()
    assert appends(service) == ["r1", "r2", "r1", "r2"]


@pytest.mark.usefixtures("by_hand")
def test_a_fork_whose_credential_is_refused_is_recorded_no_more() -> None:
    service = LogService()
    recorder = made(service)
    _, log = entered(recorder, service, "f1", "fork.1.2")
    pass_one(log)
    service.appends = [problem("forbidden", 403)]
    recorder.run_once()
    with pytest.raises(RecordingDiverged, match="now did not run: The service says forbidden"):
        pass_one(log)


@pytest.mark.usefixtures("by_hand")
def test_what_a_run_that_was_left_is_refused_with_is_written_to_a_file(tmp_path: Path) -> None:
    service = LogService()
    recorder = made(service, tmp_path)
    held, log = entered(recorder, service, "r1")
    pass_one(log)
    assert recorder.leave(held)
    recorder.retire(held)
    service.appends = [problem("run-taken-over", 409)]
    recorder.run_once()
    assert len(list((tmp_path / "recordings").iterdir())) == 1


def test_what_is_being_sent_when_the_guard_is_closed_is_written_to_a_file(stuck: Stuck, tmp_path: Path) -> None:
    recorder = made(stuck, tmp_path)
    held, log = entered(recorder, stuck, "r1")
    pass_one(log)
    recorder.leave(held)
    recorder.retire(held)
    assert stuck.was_asked.wait(5)
    recorder.close()
    (file,) = (tmp_path / "recordings").iterdir()
    assert b'"seq":1' in file.read_bytes()


def test_what_is_being_sent_is_waited_for_when_the_guard_is_closed(
    stuck: Stuck, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twiceshy._recorder.HURRIED_SECONDS", 10.0)
    recorder = made(stuck, tmp_path)
    held, log = entered(recorder, stuck, "r1")
    pass_one(log)
    recorder.leave(held)
    recorder.retire(held)
    assert stuck.was_asked.wait(5)
    closing = threading.Thread(target=recorder.close)
    closing.start()
    stuck.may_answer.set()
    closing.join(10)
    assert stuck.kinds("r1") == ["1 time now"]
    assert not (tmp_path / "recordings").exists()


def test_a_run_goes_on_after_its_guard_was_closed(tmp_path: Path) -> None:
    service = LogService()
    with recorded(service, spool=tmp_path, deliver_seconds=5) as guard:
        with guard.run("r1") as run:
            service.is_away = True
            run.now()
            guard.close()
            service.is_away = False
            run.now()
        assert service.kinds("r1") == ["1 time now", "2 result of 1", "3 time now", "4 result of 3"]
    assert not (tmp_path / "recordings").exists()


@pytest.mark.usefixtures("by_hand")
def test_what_an_open_run_holds_is_written_to_a_file_when_the_process_ends(tmp_path: Path) -> None:
    service = LogService()
    with recorded(service, spool=tmp_path, deliver_seconds=0.1) as guard, guard.run("r1") as run:
        service.is_away = True
        run.now()
        recorder_of(guard).close(is_end=True)
        (file,) = (tmp_path / "recordings").iterdir()
        assert file.read_bytes().count(b'{"event"') == 2
        with pytest.raises(RecordingDiverged, match="Event 1 of run 'r1' and what followed it were given up"):
            run.now()
