"""`twiceshy spool`: look at outcomes that could not be delivered, and deliver those of processes that are gone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from twiceshy._commands.groups import Group
from twiceshy._commands.service import of_service, print_json
from twiceshy._commands.tables import moment, print_line, print_table
from twiceshy._said import ended
from twiceshy._settings import DEFAULT_URL, settle
from twiceshy._spool import DEFAULT_SPOOL, SPOOL_VARIABLE, Spool
from twiceshy._spool_list import Entry, RefusedEntry, look, look_at_refused
from twiceshy._spool_lock import HAS_LOCKS
from twiceshy._spool_record import Undelivered
from twiceshy._spool_send import Refused, Sent, Stuck, Taken, refusal, send
from twiceshy._transports.base import Transport
from twiceshy._transports.connect import connect
from twiceshy.exceptions import SetupError

_TIMEOUT_SECONDS = 10.0


def _of_spool(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that names the folder."""
    return click.option(
        "--spool", "folder", envvar=SPOOL_VARIABLE, default=DEFAULT_SPOOL, show_default=True, show_envvar=True,
        type=click.Path(file_okay=False, path_type=Path), help="The folder in which undelivered outcomes wait.",
    )(command)  # fmt: skip


@click.group(cls=Group)
def spool() -> None:
    """Look at undelivered outcomes and deliver them."""


@spool.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the reports as they will be sent.")
@_of_spool
def list_(*, folder: Path, as_json: bool) -> None:
    """List the outcomes that wait, without what the tools returned. Nothing is sent."""
    entries, refused = _look(folder), _look_at_refused(folder)
    if as_json:
        print_json(msgspec.json.encode({"items": entries, "refused": refused}))
        return
    if entries:
        headings = ("key", "tool", "outcome", "since", "tries", "process", "url", "file", "last reason")
        print_table(headings, (_row(entry) for entry in entries))
    else:
        print_line(f"Nothing waits in {folder}.")
    if refused:
        print_line("Refused for good, and kept for you to settle and then remove:")
        columns = ("key", "tool", "outcome", "since", "refused", "url", "file", "reason")
        print_table(columns, (_refused_row(entry) for entry in refused))


@spool.command()
@_of_spool
@of_service
def drain(*, folder: Path, url: str | None, token: str | None) -> None:
    """Deliver the outcomes of processes that are gone.

    Those of a living process are left to it. The exit code is 0 where nothing is left in the spool, else 1.
    """
    try:
        settings = settle(url or DEFAULT_URL, token)
        transport = connect(settings.url, settings.token)
    except SetupError as error:
        raise click.UsageError(str(error)) from error
    if not HAS_LOCKS:
        raise click.ClickException("This system has no locks that end with their process (flock): no spool is adopted.")
    taken = Spool(folder.absolute(), settings.shown)
    try:
        delivered, refused = _drained(taken, transport)
    except SetupError as error:
        raise click.ClickException(str(error)) from error
    finally:
        taken.let_go()
        transport.close()
    left = _look(folder)
    print_line(f"{delivered} delivered, {refused} refused for good, {len(left)} left.")
    for line in _reasons(left, settings.shown):
        print_line(line)
    if left or taken.has_passed_over:
        raise SystemExit(1)


def _drained(taken: Spool, transport: Transport) -> tuple[int, int]:
    """Take over what is of dead processes and send it. Return how many were taken, and how many refused."""
    taken.adopt()
    queues = taken.queues()
    delivered = refused = 0
    with _bar(sum(len(queue) for queue in queues)) as advance:
        for queue in queues:
            for outcome in queue:
                sent = _told(taken, transport, outcome)
                if isinstance(sent, Stuck):
                    taken.note(outcome.attempt, sent.reason)
                    if sent.is_for_all:
                        return delivered, refused
                    break
                delivered += isinstance(sent, Taken)
                refused += isinstance(sent, Refused)
                advance()
    return delivered, refused


def _told(taken: Spool, transport: Transport, outcome: Undelivered) -> Sent:
    """Send an outcome; settle it and say so, where it was taken or refused for good."""
    sent = send(transport, outcome, _TIMEOUT_SECONDS)
    match sent:
        case Taken(state):
            taken.settle(outcome.attempt)
            print_line(f"{outcome.key} of {outcome.tool} is {state}.")
        case Refused(problem):
            try:
                path = taken.refuse(outcome.attempt, f"{problem.code}: {problem.detail}")
            except OSError as error:
                return Stuck(f"it was refused ({problem.code}), and that cannot be kept: {error}")
            print_line(refusal(outcome, problem, path))
        case Stuck():
            pass
    return sent


def _reasons(left: list[Entry], url: str) -> Iterator[str]:
    """Say why outcomes are left, once for each reason."""
    said: dict[str, int] = {}
    for entry in left:
        if entry.owner == "alive":
            why = f"left to the living process {entry.process}, which sends them itself"
        elif entry.url != url:
            why = f"for {entry.url}; deliver them with --url {entry.url}"
        else:
            why = f"stuck in {entry.file}"
            why += f": {entry.reason}" if entry.reason else ", behind one that could not be sent"
        said[why] = said.get(why, 0) + 1
    yield from (ended(f"{count} {why}") for why, count in said.items())


def _look(folder: Path) -> list[Entry]:
    try:
        return look(folder)
    except OSError as error:
        raise click.ClickException(f"The spool {folder} cannot be read: {error}.") from error


def _look_at_refused(folder: Path) -> list[RefusedEntry]:
    try:
        return look_at_refused(folder)
    except OSError as error:
        raise click.ClickException(f"The spool {folder} cannot be read: {error}.") from error


def _refused_row(entry: RefusedEntry) -> tuple[str | int | None, ...]:
    since, refused = (moment(f"{at:%Y-%m-%dT%H:%M:%S}") for at in (entry.since, entry.refused))
    return entry.key, entry.tool, entry.kind, since, refused, entry.url, entry.file, entry.reason


def _row(entry: Entry) -> tuple[str | int | None, ...]:
    since = moment(f"{entry.since:%Y-%m-%dT%H:%M:%S}")
    process = f"{entry.process} ({entry.owner})"
    return entry.key, entry.tool, entry.kind, since, entry.tries, process, entry.url, entry.file, entry.reason


@contextmanager
def _bar(total: int) -> Iterator[Callable[[], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("Delivering"), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)
