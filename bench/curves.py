"""Curves: guarded calls a second over the number of clients, for one replica and for two, and for the peers.

Every point is one turn; the points of one line follow each other, so lines may be compared in their form, and the rows
of the bench say by how much one side is faster.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from bench import load
from bench.load import Side
from bench.peers.install import Say, dbos_python
from bench.processes import caller_process
from bench.restate import CALL_PATH, restate
from bench.results import FOLDER
from bench.rows import percentiles
from bench.servers import postgres, service
from bench.sides import sdk_callers
from bench.turns import OpenCaller, Turn

CLIENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
NAME: Final = "curves"
"""What `--only` calls all of them."""
SECONDS: Final = 1.0
_WARM_UP: Final = (32, 0.5)
_CURVES: Final = "curves.json"
Load = Callable[[int, float], Turn]
"""Takes a turn with so many clients, for so many seconds."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One side: calls a second, and the milliseconds of half of them, by the number of clients."""

    name: str
    clients: tuple[int, ...]
    per_second: tuple[float, ...]
    p50: tuple[float, ...]


def measure(say: Say, clients: Sequence[int] = CLIENTS, seconds: float = SECONDS) -> list[Line]:
    """Measure all lines. Raises BenchFailure."""
    opened = {
        "Twiceshy, 1 replica": _replicas(1),
        "Twiceshy, 2 replicas": _replicas(2),
        "Twiceshy, by the SDK": _sdk(),
        "Restate's ingress": _restate(say),
        "DBOS": _dbos(say),
    }
    lines = []
    for name, opening in opened.items():
        say(f"{NAME}: {name}")
        with opening as take_turn:
            take_turn(*_WARM_UP)
            lines.append(_line(name, [(count, take_turn(count, seconds)) for count in clients]))
    return lines


@contextmanager
def _replicas(count: int) -> Iterator[Load]:
    """Start replicas on one database; clients are spread over them."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        sides = [stack.enter_context(service(url)) for _ in range(count)]
        yield _generator(lambda: _spread(sides))


@contextmanager
def _sdk() -> Iterator[Load]:
    """Start one replica and callers through the SDK."""
    with ExitStack() as stack:
        yield sdk_callers(stack, stack.enter_context(postgres())).turn


@contextmanager
def _restate(say: Say) -> Iterator[Load]:
    """Start Restate."""
    with restate(say) as theirs:
        yield _generator(lambda: load.posted(theirs.port, CALL_PATH))


@contextmanager
def _dbos(say: Say) -> Iterator[Load]:
    """Start DBOS on a PostgreSQL of its own."""
    with postgres() as url:
        its_url = f"{url.rpartition('/')[0]}/dbos"
        with caller_process("DBOS", dbos_python(say), "bench.peers.dbos_calls", its_url) as peer:
            yield peer.turn


def _spread(sides: Sequence[Side]) -> OpenCaller:
    """Return callers of whom each stays with one of the sides, in turn."""
    openers = [load.guarded(side) for side in sides]
    return lambda index: openers[index % len(openers)](index)


def _generator(opened: Callable[[], OpenCaller]) -> Load:
    """Return turns under the generator; each has runs of its own, as its calls are numbered from the start."""
    return lambda clients, seconds: load.Generator(opened(), clients).turn(seconds)


def _line(name: str, found: Sequence[tuple[int, Turn]]) -> Line:
    return Line(
        name=name,
        clients=tuple(count for count, _ in found),
        per_second=tuple(round(turn.per_second, 1) for _, turn in found),
        p50=tuple(percentiles(turn.milliseconds).p50 for _, turn in found),
    )


def write(lines: Sequence[Line], folder: Path = FOLDER) -> None:
    """Keep the lines, beside the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _CURVES).write_bytes(msgspec.json.format(msgspec.json.encode(lines)) + b"\n")


def read(folder: Path = FOLDER) -> list[Line]:
    """Return the lines of the last measurement; none where there was none."""
    file = folder / _CURVES
    return msgspec.json.decode(file.read_bytes(), type=list[Line]) if file.exists() else []
