"""`twiceshy runs`: look at runs, fork one, and end one."""

from typing import Any, Final, Literal, get_args

import click
import msgspec

from twiceshy._commands.fork_terms import live_terms, with_terms
from twiceshy._commands.groups import Group
from twiceshy._commands.parameters import in_path, run_name
from twiceshy._commands.pauses import answer, pauses
from twiceshy._commands.recordings_export import export
from twiceshy._commands.recordings_import import import_
from twiceshy._commands.run_diff import diff
from twiceshy._commands.run_facts import facts
from twiceshy._commands.run_list import list_
from twiceshy._commands.run_promote import promote
from twiceshy._commands.run_replay import replay
from twiceshy._commands.run_show import show
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._transports.base import Request
from twiceshy_contract.forks import ForkRequest
from twiceshy_contract.runs import FinishRunRequest, RunView

End = Literal["finished", "failed", "cancelled"]
_ENDS: Final = get_args(End)


@click.group(cls=Group)
def runs() -> None:
    """List, show, compare, replay, export, fork and finish runs."""


@runs.command()
@click.argument("run", callback=run_name)
@click.argument("name", callback=run_name)
@click.option("--at", type=click.IntRange(min=0), required=True, help="Up to this step all is from the record.")
@with_terms
@with_json
@of_service
def fork(*, run: str, name: str, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Fork the run RUN as the run NAME: it goes on from a step, and nothing really runs but what is named.

    \b
    twiceshy runs fork order-1042 order-1042-why --at 3
    twiceshy runs fork order-1042 order-1042-why --at 3 --live search --live '{"tool": "pay", "calls": 1}'
    """  # noqa: D301 - click reads the control character
    asked = ForkRequest(fork=name, at=said["at"], reads=said["reads"], live=live_terms(said["live"]))
    request = Request(method="POST", path=f"{_path(run)}/forks", body=msgspec.json.encode(asked))
    made, body = Service(url, token).ask(request, RunView)
    if as_json:
        print_json(body)
        return
    print_line(f"Run {made.run} is a fork of {run} at step {said['at']}.")
    print_line("With --json the answer has the `credential` that drives it and can do nothing else.")
    if said["live"]:
        print_line("A side effect that may run needs an approval of its arguments as well: `twiceshy approvals list`.")


@runs.command()
@click.argument("run", callback=run_name)
@click.option("--as", "as_", type=click.Choice(_ENDS), default="finished", show_default=True, help="How it ended.")
@with_json
@of_service
def finish(*, run: str, as_: End, as_json: bool, url: str | None, token: str | None) -> None:
    """End the run RUN: it goes on to serve its record, and takes no new effects. This cannot be undone."""
    asked = Request(method="POST", path=f"{_path(run)}/finish", body=msgspec.json.encode(FinishRunRequest(as_=as_)))
    ended, body = Service(url, token).ask(asked, RunView)
    if as_json:
        print_json(body)
    else:
        print_line(
            f"Run {ended.run} is {ended.state}. It serves the record of its {ended.effects} effects and takes no "
            "new ones."
        )


runs.add_command(list_)
runs.add_command(show)
runs.add_command(diff)
runs.add_command(replay)
runs.add_command(promote)
runs.add_command(facts)
runs.add_command(pauses)
runs.add_command(answer)
runs.add_command(export)
runs.add_command(import_)


def _path(run: str) -> str:
    return f"/v1/runs/{in_path(run)}"
