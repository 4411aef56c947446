"""`twiceshy effects`: look at effects and settle what nobody knows."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, get_args
from urllib.parse import quote, urlencode

import click
import msgspec

from twiceshy._answers import Effect
from twiceshy._commands.service import Service
from twiceshy._commands.tables import print_effect, print_page
from twiceshy._settings import DEFAULT_URL, TOKEN_VARIABLE, URL_VARIABLE
from twiceshy._transports.base import Request
from twiceshy_contract.effects import EffectPage, EffectView, ResolveRequest
from twiceshy_contract.names import PublicState
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.strict_json import decode

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


def _of_service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the service."""
    url = click.option(
        "--url", envvar=URL_VARIABLE, default=DEFAULT_URL, show_default=True, show_envvar=True, help="The service."
    )
    token = click.option("--token", envvar=TOKEN_VARIABLE, show_envvar=True, help="Its bearer token.")
    return url(token(command))


@click.group()
def effects() -> None:
    """List, show and settle effects."""


@effects.command(name="list")
@click.option("--state", type=click.Choice(get_args(PublicState)), help="Only effects in this state.")
@click.option("--tool", help="Only effects of this tool.")
@click.option("--run", help="Only effects of this run.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="Print the service's answer as JSON.")
@_of_service
def list_(*, limit: int, as_json: bool, url: str, token: str | None, **filters: str | None) -> None:
    """List effects, newest first."""
    asked = {name: value for name, value in filters.items() if value is not None}
    query = urlencode({**asked, "limit": limit})
    page, body = Service(url, token).ask(Request(method="GET", path=f"/v1/effects?{query}"), EffectPage)
    if as_json:
        _print_json(body)
    else:
        print_page(page)


@effects.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print the service's answer as JSON.")
@_of_service
def show(*, key: str, as_json: bool, url: str, token: str | None) -> None:
    """Show all that is known of the effect KEY."""
    effect, body = _read(Service(url, token), key)
    if as_json:
        _print_json(body)
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
@_of_service
def resolve(*, key: str, as_: Resolution, reason: str, url: str, token: str | None, **options: Any) -> None:
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


def _looked_at(service: Service, key: str, as_: Resolution) -> int:
    """Show what would be settled, ask where somebody can answer, and return the fence that was shown."""
    effect, _ = _read(service, key)
    click.echo(
        f"Effect {effect.key}: {effect.tool}, {effect.state}, fence {effect.fence}, "
        f"run {effect.run or '-'}, since {effect.began_at}"
    )
    if sys.stdin.isatty() and sys.stdout.isatty():
        click.confirm(f"Settle it as {as_} ({_MEANINGS[as_]})?", abort=True)
    return effect.fence


def _read(service: Service, key: str) -> tuple[EffectView, bytes]:
    return service.ask(Request(method="GET", path=_path(key)), EffectView)


def _path(key: str) -> str:
    if len(key) != 64 or set(key) - set("0123456789abcdef"):
        raise click.UsageError(f"{key!r} is not an effect's key: it has 64 lower-case hex digits. `list` shows keys.")
    return f"/v1/effects/{quote(key)}"


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
        return decode(text.encode())
    except (Refusal, UnicodeEncodeError) as error:
        raise click.UsageError(f"--result is not JSON: {error}. A text needs its quotes: '\"text\"'.") from error


def _print_json(body: bytes) -> None:
    click.echo(msgspec.json.format(body, indent=2).decode())
