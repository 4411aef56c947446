"""`twiceshy keys`: how a call is understood and which key it names."""

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.parameters import declared_tools, json_of, run_name, tool_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_facts
from twiceshy._transports.base import Request
from twiceshy_contract.keys import KeyRequest, KeyView
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import convert


@click.group(cls=Group)
def keys() -> None:
    """See what makes two calls the same."""


@keys.command()
@click.option(
    "--tool", callback=tool_name, shell_complete=declared_tools, required=True, help="The tool that is called."
)
@click.option("--arguments", required=True, metavar="JSON|@FILE|-", help="Its arguments, an object in tagged form.")
@click.option("--run", callback=run_name, help="The run that calls.")
@click.option("--step", help="The caller's step.")
@click.option("--business-key", help="The business key.")
@click.option("--occurrence", type=int, help="Which of several intended repeats this is.")
@with_json
@of_service
def preview(*, arguments: str, as_json: bool, url: str | None, token: str | None, **said: str | int | None) -> None:
    """Show how a call canonicalises and which key it names. Nothing is stored and nothing runs.

    \b
    twiceshy keys preview --tool pay --arguments '{"to": "bob", "amount": 5}' --run order-1042
    """  # noqa: D301 - click reads the control character
    asked: dict[str, JsonValue] = {name: value for name, value in said.items() if value is not None}
    request = _request({**asked, "arguments": json_of(arguments, "--arguments")})
    sent = Request(method="POST", path="/v1/keys", body=msgspec.json.encode(request))
    view, body = Service(url, token).ask(sent, KeyView)
    if as_json:
        print_json(body)
    else:
        _show(view, request.run)


def _request(asked: dict[str, JsonValue]) -> KeyRequest:
    try:
        return convert(asked, KeyRequest)
    except Refusal as error:
        option = "--" + error.path.split("/")[1].replace("_", "-") if error.path else "The call"
        raise click.UsageError(f"{option}: {error.reason}.") from error


def _show(view: KeyView, run: str | None) -> None:
    unknown = (
        "none: name --run, or --business-key"
        if run is None
        else f"unknown until run {run} is open: it begins with the run's start"
    )
    print_facts(
        [
            ("key", view.key or unknown),
            ("rule", view.rule),
            ("tool", f"{view.tool} (version {view.tool_version}{'' if view.tool_version else ': not declared'})"),
            ("identity", view.identity),
            ("identity digest", view.identity_digest),
            ("content", view.content),
            ("arguments digest", view.arguments_digest),
        ]
    )
