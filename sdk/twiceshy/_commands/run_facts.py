"""`twiceshy runs facts`: say what became known of a run."""

from collections.abc import Mapping

import click
import msgspec

from twiceshy._commands.parameters import in_path, run_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_facts, print_line
from twiceshy._transports.base import Request
from twiceshy_contract.facts import fact_text, typed_fact
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import Fact, RunFacts, RunView


def one_line(facts: Mapping[str, Fact]) -> str:
    """Return facts as they may be typed."""
    return " ".join(f"{name}={_typed(name, value)}" for name, value in facts.items())


def _typed(name: str, value: Fact) -> str:
    """Return a text bare where it would be read as the same text, and all else as JSON."""
    if isinstance(value, str) and value and value.isprintable() and " " not in value:
        return value if typed_fact(f"{name}={value}")[1] == value else fact_text(value)
    return fact_text(value)


def _facts(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for text in value:
        try:
            name, fact = typed_fact(text)
        except Refusal as refusal:
            raise click.BadParameter(f"{refusal.reason}.", context, parameter) from refusal
        if name in facts:
            raise click.BadParameter(f"{name!r} is said twice.", context, parameter)
        facts[name] = fact
    return facts


@click.command()
@click.argument("run", callback=run_name)
@click.argument("facts", metavar="NAME=VALUE...", nargs=-1, required=True, callback=_facts)
@with_json
@of_service
def facts(*, run: str, facts: dict[str, Fact], as_json: bool, url: str | None, token: str | None) -> None:
    """Say what became known of the run RUN, which may have ended; `runs list --fact` finds it by that.

    true, false and numbers are such, a VALUE in quotes and all else is a text. Of a NAME that was said before the new
    VALUE counts, and the old one stays on record.

    \b
    twiceshy runs facts order-1042 outcome=escalated score=61
    """  # noqa: D301 - click reads the control character
    body = msgspec.json.encode(RunFacts(facts=facts))
    request = Request(method="POST", path=f"/v1/runs/{in_path(run)}/facts", body=body)
    told, answer = Service(url, token).ask(request, RunView)
    if as_json:
        print_json(answer)
        return
    print_line(f"Of run {told.run} is known:")
    print_facts((name, _typed(name, value)) for name, value in told.facts.items())
