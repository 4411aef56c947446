"""`twiceshy runs import`: recordings out of a file into a service, where they are runs like others.

The whole file is verified before anything is sent. Events that the service has are not sent again, so that an import
that was interrupted is gone on with by the same command.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import click
import msgspec

from twiceshy._commands.parameters import run_name
from twiceshy._commands.recordings import bar, said_plainly
from twiceshy._commands.recordings_rest import append_rest
from twiceshy._commands.recordings_upload import Imported, Upload
from twiceshy._commands.service import Service, of_service, print_json
from twiceshy._commands.tables import print_line
from twiceshy._recording import Recording
from twiceshy._recording_rest import rest_in

STANDARD_INPUT: Final = "-"


@click.command(name="import")
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--as", "as_", metavar="NAME", callback=run_name, help="The run's name here; for a file of one run.")
@click.option("--json", "as_json", is_flag=True, help="Print what was imported as JSON.")
@of_service
def import_(*, file: str, as_: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Import the recordings of FILE, so that they are runs of the service.

    FILE (`-`: standard input) may be compressed, and may be of execution logs. Nothing is sent where anything of it is
    wrong. The same import again goes on where one was interrupted. What a run left unsent in its spool is appended to
    that run, unless another writer has gone on with it.
    """
    imported: list[Imported] = []
    with ExitStack() as opened, said_plainly():
        rest = None if file == STANDARD_INPUT else rest_in(file)
        recordings = [] if rest else Recording.load_all(sys.stdin.buffer if file == STANDARD_INPUT else file)
        for recording in recordings:
            opened.enter_context(recording)
        if as_ is not None and len(recordings) != 1:
            holds = "the rest of one that has a name" if rest else str(len(recordings))
            raise click.UsageError(f"--as names one run, and {file} holds {holds}.")
        service, begin = Service(url, token), opened.enter_context(bar("Importing", shown=True))
        if rest is not None:
            imported.append(append_rest(service, rest))
        for recording in _parents_first(recordings):
            name = as_ or recording.run
            imported.append(Upload(service, recording, name).run(begin(name, len(recording))))
    if as_json:
        print_json(msgspec.json.encode({"runs": imported}))
        return
    for run in imported:
        print_line(_sentence(run))


def _parents_first(recordings: Sequence[Recording]) -> list[Recording]:
    """Order recordings so that a run that is started by another comes behind it."""
    left, ordered = list(recordings), list[Recording]()
    while left:
        names = {recording.run for recording in left}
        ready = [recording for recording in left if recording.head.parent not in names] or left
        ordered += ready
        left = [recording for recording in left if recording not in ready]
    return ordered


def _sentence(run: Imported) -> str:
    if run.added == 0 and run.events:
        return f"Run {run.run} is there already, with all {run.events} events."
    lost = "" if run.left_out is None else f" Its parent {run.left_out} is not here, so it is imported without one."
    had = run.events - run.added
    if run.events == 0:
        return f"Run {run.run} is there; it has no events.{lost}"
    added = "1 event was added" if run.added == 1 else f"{run.added} events were added"
    return f"Run {run.run}: {added}{f' to the {had} that were there' if had else ''}.{lost}"
