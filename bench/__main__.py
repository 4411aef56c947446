"""`python -m bench`: measure, print, write `bench/results/latest.json`, and fail on a missed target."""

import resource
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import curves
from bench.comparisons import COMPARISONS, Comparison, growing
from bench.failure import BenchFailure
from bench.figures import figure, ratio, target
from bench.growth import FEW, MANY
from bench.measure import measure, turns
from bench.publish import publish
from bench.results import FOLDER, Machine, this_machine, write
from bench.rows import Row
from bench.table import print_table

_NAMES: Final = tuple(comparison.name for comparison in COMPARISONS)
_OPEN_FILES: Final = 8_192


@click.command()
@click.option(
    "--only",
    "names",
    multiple=True,
    type=click.Choice([*_NAMES, curves.NAME]),
    help="Measure this row, or the curves; may be repeated.",
)
@click.option("--repeats", type=click.IntRange(1), default=3, show_default=True, help="Turns of each side.")
@click.option("--seconds", type=click.FloatRange(0.1), default=2.5, show_default=True, help="Length of a turn.")
@click.option("--effects", type=click.IntRange(FEW), default=MANY, show_default=True, help="Effects of the row growth.")
@click.option("--all", "is_all", is_flag=True, help="Also the rows that take minutes each, and the curves.")
@click.option("--publish", "is_published", is_flag=True, help="Then write the page and the charts of the documents.")
def main(
    *, names: tuple[str, ...], repeats: int, seconds: float, effects: int, is_all: bool, is_published: bool
) -> None:
    """Measure Twiceshy against its peers, in turn, on this machine.

    Results go to bench/results/latest.json; rows that are not measured stay as they are there. The exit code is 1
    where a target is missed.
    """
    _allow_open_files()
    chosen = _chosen(names, effects, is_all=is_all)
    console, notes = Console(), Console(stderr=True)
    machine = this_machine()
    if machine.is_busy:
        notes.print(f"The load average is {machine.load}: others work here too, so these figures will be rough.")
    try:
        rows = _measured(chosen, repeats, seconds, machine, notes)
        if is_all or curves.NAME in names:
            curves.write(curves.measure(lambda what: notes.print(what, highlight=False)))
        if is_published:
            publish()
    except BenchFailure as error:
        raise click.ClickException(str(error)) from error
    print_table(console, rows)
    for fact in sorted({fact for row in rows for fact in row.facts}):
        console.print(fact, highlight=False)
    console.print(f"{machine.cores} cores of {machine.processor}, shared by both sides and clients", highlight=False)
    console.print(f"Written to {FOLDER.parent.name}/{FOLDER.name}/latest.json", highlight=False)
    missed = [row for row in rows if row.met is False]
    for row in missed:
        reached = f"{figure(row.ours)} {row.unit}" if row.ratio is None else ratio(row)
        click.echo(f"Missed: {row.name} reached {reached}; the target is {target(row)}.", err=True)
    sys.exit(bool(missed))


def _chosen(names: Sequence[str], effects: int, *, is_all: bool) -> list[Comparison]:
    """Return the comparisons that are named; where none is, all, but those that are long only where all are wanted."""
    rows = [growing(effects) if comparison.name == "growth" else comparison for comparison in COMPARISONS]
    wanted = names or [row.name for row in rows if is_all or not row.is_long]
    return [row for row in rows if row.name in wanted]


def _measured(
    chosen: Sequence[Comparison], repeats: int, seconds: float, machine: Machine, notes: Console
) -> list[Row]:
    """Measure one comparison after the other, and write each result as it comes."""
    rows: list[Row] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task("Starting", total=turns(chosen, repeats))

        def said(what: str) -> None:
            progress.console.print(what, highlight=False)

        def before_turn(what: str) -> None:
            progress.update(task, description=what, advance=1)

        for comparison in chosen:
            progress.update(task, description=f"{comparison.name}: starting")
            with comparison.open(said) as sides:
                measured = measure(comparison, sides, repeats=repeats, seconds=seconds, before_turn=before_turn)
            rows.append(measured.row(datetime.now(UTC).isoformat(timespec="seconds")))
            write(rows[-1:], machine, _NAMES)
    return rows


def _allow_open_files() -> None:
    """Let this process and those it starts hold a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


if __name__ == "__main__":
    main()
