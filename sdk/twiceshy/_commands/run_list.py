"""`twiceshy runs list`: runs by what they are about and what became known of them, or by the calls in their logs."""

from typing import Any, Final, get_args

import click

from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import run_name, tool_name
from twiceshy._commands.run_calls import OF_CALLS, calls_asked, list_calls
from twiceshy._commands.run_facts import one_line
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_line, print_table, state_of
from twiceshy_contract.events import EventKind, OutcomeKind
from twiceshy_contract.facts import typed_fact
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import RunState, RunView

_OF_RUNS: Final = ("state", "parent", "children_of", "reference", "tag", "fact")
"""Options that a search of calls does not take."""


def _facts(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for text in value:
        try:
            typed_fact(text)
        except Refusal as refusal:
            raise click.BadParameter(f"{refusal.reason}.", context, parameter) from refusal
    return value


@click.command(name="list")
@click.option("--state", type=click.Choice(get_args(RunState)), help="Only runs in this state.")
@click.option("--parent", callback=run_name, help="Only the forks of this run.")
@click.option("--children-of", callback=run_name, help="Only the runs that this run started.")
@click.option("--workflow", help="Only runs of this workflow.")
@click.option("--reference", help="Only runs about this, such as a contract.")
@click.option("--tag", multiple=True, help="Only runs with this tag; repeatable.")
@click.option("--fact", multiple=True, metavar="NAME=VALUE", callback=_facts,
              help="Only runs of which this is known; repeatable.")  # fmt: skip
@click.option(
    "--called", metavar="NAME", callback=tool_name, help="Only runs that called this tool, model or function."
)
@click.option("--argument", metavar="NAME=VALUE", help="With --called: with this argument; VALUE* is how it begins.")
@click.option("--empty", is_flag=True, help="With --called: and the result held nothing.")
@click.option("--outcome", type=click.Choice(get_args(OutcomeKind)), help="With --called: and it ended so.")
@click.option("--kind", type=click.Choice(get_args(EventKind)), help="With --called: only calls of this kind.")
@click.option("--since", metavar="TIME", help="With --called: recorded since then, such as 30d, 12h or a date-time.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List runs, newest first; with --called, the calls that are found in their logs.

    \b
    twiceshy runs list --workflow contracts --fact escalated=true
    twiceshy runs list --called lookup --argument 'jurisdiction=GB-*' --empty --since 30d
    """  # noqa: D301 - click reads the control character
    limit = None if asked["everything"] else asked["limit"]
    if asked["called"] is not None:
        foreign = [name for name in _OF_RUNS if asked[name]]
        if foreign:
            raise click.UsageError(f"--{_option(foreign[0])} does not go with --called, which searches logs.")
        list_calls(Service(url, token), calls_asked(asked), limit, as_json=as_json)
        return
    lonely = [name for name in OF_CALLS if asked[name]]
    if lonely:
        raise click.UsageError(f"--{_option(lonely[0])} is about calls: name them with --called.")
    found = gather(Service(url, token), "/v1/runs", _query(asked), Page[RunView], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No runs.")
    else:
        _print_runs(found.items)
        if found.next is not None:
            print_line("There are more: use --limit, --all or --state.")


def _option(name: str) -> str:
    return name.replace("_", "-")


def _query(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the query of the listing; what was not asked for is left out."""
    names = {"children_of": "child_of"}
    wanted = ("state", "parent", "children_of", "workflow", "reference", "tag", "fact")
    return {names.get(name, name): asked[name] for name in wanted if asked[name]}


def _print_runs(runs: list[RunView]) -> None:
    """Print runs; columns in which no run has anything are left out."""
    extra: list[tuple[str, list[Cell]]] = [
        ("workflow", [None if run.about is None else run.about.workflow for run in runs]),
        ("reference", [None if run.about is None else run.about.reference for run in runs]),
        ("facts", [one_line(run.facts) if run.facts else None for run in runs]),
    ]
    shown = [(heading, cells) for heading, cells in extra if any(cell is not None for cell in cells)]
    rows = [
        (run.run, state_of(run.state), run.effects, moment(run.started_at), moment(run.ended_at),
         *(cells[at] for _, cells in shown))
        for at, run in enumerate(runs)
    ]  # fmt: skip
    print_table(("run", "state", "effects", "started", "ended", *(heading for heading, _ in shown)), rows)
