"""`twiceshy outbox`: what is staged and was delivered; sending again what stands, and taking back what was not sent."""

from typing import Any, Final, Literal, get_args
from uuid import UUID

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.outbox_tables import hindrance, print_message, print_messages
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import (
    MessageName,
    declared_destinations,
    destination_name,
    in_path,
    message_name,
    run_name,
)
from twiceshy._commands.plans import agree
from twiceshy._commands.service import Refused, Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._transports.base import Request
from twiceshy_contract.destinations import DestinationView
from twiceshy_contract.outbox import (
    CancelMessageRequest,
    MessageState,
    MessageSummary,
    MessageView,
    RedriveAnswer,
    RedriveRequest,
)

As = Literal["retry", "anew"]
Standing = Literal["dead", "unknown", "parked"]
_FILTERS: Final = ("state", "destination", "run")
_MOST: Final = 10_000
_AGAIN: Final[dict[As, str]] = {"retry": "again", "anew": "anew"}
_REDRIVE_SECONDS: Final = 60.0


@click.group(cls=Group)
def outbox() -> None:
    """List and show messages, send them again or take them back."""


@outbox.command(name="list")
@click.option("--state", type=click.Choice(get_args(MessageState)), help="Only messages in this state, history too.")
@click.option(
    "--destination", callback=destination_name, shell_complete=declared_destinations, help="Only those to this one."
)
@click.option("--run", callback=run_name, help="Only those that this run staged.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List messages, newest first: without --state all that are not over."""
    filters = {name: asked[name] for name in _FILTERS if asked[name] is not None}
    limit = None if asked["everything"] else asked["limit"]
    service = Service(url, token)
    found = gather(service, "/v1/outbox", filters, Page[MessageSummary], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    else:
        print_messages(found.items, is_cut=found.next is not None, is_all=asked["state"] is not None)
    if not found.items:
        service.mention_record_here()


@outbox.command()
@click.argument("message", callback=message_name)
@with_json
@of_service
def show(*, message: MessageName, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the message MESSAGE: how it stands, what to do next, its tries, headers and body."""
    service = Service(url, token)
    found, body = service.ask(Request(method="GET", path=f"/v1/outbox/{message.id}"), MessageView)
    if message.epoch not in (None, found.epoch):
        click.echo(f"It was sent anew: this is epoch {found.epoch}, and not {message.epoch}.", err=True)
    if as_json:
        print_json(body)
    else:
        print_message(found, _why_it_waits(service, found) if found.state == "pending" else None)


def _why_it_waits(service: Service, message: MessageView) -> str | None:
    """Say what holds a destination back, where anything does."""
    path = f"/v1/destinations/{in_path(message.destination)}"
    try:
        found, _ = service.ask(Request(method="GET", path=path), DestinationView)
    except Refused:
        return None
    return hindrance(found)


@outbox.command()
@click.argument("message", callback=message_name, required=False)
@click.option(
    "--as",
    "as_",
    type=click.Choice(get_args(As)),
    required=True,
    help="Under the same identity (retry), or as a deliberate second effect (anew).",
)
@click.option("--reason", required=True, help="Why; kept with the message.")
@click.option("--by", help="Who decides so.")
@click.option("--state", type=click.Choice(get_args(Standing)), help="All messages in this state.")
@click.option(
    "--destination", callback=destination_name, shell_complete=declared_destinations, help="With --state: only to this."
)
@click.option(
    "--limit", type=click.IntRange(1, _MOST), default=1000, show_default=True, help="With --state: how many at most."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_json
@of_service
@click.pass_context
def redrive(
    context: click.Context,
    /,
    *,
    message: MessageName | None,
    as_json: bool,
    url: str | None,
    token: str | None,
    **said: Any,
) -> None:
    """Send the message MESSAGE again, or all of a --state. The exit code is 1 where some of these are left.

    As a retry it keeps its identity, by which a receiver knows what it has already. Anew it has another, and a
    receiver takes it for another message.

    \b
    twiceshy outbox redrive 0192… --as retry --reason "the receiver is mended"
    twiceshy outbox redrive --state dead --destination orders --as retry --reason "they were down"
    """  # noqa: D301 - click reads the control character
    state, destination = said["state"], said["destination"]
    if (message is None) == (state is None):
        raise click.UsageError("Name one MESSAGE, or all of a --state.")
    if message is not None and destination is not None:
        raise click.UsageError("--destination goes with --state only: a message has one already.")
    if state is not None and not said["yes"]:
        if as_json:
            raise click.UsageError(f"--json asks nothing: add --yes to send them {_AGAIN[said['as_']]}.")
        agree(_question(**said), "Nothing was sent again.")
    service = Service(url, token)
    request = RedriveRequest(
        as_=said["as_"],
        reason=said["reason"],
        by=said["by"],
        id=None if message is None else _standing(service, message),
        state=state,
        destination=destination,
        **({} if state is None else {"limit": said["limit"]}),
    )
    body = msgspec.json.encode(request)
    asked = Request(method="POST", path="/v1/outbox/redrive", body=body, timeout_seconds=_REDRIVE_SECONDS)
    answer, told = service.ask(asked, RedriveAnswer)
    if as_json:
        print_json(told)
    else:
        _print_redriven(answer, said["as_"])
    context.exit(1 if answer.left else 0)


def _question(*, as_: As, state: Standing, destination: str | None, limit: int, **_: object) -> str:
    whose = "" if destination is None else f" to {destination}"
    meant = " Receivers take each for another message." if as_ == "anew" else ""
    return f"Send up to {limit} {state} messages{whose} {_AGAIN[as_]}?{meant}"


def _print_redriven(answer: RedriveAnswer, as_: As) -> None:
    what = "message is" if answer.redriven == 1 else "messages are"
    print_line(f"{answer.redriven} {what} to be sent {_AGAIN[as_]}.")
    if not answer.left:
        return
    print_line(f"{answer.left} {'is' if answer.left == 1 else 'are'} left{':' if answer.reasons else '.'}")
    for reason in answer.reasons:
        print_line(f"  {reason}")


def _standing(service: Service, named: MessageName) -> UUID:
    """Return the id of a message; where an epoch is named too, it is the one that stands now."""
    if named.epoch is None:
        return named.id
    found, _ = service.ask(Request(method="GET", path=f"/v1/outbox/{named.id}"), MessageView)
    if found.epoch != named.epoch:
        raise click.UsageError(
            f"Message {named.id} was sent anew: its epoch is {found.epoch} by now, and not {named.epoch}. Look at it "
            f"with `twiceshy outbox show {named.id}`, then name {named.id}.{found.epoch}."
        )
    return named.id


@outbox.command()
@click.argument("message", callback=message_name)
@click.option("--reason", required=True, help="Why; kept with the message.")
@click.option("--by", help="Who decides so.")
@with_json
@of_service
def cancel(
    *, message: MessageName, reason: str, by: str | None, as_json: bool, url: str | None, token: str | None
) -> None:
    """Take back the message MESSAGE, which was not sent. It can only be sent anew then."""
    body = msgspec.json.encode(CancelMessageRequest(reason=reason, by=by))
    service = Service(url, token)
    asked = Request(method="POST", path=f"/v1/outbox/{_standing(service, message)}/cancel", body=body)
    taken, answer = service.ask(asked, MessageSummary)
    if as_json:
        print_json(answer)
    else:
        print_line(f"Message {taken.id} to {taken.destination} is {taken.state}.")
