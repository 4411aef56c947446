"""`twiceshy demo`: four accidents on real input, counted in the file of who was acted upon."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from guard.demo.accidents import ACCIDENTS, play_with, play_without
from guard.demo.http import NO_ANSWER
from guard.demo.processes import ChildFailed, interruptible, uninterrupted
from guard.demo.stage import stage
from guard.demo.table import Line, as_json, print_table, wrong

_INTERRUPTED: Final = 130


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print the table as JSON.")
@click.option("--keep", is_flag=True, help="Keep the folder with the databases, and say where it is.")
def demo(*, is_json: bool, keep: bool) -> None:
    """Book one calendar hold through four accidents, first without the guard, then with it.

    The exit code is 0 only if the calendar's own file holds more than one entry for each without the guard, and
    exactly one with it.
    """
    try:
        with interruptible(), _folder(keep=keep) as folder:
            lines = _played(folder)
    except KeyboardInterrupt:
        click.echo("Stopped. All processes that the demo started are ended.", err=True)
        sys.exit(_INTERRUPTED)
    except ChildFailed as error:
        raise click.ClickException(f"The demo cannot go on. {error}") from error
    except NO_ANSWER as error:
        raise click.ClickException(f"The demo cannot go on: {type(error).__name__}: {error}.") from error
    if is_json:
        click.echo(as_json(lines))
    else:
        print_table(Console(), lines)
    faults = [fault for line in lines if (fault := wrong(line)) is not None]
    for fault in faults:
        click.echo(f"Wrong: {fault}", err=True)
    sys.exit(bool(faults))


def _played(folder: Path) -> list[Line]:
    """Play all accidents without the guard, then with it, showing on a terminal how far it is."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Starting the guard and the calendar", total=2 * len(ACCIDENTS))
        lines: list[Line] = []
        with stage(folder) as here:
            for accident in ACCIDENTS:
                progress.update(task, description=f"Without the guard: {accident.title}")
                play_without(here, accident)
                progress.advance(task)
            for accident in ACCIDENTS:
                progress.update(task, description=f"With the guard: {accident.title}")
                lines.append(play_with(here, accident))
                progress.advance(task)
        return lines


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Make a temporary folder, and remove it afterwards unless it is to be kept."""
    made: list[Path] = []
    try:
        with uninterrupted():
            made.append(Path(tempfile.mkdtemp(prefix="twiceshy-demo-")).resolve())
        yield made[0]
    finally:
        with uninterrupted():
            for folder in made:
                if keep:
                    click.echo(f"Kept: {folder}", err=True)
                else:
                    shutil.rmtree(folder, ignore_errors=True)
