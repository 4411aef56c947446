"""What pytest loads at its start: the option, the mark and the fixtures. Twiceshy itself is loaded by the first replay.

A test that asks for `replayed` without naming a recording runs once for each recording in the folder.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from twiceshy_pytest.replays import Replays

OPTION: Final = "twiceshy_recordings"
USUAL: Final = "tests/recordings"
_ENDS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_MARK: Final = (
    "twiceshy(recording, run=None, mode='retest', at=None, overrides=(), llm='recorded', on_miss='fail', "
    "answers=None): the recording that `replayed` replays, by its file, and how; without one, each of the folder."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the folder of recordings."""
    what = f"Folder of the recordings that tests replay, below the root directory (default: {USUAL}, where it exists)."
    parser.getgroup("twiceshy", "recordings of agents").addoption(
        "--twiceshy-recordings", dest=OPTION, metavar="DIR", help=what
    )
    parser.addini(OPTION, what, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark, and refuse a folder that is not there."""
    config.addinivalue_line("markers", _MARK)
    named = config.getoption(OPTION) or config.getini(OPTION)
    if named and not folder_of(config).is_dir():
        raise pytest.UsageError(
            f"--twiceshy-recordings: there is no folder {folder_of(config)}. Make it, and put recordings into it with "
            "`twiceshy runs promote RUN`."
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test that names no recording, or several, run once for each."""
    if "twiceshy_recording" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("twiceshy")
    named = None if mark is None else mark.kwargs.get("recording", mark.args[0] if mark.args else None)
    if isinstance(named, str | Path):
        return
    folder = folder_of(metafunc.config)
    files = recordings_in(folder) if named is None else list(named)
    if not files and named is not None:
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid} names no recording: its mark says recording={named!r}. Name a file, or "
            "leave it out to replay each of the folder."
        )
    if not files:
        raise pytest.Collector.CollectError(
            f"{metafunc.definition.nodeid} replays every recording of {folder}, and there is none. Add one with "
            "`twiceshy runs promote RUN`, name the folder with --twiceshy-recordings, or name a file: "
            '@pytest.mark.twiceshy(recording="case.jsonl").'
        )
    metafunc.parametrize("twiceshy_recording", files, ids=[Path(file).name for file in files], indirect=True)


@pytest.fixture
def twiceshy_recording(request: pytest.FixtureRequest) -> Path:
    """The file of the recording that a test replays."""
    mark = request.node.get_closest_marker("twiceshy")
    named = getattr(request, "param", None)
    if named is None:
        named = mark.kwargs.get("recording", mark.args[0] if mark.args else None)
    return _found(Path(named), request)


@pytest.fixture
def replayed(request: pytest.FixtureRequest, twiceshy_recording: Path) -> "Iterator[Replays]":
    """Give what replays agents against the test's recording.

    `happened = replayed(agent)` is a `twiceshy.Expectation`: `happened.called("lookup").outcome("low")`. On an event
    loop it is `await replayed.run_async(agent)`.
    """
    from twiceshy_pytest.replays import Replays

    mark = request.node.get_closest_marker("twiceshy")
    with Replays.open(twiceshy_recording, {} if mark is None else mark.kwargs) as replays:
        yield replays


def folder_of(config: pytest.Config) -> Path:
    """Return the folder of recordings, whether it is there or not."""
    named = config.getoption(OPTION)
    if named:
        return Path(config.invocation_params.dir, named)
    return Path(config.rootpath, config.getini(OPTION) or USUAL)


def recordings_in(folder: Path) -> list[Path]:
    """List the recordings of a folder and of those below it, by their names."""
    return sorted(path for path in folder.rglob("*") if path.name.endswith(_ENDS) and path.is_file())


def _found(file: Path, request: pytest.FixtureRequest) -> Path:
    """Find a file that a test names: beside the test, in the folder of recordings, or below the root."""
    beside = request.path.parent
    places = dict.fromkeys((beside / file, folder_of(request.config) / file, request.config.rootpath / file))
    for place in places:
        if place.is_file():
            return place
    looked = "".join(f"\n  {place}" for place in places)
    pytest.fail(
        f"The recording {file} of {request.node.nodeid} is not there. Looked for:{looked}\n"
        "Make it with `twiceshy runs export RUN -o FILE`, or correct the mark.",
        pytrace=False,
    )
