"""Recordings as they are named on the command line: a run of the service, or a file of recordings.

`order-1042` is a run; `case.jsonl`, or anything with a slash, which no run's name has, is a file. A file of several
runs takes the name of one behind two colons: `week.jsonl.zst::order-1042`.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final, cast

import click
import msgspec

from twiceshy._commands.parameters import run_name
from twiceshy._commands.recordings import asking, bar, said_plainly
from twiceshy._commands.service import Service
from twiceshy._in_brief import SHORT, cut, printable
from twiceshy._recording import Recording
from twiceshy._recording_download import download, head_of
from twiceshy._recording_loading import loaded
from twiceshy_contract.variables import did_you_mean

_ENDS: Final = (".jsonl", ".jsonl.gz", ".jsonl.zst")
_RUN: Final = "::"


class Where(msgspec.Struct, frozen=True):
    """What was named: a file and maybe one of its runs, or a run of the service."""

    run: str | None
    file: str | None = None

    def __str__(self) -> str:
        return self.file or str(self.run)


def place_of(context: click.Context, parameter: click.Parameter, value: str | None) -> Where | None:
    """Read RUN|FILE, as a callback of an argument."""
    if value is None:
        return None
    file, _, run = value.partition(_RUN)
    if "/" in file or file.endswith(_ENDS) or Path(file).is_file():
        return Where(run or None, file)
    return Where(run_name(context, parameter, value))


@contextmanager
def recorded(where: Where, url: str | None, token: str | None) -> Iterator[Recording]:
    """Load what was named; what is wrong with it ends the command in one sentence."""
    with said_plainly(), ExitStack() as opened:
        if where.file is None:
            yield opened.enter_context(fetched(Service(url, token), cast("str", where.run)))
            return
        found = [opened.enter_context(recording) for recording in Recording.load_all(where.file)]
        yield _chosen(found, where)


def fetched(service: Service, run: str) -> Recording:
    """Fetch the log of a run into a temporary file, verify it, and return it."""
    file = cast("BinaryIO", tempfile.TemporaryFile(prefix="twiceshy-"))  # noqa: SIM115 - the recording closes it
    try:
        with bar("Fetching", shown=True) as begin:
            head = head_of(asking(service), run)
            download(asking(service), head, file, advance=begin(head.run, head.events))
        file.seek(0)
    except BaseException:
        file.close()
        raise
    (one,) = loaded(file, f"the log of run {run}")
    return Recording(one.head, one.source, origin="of the service")


def _chosen(found: list[Recording], where: Where) -> Recording:
    names = [recording.run for recording in found]
    if where.run is None and len(found) == 1:
        return found[0]
    listed = cut(", ".join(map(printable, names)), 4 * SHORT)
    if where.run is None:
        raise click.UsageError(f"{where.file} holds {len(found)} runs: {listed}. Name one: {where.file}::{names[0]}")
    if where.run not in names:
        near = did_you_mean(where.run, names)
        raise click.UsageError(f"{where.file} has no run {where.run!r}{near} It holds {listed}.")
    return found[names.index(where.run)]


def event_range(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int | None]:
    """Read `5-20`, `5-`, `-20` or `5`, as a callback of an option."""
    if value is None:
        return 1, None
    first, dash, last = value.partition("-")
    try:
        begin, end = int(first or 1), int(last) if last else None if dash else int(first)
    except ValueError:
        begin, end = 0, 0
    if begin < 1 or (end is not None and end < begin):
        raise click.BadParameter(f"{value!r} names no events: write 5-20, 5-, -20 or 5.", context, parameter)
    return begin, end
