"""`twiceshy runs export`: logs of runs into a file, or onto standard output."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, Literal, cast, get_args

import click
import msgspec

from twiceshy._commands.pages import Page, gather
from twiceshy._commands.parameters import run_name
from twiceshy._commands.recordings import asking, bar, said_plainly
from twiceshy._commands.service import Service, of_service, print_json
from twiceshy._commands.tables import print_line
from twiceshy._execution_log_writing import write_execution_log
from twiceshy._recording import Recording
from twiceshy._recording_download import Ask, download, head_of
from twiceshy._recording_files import written
from twiceshy._recording_lines import PartNumber
from twiceshy._recording_loading import loaded
from twiceshy_contract.runs import RunState, RunView

Form = Literal["recording", "execution-log"]
STANDARD_OUTPUT: Final = "-"


class Exported(msgspec.Struct, frozen=True):
    """One run that was exported."""

    run: str
    events: int


def _run_names(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cast("str", run_name(context, parameter, name)) for name in value))


@click.command()
@click.argument("names", metavar="RUN...", nargs=-1, callback=_run_names)
@click.option("--all", "everything", is_flag=True, help="Every run, or every one of which the following holds.")
@click.option("--state", type=click.Choice(get_args(RunState)), help="With --all: only runs in this state.")
@click.option("--workflow", metavar="TEXT", help="With --all: only runs of this workflow.")
@click.option("--reference", metavar="TEXT", help="With --all: only runs about this, such as a contract.")
@click.option("--tag", metavar="TEXT", multiple=True, help="With --all: only runs with this tag. May be repeated.")
@click.option("--fact", metavar="NAME=VALUE", multiple=True, help="With --all: only runs of which this became known.")
@click.option(
    "-o", "--output", metavar="FILE", default=STANDARD_OUTPUT, help="Write here; `.gz` and `.zst` are compressed."
)
@click.option(
    "--form",
    type=click.Choice(get_args(Form)),
    default="recording",
    show_default=True,
    help="An execution log has only calls of models and tools that have come back, one after the other, without "
    "types and without the data of errors.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was written as JSON; needs -o.")
@of_service
def export(*, names: tuple[str, ...], output: str, form: Form, as_json: bool, **said: Any) -> None:
    """Write the logs of the runs RUN... into one file, with all that is needed to replay them.

    The file is there whole or not at all. What is recorded meanwhile is not in it.

    \b
    twiceshy runs export order-1042 > order-1042.jsonl
    twiceshy runs export --all --state failed -o failed.jsonl.zst
    """  # noqa: D301 - click reads the control character
    filters = {name: said[name] for name in ("state", "workflow", "reference", "tag", "fact") if said[name]}
    if bool(names) == said["everything"]:
        raise click.UsageError("Say which runs: their names, or --all.")
    if filters and not said["everything"]:
        raise click.UsageError(f"--{next(iter(filters))} chooses among all runs: add --all.")
    if as_json and output == STANDARD_OUTPUT:
        raise click.UsageError("The recording itself goes to standard output: name a file with -o to have --json.")
    service = Service(said["url"], said["token"])
    with said_plainly():
        wanted = names or _listed(service, filters)
        if not wanted:
            raise click.ClickException("No such runs; nothing was written.")
        ask = asking(service)
        heads = [head_of(ask, name) for name in wanted]  # all are looked up before the first byte is written
        with _output(output) as file, bar("Exporting", shown=output != STANDARD_OUTPUT) as begin:
            for at, head in enumerate(heads, 1):
                _export(ask, head, (at, len(heads)), file, form, begin(head.run, head.events))
    exported = [Exported(head.run, head.events) for head in heads]
    if as_json:
        print_json(msgspec.json.encode({"file": output, "form": form, "runs": exported}))
    elif output != STANDARD_OUTPUT:
        events = sum(run.events for run in exported)
        print_line(f"{output} has {_counted(len(exported), 'run')} with {_counted(events, 'event')}.")


def _listed(service: Service, filters: dict[str, Any]) -> tuple[str, ...]:
    """Name the runs that are recorded, oldest first."""
    found = gather(service, "/v1/runs", filters, Page[RunView], limit=None, total=None)
    return tuple(run.run for run in found.items[::-1] if run.events)


def _export(
    ask: Ask, head: RunView, number: PartNumber, file: BinaryIO, form: Form, advance: Callable[[], None]
) -> None:
    if form == "recording":
        download(ask, head, file, number=number, advance=advance)
        return
    copy = cast("BinaryIO", tempfile.TemporaryFile(prefix="twiceshy-"))  # noqa: SIM115 - the recording closes it
    download(ask, head, copy)
    copy.seek(0)
    (one,) = loaded(copy, f"the log of run {head.run}")
    with Recording(one.head, one.source, origin="of the service") as recording:
        write_execution_log(file, recording, advance=advance)


@contextmanager
def _output(name: str) -> Iterator[BinaryIO]:
    if name == STANDARD_OUTPUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with written(name) as file:
            yield file
    except OSError as error:
        raise click.ClickException(f"{name} cannot be written: {error.strerror or error}.") from error


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
