"""What a run could not send is appended to it later, unless somebody has gone on with the run meanwhile."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.service import ServiceProcess
from twiceshy import Guard, Recording, RecordingRefused, replay
from twiceshy._commands import main
from twiceshy._recorder import Recorder
from twiceshy._replies import Unanswered

Agent = Callable[[Guard], Any]


def imported(service: ServiceProcess, path: Path, *words: str) -> Result:
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TWICESHY_")}
    return CliRunner().invoke(main, ["runs", "import", str(path), "--url", service.url, *words], env=clean)


class Shop:
    """An agent whose service goes away in the middle of its run."""

    def __init__(self, service: ServiceProcess, run: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.service = service
        self.run = run
        self._folder = folder
        self._is_away = False
        send = Recorder._asked

        def asked(recorder: Recorder, request: Any) -> Any:
            return Unanswered("away") if self._is_away else send(recorder, request)

        patch.setattr(Recorder, "_asked", asked)

    def agent(self, guard: Guard) -> list[object]:
        with guard.run(self.run, record=True) as run:
            long = run.custom("read", lambda name: f"{name} " * 1000, "known")
            guard._environment.recorder.run_once()
            self._is_away = True
            return [long, run.random(), run.custom("read", lambda name: f"{name} " * 1000, "new"), run.uuid4()]

    def work(self) -> list[object]:
        with Guard(self.service.url, spool=self._folder, deliver_seconds=0.1) as guard:
            told = self.agent(guard)
        self._is_away = False
        return told

    @property
    def rest(self) -> Path:
        (path,) = (self._folder / "recordings").iterdir()
        return path

    @property
    def events(self) -> int:
        count: int = self.service.ask("GET", f"/v1/runs/{self.run}").body["events"]
        return count


@pytest.fixture
def shop(service: ServiceProcess, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    return Shop(service, run, tmp_path / "spool", monkeypatch)


def test_a_rest_is_appended_once_and_the_run_replays(service: ServiceProcess, run: str, shop: Shop) -> None:
    told = shop.work()
    assert shop.events == 2
    first, again = imported(service, shop.rest), imported(service, shop.rest, "--json")
    assert first.output == f"Run {run}: 6 events were added to the 2 that were there.\n"
    assert json.loads(again.output) == {"runs": [{"run": run, "events": 8, "added": 0, "left_out": None}]}
    with Guard(service.url, spool=None) as guard, guard.recording(run) as recording:
        replayed = replay(recording, lambda: shop.agent(guard))
        assert (replayed.value, replayed.is_same) == (told, True)


def test_a_rest_is_refused_once_another_writer_has_gone_on(service: ServiceProcess, run: str, shop: Shop) -> None:
    shop.work()
    with Guard(service.url, spool=None) as guard, guard.run(run, record=True) as newer:
        newer.random()
    result = imported(service, shop.rest)
    assert result.exit_code == 1
    assert result.output.startswith(
        f"Error: Events 3 to 8 of run {run} are not appended: another writer has gone on with that run since, from the "
        "events that the service had."
    )
    assert shop.events == 4


def test_a_rest_whose_run_the_service_has_not_so_far_is_refused(
    service: ServiceProcess, run: str, shop: Shop, tmp_path: Path
) -> None:
    shop.work()
    with ServiceProcess(f"sqlite:///{tmp_path / 'other.db'}") as other:
        assert "this service has no such run" in imported(other, shop.rest).output
        other.ask("POST", "/v1/runs", {"run": run, "record": True})
        assert "the service lacks events before them" in imported(other, shop.rest).output


def test_a_rest_that_was_changed_is_refused_before_anything_is_sent(service: ServiceProcess, shop: Shop) -> None:
    shop.work()
    lines = shop.rest.read_bytes().splitlines(keepends=True)
    for at in range(1, len(lines)):
        shop.rest.write_bytes(b"".join(lines[:at] + lines[at + 1 :]))
        assert imported(service, shop.rest).exit_code == 1
    shop.rest.write_bytes(b"".join(lines).replace(b'"name":"read"', b'"name":"dear"', 1))
    assert "has another digest" in imported(service, shop.rest).output
    assert shop.events == 2


def test_a_rest_is_no_recording_and_says_what_takes_it(service: ServiceProcess, shop: Shop) -> None:
    shop.work()
    with pytest.raises(RecordingRefused, match="the rest of a run behind its event 2, and no recording by itself"):
        Recording.load(shop.rest)
    assert "holds the rest of one that has a name" in imported(service, shop.rest, "--as", "other").output
