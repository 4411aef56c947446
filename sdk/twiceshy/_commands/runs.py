"""`twiceshy runs`: look at runs, fork one, and end one."""

from typing import Any, Final, Literal, get_args

import click
import msgspec

from twiceshy._commands.fork_terms import live_terms, with_terms
from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import in_path, run_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.effects import EffectSummary
from twiceshy_contract.forks import ForkRequest, LiveTerms
from twiceshy_contract.runs import FinishRunRequest, RunState, RunView

End = Literal["finished", "failed", "cancelled"]
_ENDS: Final = get_args(End)


@click.group(cls=Group)
def runs() -> None:
    """List, show, fork and finish runs."""


@runs.command(name="list")
@click.option("--state", type=click.Choice(get_args(RunState)), help="Only runs in this state.")
@click.option("--parent", callback=run_name, help="Only the forks of this run.")
@how_many
@with_json
@of_service
def list_(*, state: RunState | None, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List runs, newest first."""
    limit = None if asked["everything"] else asked["limit"]
    filters = {} if state is None else {"state": str(state)}
    filters |= {} if asked["parent"] is None else {"parent": asked["parent"]}
    found = gather(Service(url, token), "/v1/runs", filters, Page[RunView], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No runs.")
    else:
        print_table(
            ("run", "state", "effects", "started", "ended"),
            (
                (run.run, state_of(run.state), run.effects, moment(run.started_at), moment(run.ended_at))
                for run in found.items
            ),
        )
        if found.next is not None:
            print_line("There are more: use --limit, --all or --state.")


@runs.command()
@click.argument("run", callback=run_name)
@with_json
@of_service
def show(*, run: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the run RUN and its effects, oldest first."""
    service = Service(url, token)
    found, body = service.ask(Request(method="GET", path=_path(run)), RunView)
    listing = gather(service, "/v1/effects", {"run": run}, Page[EffectSummary], limit=None, total=found.effects)
    if as_json:
        print_json(msgspec.json.encode({"run": msgspec.Raw(body), "effects": listing.raw[::-1]}))
        return
    print_facts(
        [
            ("run", found.run), ("state", state_of(found.state)), ("id", found.id), ("effects", found.effects),
            ("started", found.started_at), ("ended", found.ended_at), *_fork_of(found),
        ]
    )  # fmt: skip
    if listing.items:
        print_table(
            ("step", "tool", "state", "key", "worker"),
            (
                (effect.step, effect.tool, state_of(effect.state), effect.key, effect.worker)
                for effect in listing.items[::-1]
            ),
        )


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
    made, answer = Service(url, token).ask(request, RunView)
    if as_json:
        print_json(answer)
        return
    print_line(f"Run {made.run} is a fork of {run} at step {said['at']}.")
    if said["live"]:
        print_line("A side effect that may run needs an approval of its arguments as well: `twiceshy approvals list`.")


@runs.command()
@click.argument("run", callback=run_name)
@click.option("--as", "as_", type=click.Choice(_ENDS), default="finished", show_default=True, help="How it ended.")
@with_json
@of_service
def finish(*, run: str, as_: End, as_json: bool, url: str | None, token: str | None) -> None:
    """End the run RUN: it goes on to serve its record, and takes no new effects. This cannot be undone."""
    body = msgspec.json.encode(FinishRunRequest(as_=as_))
    ended, answer = Service(url, token).ask(Request(method="POST", path=f"{_path(run)}/finish", body=body), RunView)
    if as_json:
        print_json(answer)
    else:
        print_line(
            f"Run {ended.run} is {ended.state}. It serves the record of its {ended.effects} effects and takes no "
            "new ones."
        )


def _fork_of(run: RunView) -> list[tuple[str, Cell]]:
    """Return what is said of a fork."""
    if not isinstance(run.fork_of, str):
        return []
    live = run.live if isinstance(run.live, tuple) else ()
    named = ", ".join(tool.tool if tool == LiveTerms(tool=tool.tool) else _written(tool) for tool in live)
    return [("fork of", run.fork_of), ("at", str(run.at)), ("reads", str(run.reads)), ("live", named or "nothing")]


def _written(tool: LiveTerms) -> str:
    return msgspec.json.encode(tool).decode()


def _path(run: str) -> str:
    return f"/v1/runs/{in_path(run)}"
