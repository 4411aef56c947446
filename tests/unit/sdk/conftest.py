"""A guard that speaks to a scripted service, in time that passes only when the guard sleeps."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.sdk.scripted import Answer, FakeClock, ScriptedService
from tests.unit.sdk.spooled import SILENCE, Delivering
from twiceshy import Guard
from twiceshy._heartbeat import Heartbeat
from twiceshy._spooler import Spooler


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> Iterator[Callable[..., tuple[Guard, ScriptedService]]]:
    """Make a guard whose service gives the answers, in fake time."""
    guards: list[Guard] = []
    monkeypatch.setattr(Heartbeat, "_run", lambda _: None)  # tests call run_once
    monkeypatch.setattr(Spooler, "_run", lambda _: None)
    monkeypatch.setattr("twiceshy._drive.time", SimpleNamespace(sleep=clock.sleep))

    def made(*answers: Answer, spool: Path | None = None) -> tuple[Guard, ScriptedService]:
        service = ScriptedService(*answers)
        guard = Guard("http://guard.test", transport=service, spool=spool)
        guard._environment.clock = clock
        guard._environment.heartbeat._clock = clock
        guard._environment.chance = lambda: 1.0
        guards.append(guard)
        return guard, service

    yield made
    for guard in guards:
        guard.close()


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Delivering]:
    delivering = Delivering(tmp_path)
    yield delivering
    delivering.answers()
    delivering.service.always = SILENCE
    delivering.spooler.close()
