"""`twiceshy demo`: four accidents, and two kills of the relay, counted in the files of who was acted upon."""

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
from guard.demo.deliveries import Delivery, deliver
from guard.demo.deliveries import wrong as lost_or_doubled
from guard.demo.http import NO_ANSWER
from guard.demo.processes import ChildFailed, interruptible, uninterrupted
from guard.demo.stage import stage
from guard.demo.table import Line, as_json, print_deliveries, print_table, wrong

_INTERRUPTED: Final = 130


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print the table as JSON.")
@click.option("--keep", is_flag=True, help="Keep the folder with the databases, and say where it is.")
def demo(*, is_json: bool, keep: bool) -> None:
    """Book one calendar hold through four accidents, first without the guard, then with it; and tell two of it.

    The exit code is 0 only if the calendar's own file holds more than one entry for each without the guard, and
    exactly one with it, and if a letterbox has each message of a booking once though the relay was killed twice.
    """
    try:
        with interruptible(), _folder(keep=keep) as folder:
            lines, deliveries = _played(folder)
    except KeyboardInterrupt:
        click.echo("Stopped. All processes that the demo started are ended.", err=True)
        sys.exit(_INTERRUPTED)
    except ChildFailed as error:
        raise click.ClickException(f"The demo cannot go on. {error}") from error
    except NO_ANSWER as error:
        raise click.ClickException(f"The demo cannot go on: {type(error).__name__}: {error}.") from error
    if is_json:
        click.echo(as_json(lines, deliveries))
    else:
        print_table(Console(), lines)
        print_deliveries(Console(), deliveries)
    faults = [fault for line in lines if (fault := wrong(line)) is not None]
    faults += [fault for delivery in deliveries if (fault := lost_or_doubled(delivery)) is not None]
    for fault in faults:
        click.echo(f"Wrong: {fault}", err=True)
    sys.exit(bool(faults))


def _played(folder: Path) -> tuple[list[Line], list[Delivery]]:
    """Play all accidents without the guard, then with it, then the deliveries, showing on a terminal how far it is."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Starting the guard and the calendar", total=2 * len(ACCIDENTS) + 1)
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
            progress.update(task, description="The relay is killed twice while it delivers")
            return lines, deliver(here.children, here, folder)


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
