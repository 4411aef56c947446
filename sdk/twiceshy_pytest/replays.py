"""One recording of a test, and agents replayed against it."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn, Self

import pytest

from twiceshy import Expectation, Recording, RecordingRefused
from twiceshy._event_loop import is_on_loop
from twiceshy._first_difference import marked_timeline
from twiceshy._in_brief import SHORT, cut
from twiceshy._replay import replay, replay_async
from twiceshy._replay_errors import ReplayDiverged
from twiceshy._replayed import Replayed
from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import did_you_mean

OPTIONS: Final = ("mode", "at", "overrides", "llm", "on_miss", "answers")
_OF_THE_MARK: Final = ("recording", "run", *OPTIONS)


class Replays:
    """Replays agents against one recording. `path` is its file, `options` are those of the test's mark."""

    def __init__(self, path: Path, recording: Recording, options: Mapping[str, Any]) -> None:
        self.path = path
        self.recording = recording
        self._options = {"mode": "retest", **options}

    @classmethod
    @contextmanager
    def open(cls, path: Path, marked: Mapping[str, Any]) -> Iterator[Self]:
        """Load a recording for a test; what is wrong with it, or with the mark, fails the test in one message."""
        for name in marked:
            if name not in _OF_THE_MARK:
                _refuse(f"@pytest.mark.twiceshy has no {name!r}{did_you_mean(name, _OF_THE_MARK)}")
        found = _loaded(path)
        try:
            options = {name: value for name, value in marked.items() if name in OPTIONS}
            yield cls(path, _chosen(found, path, marked.get("run")), options)
        finally:
            for recording in found:
                recording.close()

    def __call__(self, agent: Callable[..., Any], **options: Any) -> Expectation:
        """Replay an agent: a function without a parameter, or with one, which gets what the run was given.

        The options are those of `twiceshy.replay`; they come before those of the mark. Raises AssertionError where the
        agent asks for what the recording cannot answer.
        """
        __tracebackhide__ = True
        if inspect.iscoroutinefunction(agent) and is_on_loop():
            _refuse("The test runs on an event loop: write `happened = await replayed.run_async(agent)`.")
        with _said_plainly():
            return _judged(replay(self.recording, agent, **self._asked(options)))

    async def run_async(self, agent: Callable[..., Any], **options: Any) -> Expectation:
        """Replay an agent on the event loop of the test."""
        __tracebackhide__ = True
        with _said_plainly():
            return _judged(await replay_async(self.recording, agent, **self._asked(options)))

    def __repr__(self) -> str:
        return f"<replayed: {self.path.name}>"

    def _asked(self, options: Mapping[str, Any]) -> dict[str, Any]:
        for name in options:
            if name not in OPTIONS:
                _refuse(f"replayed() has no option {name!r}{did_you_mean(name, OPTIONS)}")
        return {**self._options, **options}


@contextmanager
def _said_plainly() -> Iterator[None]:
    """Let what is wrong with the options of a replay fail the test in one sentence."""
    __tracebackhide__ = True
    try:
        yield
    except SetupError as error:
        raise _refusal(str(error)) from None


def _judged(replayed: Replayed) -> Expectation:
    __tracebackhide__ = True
    if isinstance(replayed.error, ReplayDiverged):
        timeline = marked_timeline(replayed.log, replayed.recording)
        raise AssertionError(f"{replayed.report()}\n\n{timeline}") from None
    return Expectation(replayed)


def _loaded(path: Path) -> list[Recording]:
    try:
        return Recording.load_all(path)
    except RecordingRefused as refused:
        raise _refusal(f"The recording cannot be replayed. {refused}") from None


def _chosen(found: list[Recording], path: Path, run: str | None) -> Recording:
    """Choose the run of a file that holds several."""
    names = [recording.run for recording in found]
    if run is None and len(found) == 1:
        return found[0]
    listed = cut(", ".join(names), 4 * SHORT)
    if run is None:
        _refuse(f"{path} holds {len(found)} runs: {listed}. Name one in the mark: run={names[0]!r}.")
    if run not in names:
        _refuse(f"{path} has no run {run!r}{did_you_mean(run, names)} It holds {listed}.")
    return found[names.index(run)]


def _refuse(why: str) -> NoReturn:
    __tracebackhide__ = True
    raise _refusal(why)


def _refusal(why: str) -> BaseException:
    return pytest.fail.Exception(why, pytrace=False)
