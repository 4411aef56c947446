"""`twiceshy effects`: look at effects, settle what nobody knows, end what waits or let it be tried again."""

import sys
from datetime import datetime
from typing import Any, Final, Literal, get_args

import click
import msgspec

from twiceshy._answers import Effect
from twiceshy._commands.effect_tables import print_effect, print_effects
from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import declared_tools, json_in, run_name, tool_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._transports.base import Request
from twiceshy_contract.effects import EffectSummary, EffectView, ResolveRequest
from twiceshy_contract.names import PublicState
from twiceshy_contract.reconsider import CancelRequest, ReopenRequest

Resolution = Literal["applied", "not_applied", "closed"]
_MEANINGS: Final[dict[Resolution, str]] = {
    "applied": "it happened; calls are answered from the record",
    "not_applied": "it did not happen; it may be tried again",
    "closed": "nobody will find out; it stays in doubt and leaves the queue",
}

_RESULT_HELP: Final = (
    "What the tool would have returned, as JSON in tagged form, such as '{\"id\": 7}' or null; with --as applied. "
    "Without it the calls that follow raise ResultNotKept, unless the tool is annotated to return None."
)


@click.group(cls=Group)
def effects() -> None:
    """List, show, settle, cancel and reopen effects."""


@effects.command(name="list")
@click.option("--state", type=click.Choice(get_args(PublicState)), help="Only effects in this state.")
@click.option("--tool", callback=tool_name, shell_complete=declared_tools, help="Only effects of this tool.")
@click.option("--run", callback=run_name, help="Only effects of this run.")
@click.option("--closed", is_flag=True, help="With --state in_doubt: also those that were closed.")
@how_many
@with_json
@of_service
def list_(*, closed: bool, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List effects, newest first."""
    filters = {name: asked[name] for name in ("state", "tool", "run") if asked[name] is not None}
    if closed and asked["state"] != "in_doubt":
        raise click.UsageError("--closed goes with --state in_doubt only: other listings hold all effects anyway.")
    if closed:
        filters["closed"] = "true"
    limit = None if asked["everything"] else asked["limit"]
    service = Service(url, token)
    found = gather(service, "/v1/effects", filters, Page[EffectSummary], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    else:
        print_effects(found.items, is_cut=found.next is not None)
    if not found.items:
        service.mention_record_here()


@effects.command()
@click.argument("key")
@with_json
@of_service
def show(*, key: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show all that is known of the effect KEY."""
    effect, body = _read(Service(url, token), key)
    if as_json:
        print_json(body)
    else:
        print_effect(effect)


@effects.command()
@click.argument("key")
@click.option("--as", "as_", type=click.Choice(get_args(Resolution)), required=True, help="What is known now.")
@click.option("--reason", required=True, help="How it is known; kept with the effect.")
@click.option("--result", metavar="JSON", help=_RESULT_HELP)
@click.option("--fence", type=click.IntRange(0), help="The fence that was looked at; else the present one.")
@click.option(
    "--as-of",
    metavar="TIME",
    help="The `as of` that `show` printed before the provider was asked; with --as not_applied, the settle time is "
    "judged then.",
)
@of_service
def resolve(*, key: str, as_: Resolution, reason: str, url: str | None, token: str | None, **options: Any) -> None:
    """Say what became of the effect KEY, which nobody knows.

    \b
    twiceshy effects resolve KEY --as applied --result '<JSON>' --reason '...'
    twiceshy effects resolve KEY --as not_applied --reason '...'

    It is shown first, and on a terminal a question is asked, unless --fence names what was looked at.
    """  # noqa: D301 - click reads the control character
    result: str | None = options["result"]
    fence: int | None = options["fence"]
    if result is not None and as_ != "applied":
        raise click.UsageError("--result goes with --as applied only.")
    value = msgspec.UNSET if result is None else _parsed(result)
    as_of = None if options["as_of"] is None else _moment(options["as_of"])
    service = Service(url, token)
    if fence is None:
        fence = _looked_at(service, key, as_)
    body = ResolveRequest(as_=as_, fence=fence, reason=reason, result=value, as_of=as_of)
    asked = Request(method="POST", path=f"{_path(key)}/resolve", body=msgspec.json.encode(body))
    answer, _ = service.ask(asked, Effect)
    click.echo(f"Effect {answer.key} of {answer.tool} is {answer.state}: {_MEANINGS[as_]}.")


@effects.command()
@click.argument("key")
@click.option("--reason", required=True, help="Why it is not to happen; callers are told so.")
@click.option("--by", help="Who has decided so.")
@with_json
@of_service
def cancel(*, key: str, reason: str, by: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """End the effect KEY, which waits: nothing was applied and nothing will be. This cannot be undone.

    Its calls raise Rejected with the type Cancelled from now on.
    """
    body = msgspec.json.encode(CancelRequest(reason=reason, by=by))
    said = "calls are answered with that from now on"
    _reconsidered(Service(url, token), f"{_path(key)}/cancel", body, said, as_json=as_json)


@effects.command()
@click.argument("key")
@click.option("--reason", required=True, help="Why another try may succeed; kept with the effect.")
@with_json
@of_service
def reopen(*, key: str, reason: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Let the effect KEY, which waits, be tried at once, and as often again as at first."""
    body = msgspec.json.encode(ReopenRequest(reason=reason))
    said = "the next call tries it again"
    _reconsidered(Service(url, token), f"{_path(key)}/reopen", body, said, as_json=as_json)


def _reconsidered(service: Service, path: str, body: bytes, said: str, *, as_json: bool) -> None:
    answer, raw = service.ask(Request(method="POST", path=path, body=body), Effect)
    if as_json:
        print_json(raw)
    else:
        click.echo(f"Effect {answer.key} of {answer.tool} is {answer.state}: {said}.")


def _looked_at(service: Service, key: str, as_: Resolution) -> int:
    """Show what would be settled, ask where somebody can answer, and return the fence that was shown."""
    effect, _ = _read(service, key)
    click.echo(
        f"Effect {effect.key}: {effect.tool}, {effect.state}, fence {effect.fence}, "
        f"run {effect.run or '-'}, since {effect.began_at}"
    )
    if sys.stdin.isatty() and sys.stdout.isatty() and not click.confirm(f"Settle it as {as_} ({_MEANINGS[as_]})?"):
        raise click.ClickException("Nothing was settled.")
    return effect.fence


def _read(service: Service, key: str) -> tuple[EffectView, bytes]:
    return service.ask(Request(method="GET", path=_path(key)), EffectView)


def _path(key: str) -> str:
    if len(key) != 64 or set(key) - set("0123456789abcdef"):
        raise click.UsageError(f"{key!r} is not an effect's key: it has 64 lower-case hex digits. `list` shows keys.")
    return f"/v1/effects/{key}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(f"--as-of {text!r} is not a time such as 2026-10-12T14:00:00Z.") from error
    if moment.tzinfo is None:
        raise click.UsageError(f"--as-of {text!r} has no offset; copy it as `show` prints it, with the Z.")
    return moment


def _parsed(text: str) -> object:
    try:
        return json_in(text.encode(errors="surrogateescape"), "--result")
    except click.UsageError as error:
        raise click.UsageError(f"{error} A text needs its quotes: '\"text\"'.") from error
