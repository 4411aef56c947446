"""Curves: guarded calls a second over the number of clients, for one replica and for two, and for the peers.

`python -m bench.curves`. Every point is a turn under the generator; the points of one line follow each other, so lines
may be compared in their form, and the rows of the bench say by how much one side is faster.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import click
import msgspec
from rich.console import Console

from bench import load
from bench.failure import BenchFailure
from bench.load import Side
from bench.peers.install import Say, dbos_python
from bench.processes import caller_process
from bench.restate import CALL_PATH, restate
from bench.results import FOLDER
from bench.servers import postgres, service
from bench.turns import OpenCaller, Turn

CLIENTS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SECONDS: Final = 1.0
_CURVES: Final = "curves.json"
Load = Callable[[int], Turn]
"""Takes a turn with so many clients."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One side: calls a second, and the milliseconds of half of them, by the number of clients."""

    name: str
    clients: tuple[int, ...]
    per_second: tuple[float, ...]
    p50: tuple[float, ...]


def measure(say: Say, clients: Sequence[int] = CLIENTS, seconds: float = SECONDS) -> list[Line]:
    """Measure all lines. Raises BenchFailure."""
    with _ours(1, seconds) as one:
        lines = [_line("Twiceshy, 1 replica", one, clients)]
    with _ours(2, seconds) as two:
        lines.append(_line("Twiceshy, 2 replicas", two, clients))
    with restate(say) as theirs:
        ingress = _generator(lambda: load.posted(theirs.port, CALL_PATH), seconds)
        lines.append(_line("Restate's ingress", ingress, clients))
    with postgres() as url, _dbos(say, url, seconds) as workflows:
        lines.append(_line("DBOS", workflows, clients))
    return lines


@contextmanager
def _ours(replicas: int, seconds: float) -> Iterator[Load]:
    """Start replicas on one database; clients are spread over them."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        sides = [stack.enter_context(service(url)) for _ in range(replicas)]
        yield _generator(lambda: _spread(sides), seconds)


def _spread(sides: Sequence[Side]) -> OpenCaller:
    """Return callers of whom each stays with one of the sides, in turn."""
    openers = [load.guarded(side) for side in sides]
    return lambda index: openers[index % len(openers)](index)


def _generator(opened: Callable[[], OpenCaller], seconds: float) -> Load:
    open_caller = opened()
    return lambda clients: load.Generator(open_caller, clients).turn(seconds)


@contextmanager
def _dbos(say: Say, url: str, seconds: float) -> Iterator[Load]:
    """Start DBOS on the database server."""
    its_url = f"{url.rpartition('/')[0]}/dbos"
    with caller_process("DBOS", dbos_python(say), "bench.peers.dbos_calls", its_url) as peer:
        yield lambda clients: peer.turn(clients, seconds)


def _line(name: str, take_turn: Load, clients: Sequence[int]) -> Line:
    turns = [take_turn(count) for count in clients]
    return Line(
        name=name,
        clients=tuple(clients),
        per_second=tuple(round(turn.per_second, 1) for turn in turns),
        p50=tuple(round(sorted(turn.milliseconds)[len(turn.milliseconds) // 2], 3) for turn in turns),
    )


def write(lines: Sequence[Line]) -> None:
    """Keep the lines."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / _CURVES).write_bytes(msgspec.json.format(msgspec.json.encode(lines)) + b"\n")


def read() -> list[Line]:
    """Return the lines of the last measurement; none where there was none."""
    file = FOLDER / _CURVES
    return msgspec.json.decode(file.read_bytes(), type=list[Line]) if file.exists() else []


@click.command()
@click.option("--seconds", type=click.FloatRange(0.1), default=SECONDS, show_default=True, help="Length of a point.")
def main(*, seconds: float) -> None:
    """Measure guarded calls a second over 1 to 256 clients, and write bench/results/curves.json."""
    console = Console()
    try:
        lines = measure(lambda what: console.print(what, highlight=False), seconds=seconds)
    except BenchFailure as error:
        raise click.ClickException(str(error)) from error
    write(lines)
    for line in lines:
        points = ", ".join(f"{count}: {rate:,.0f}" for count, rate in zip(line.clients, line.per_second, strict=True))
        console.print(f"{line.name}, calls/s by clients: {points}", highlight=False)


if __name__ == "__main__":
    main()
