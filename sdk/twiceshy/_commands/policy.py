"""`twiceshy policy`: what a call may do in a fork, asked without doing anything."""

from typing import Any

import click
import msgspec

from twiceshy._commands.fork_terms import live_terms, with_terms
from twiceshy._commands.groups import Group
from twiceshy._commands.parameters import declared_tools, json_of, run_name, tool_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, print_facts
from twiceshy._transports.base import Request
from twiceshy_contract.policy import PolicyAnswer, PolicyRequest, PolicyRuling
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import convert


@click.group(cls=Group)
def policy() -> None:
    """See what a call may do in a fork."""


@policy.command()
@click.argument("tool", callback=tool_name, shell_complete=declared_tools)
@click.option("--arguments", default="{}", metavar="JSON|@FILE|-", help="Its arguments, an object in tagged form.")
@click.option("--run", callback=run_name, help="The fork that calls.")
@click.option("--fork-of", callback=run_name, help="The run of which there might be a fork; with --at.")
@click.option("--at", type=click.IntRange(min=0), help="Up to which step that fork is from the record.")
@with_terms
@click.option("--step", help="The caller's step.")
@click.option("--business-key", help="The business key.")
@click.option("--occurrence", type=int, help="Which of several intended repeats this is.")
@click.option("--as-of", metavar="TIME", help="By the registry as it was then.")
@click.option("--tool-version", type=int, help="By this version of the tool.")
@with_json
@of_service
def decide(*, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Say what a call of TOOL may do, and the rule that decides. Nothing is stored and nothing runs.

    \b
    twiceshy policy decide pay --arguments '{"to": "bob"}' --run order-1042-fork
    twiceshy policy decide pay --arguments '{"to": "bob"}' --fork-of order-1042 --at 3 --live pay
    """  # noqa: D301 - click reads the control character
    asked = Request(method="POST", path="/v1/policy/decisions", body=msgspec.json.encode(_request(said)))
    answer, body = Service(url, token).ask(asked, PolicyAnswer)
    if as_json:
        print_json(body)
    else:
        print_facts(_facts(answer.decisions[0]))


def _request(said: dict[str, Any]) -> PolicyRequest:
    call = {"tool": said["tool"], "arguments": json_of(said["arguments"], "--arguments")}
    call |= {name: said[name] for name in ("step", "business_key", "occurrence", "tool_version") if said[name]}
    asked: dict[str, JsonValue] = {"calls": [call]}
    if said["run"] is not None:
        asked["run"] = said["run"]
    if said["fork_of"] is not None or said["at"] is not None:
        if said["fork_of"] is None or said["at"] is None:
            raise click.UsageError("--fork-of and --at go together: of which run, and from which step on.")
        live = msgspec.to_builtins(live_terms(said["live"]))
        asked["fork"] = {"parent": said["fork_of"], "at": said["at"], "reads": said["reads"], "live": list(live)}
    if said["as_of"] is not None:
        asked["as_of"] = said["as_of"]
    try:
        return convert(asked, PolicyRequest)
    except Refusal as error:
        raise click.UsageError(f"The question cannot be asked: {error}.") from error


def _facts(ruling: PolicyRuling) -> list[tuple[str, Cell]]:
    version = f"version {ruling.tool_version}" if ruling.tool_version else "not declared"
    facts: list[tuple[str, Cell]] = [
        ("decision", ruling.decision),
        ("rule", ruling.rule),
        ("tool", f"{ruling.tool} ({version}), {ruling.class_}"),
    ]
    if ruling.rules_version != ruling.tool_version:
        facts.append(("weighed with", f"version {ruling.rules_version}"))
    if ruling.origin is not None:
        facts.append(("origin", ruling.origin))
    if ruling.outcome is not None:
        facts.append(("outcome", msgspec.json.encode(ruling.outcome).decode()))
    return facts
