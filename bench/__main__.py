"""`python -m bench`: measure, print, write `bench/results/latest.json`, and fail on a missed target."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import Progress, TaskID

from bench.load import CONNECTIONS, BadAnswer, Generator, Side
from bench.rows import Measured, write
from bench.servers import NotDurable, durability, noop, postgres, service, sqlite
from bench.table import print_table

RESULTS: Final = Path(__file__).parent / "results" / "latest.json"
_WARM_UP_SECONDS: Final = 0.5
_DATABASES: Final = ("PostgreSQL", "SQLite")


class Bench:
    """One run of the bench: how often and how long each side is loaded, and the progress of it."""

    def __init__(self, *, repeats: int, seconds: float, progress: Progress, task: TaskID) -> None:
        self._generator = Generator()
        self._repeats = repeats
        self._seconds = seconds
        self._progress = progress
        self._task = task

    def against_noop(self, database: str, ours: Side, peer: Side) -> Measured:
        """Load the service and the no-op in turn; the first, short turn of each only warms them up."""
        for side in (ours, peer):
            self._generator.requests_per_second(side, _WARM_UP_SECONDS)
        found: dict[str, list[float]] = {"ours": [], "peer": []}
        for repeat in range(self._repeats):
            for name, side in (("ours", ours), ("peer", peer)):
                self._progress.update(self._task, description=f"{database}: {name}, repeat {repeat + 1}")
                found[name].append(self._generator.requests_per_second(side, self._seconds))
                self._progress.advance(self._task)
        return Measured(
            name=f"service alone against its no-op, {database}",
            unit="requests/s",
            ours=tuple(found["ours"]),
            peer=tuple(found["peer"]),
        )


@click.command()
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Turns of each side.")
@click.option("--seconds", type=click.FloatRange(0.1), default=2.5, show_default=True, help="Length of a turn.")
def main(*, repeats: int, seconds: float) -> None:
    """Measure the service alone against its no-op, on both databases."""
    console = Console()
    try:
        measured = _measured(console, repeats, seconds)
    except (BadAnswer, NotDurable) as error:
        raise click.ClickException(str(error)) from error
    print_table(console, measured)
    rows = [one.row for one in measured]
    write(rows, RESULTS)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        click.echo(f"Missed: {row.name}: {row.ratio:.1%} of the peer, and the target is {row.target:.0%}.", err=True)
    sys.exit(bool(missed))


def _measured(console: Console, repeats: int, seconds: float) -> list[Measured]:
    """Take all measurements, and print under which conditions."""
    measured: list[Measured] = []
    notes = Console(stderr=True)
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(console=notes, transient=True, disable=not notes.is_terminal))
        task = progress.add_task("Starting", total=len(_DATABASES) * repeats * 2)
        bench = Bench(repeats=repeats, seconds=seconds, progress=progress, task=task)
        peer = stack.enter_context(noop())
        for database in _DATABASES:
            with _database(database) as url, service(url) as ours:
                console.print(f"{database}: {durability(url)}", highlight=False)
                measured.append(bench.against_noop(database, ours, peer))
    shared = f"{os.cpu_count()} cores shared by generator, server and database; {CONNECTIONS} connections"
    console.print(shared, highlight=False)
    return measured


@contextmanager
def _database(name: str) -> Iterator[str]:
    """Start one of the databases, empty and durable; give its address."""
    if name == "PostgreSQL":
        with postgres() as url:
            yield url
    else:
        with tempfile.TemporaryDirectory(prefix="twiceshy-bench-") as folder, sqlite(Path(folder)) as url:
            yield url


if __name__ == "__main__":
    main()
