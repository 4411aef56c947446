"""What the commands of recordings share: asking the service, a bar, and refusals in one sentence."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from twiceshy._commands.service import Service
from twiceshy._recording_download import Ask
from twiceshy._transports.base import Request
from twiceshy.exceptions import RecordingRefused
from twiceshy_contract.refusals import Refusal

T = TypeVar("T")
Begin = Callable[[str, int], Callable[[], None]]
"""Takes the next run and how many events it has; returns what is called with each of them."""


def asking(service: Service) -> Ask:
    """Ask a service for what it answers, read."""

    def ask(request: Request, kind: Any) -> Any:
        return service.ask(request, kind)[0]

    return ask


@contextmanager
def said_plainly() -> Iterator[None]:
    """Let a refusal of a recording, and a file that cannot be read or written, end the command with its sentence."""
    try:
        yield
    except RecordingRefused as error:
        raise click.ClickException(str(error)) from error
    except Refusal as refusal:
        raise click.ClickException(
            f"The recording holds what no reader can read: {refusal.reason}. Look at its events one by one with "
            "GET /v1/runs/{run}/events."
        ) from refusal


@contextmanager
def bar(verb: str, *, shown: bool) -> Iterator[Begin]:
    """Show how far a run has come, on a terminal's standard error."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task(verb)

        def begin(run: str, events: int) -> Callable[[], None]:
            progress.reset(task, total=events, description=f"{verb} {run}")
            return lambda: progress.advance(task)

        yield begin
