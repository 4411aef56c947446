"""`twiceshy holds`: who has which resource, and giving one back."""

from datetime import datetime
from typing import Any, Final, get_args
from uuid import UUID

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.holds import ChangeHoldRequest, HoldState, HoldView, RivalView

_FILTERS: Final = ("resource", "state", "from", "to")


def _moment(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check a date-time, which must say its time zone."""
    if value is None:
        return None
    problem = f"{value!r} is no date-time with its zone, such as 2026-10-12T14:00:00Z."
    try:
        read = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(problem, context, parameter) from error
    if read.tzinfo is None:
        raise click.BadParameter(problem, context, parameter)
    return value


@click.group(cls=Group)
def holds() -> None:
    """List, show and release holds on resources."""


@holds.command(name="list")
@click.option("--resource", help="Only holds of this resource.")
@click.option("--state", type=click.Choice(get_args(HoldState)), help="Only holds in this state.")
@click.option("--from", callback=_moment, metavar="DATE-TIME", help="Only holds that end after this moment.")
@click.option("--to", callback=_moment, metavar="DATE-TIME", help="Only holds that start before this moment.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List holds by resource and start."""
    filters = {name: asked[name] for name in _FILTERS if asked[name] is not None}
    limit = None if asked["everything"] else asked["limit"]
    found = gather(Service(url, token), "/v1/holds", filters, Page[HoldView], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No holds.")
    else:
        headings = ("resource", "from", "to", "state", "holder", "priority", "run", "hold")
        print_table(headings, (_row(hold) for hold in found.items))
        if found.next is not None:
            print_line("There are more: use --limit, --all, --resource, --state, --from or --to.")


@holds.command()
@click.argument("hold", type=click.UUID)
@with_json
@of_service
def show(*, hold: UUID, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the hold HOLD."""
    found, body = Service(url, token).ask(_read(hold), HoldView)
    if as_json:
        print_json(body)
    else:
        print_facts(_facts(found))


@holds.command()
@click.argument("hold", type=click.UUID)
@with_json
@of_service
def release(*, hold: UUID, as_json: bool, url: str | None, token: str | None) -> None:
    """Give back what the hold HOLD claims, in the name of its holder.

    The hold of an effect that is under way or in doubt is kept: settle the effect.
    """
    service = Service(url, token)
    holder = service.ask(_read(hold), HoldView)[0].holder
    body = msgspec.json.encode(ChangeHoldRequest(holder=holder))
    released, answer = service.ask(Request(method="POST", path=f"/v1/holds/{hold}/release", body=body), HoldView)
    if as_json:
        print_json(answer)
    else:
        print_line(
            f"Hold {released.id} of {holder} is {released.state}: {released.resource} is free from {released.start} "
            f"to {released.end} as far as this hold goes."
        )


def _read(hold: UUID) -> Request:
    return Request(method="GET", path=f"/v1/holds/{hold}")


def _row(hold: HoldView) -> tuple[Cell, ...]:
    note = "" if hold.wanted_by is None else f" (wanted by {hold.wanted_by.holder})"
    return (
        hold.resource, moment(hold.start), moment(hold.end), state_of(hold.state, note), hold.holder, hold.priority,
        hold.run, str(hold.id),
    )  # fmt: skip


def _facts(hold: HoldView) -> list[tuple[str, Cell]]:
    return [
        ("hold", str(hold.id)),
        ("resource", hold.resource),
        ("from", hold.start),
        ("to", hold.end),
        ("state", state_of(hold.state)),
        ("holder", hold.holder),
        ("priority", hold.priority),
        ("run", hold.run),
        ("effect", hold.key),
        ("placed", hold.placed_at),
        ("runs out", hold.expires_at),
        ("ended", hold.ended_at),
        ("lost to", _rival(hold.lost_to)),
        ("wanted by", _rival(hold.wanted_by)),
        ("as of", hold.as_of),
    ]


def _rival(rival: RivalView | None) -> str | None:
    return None if rival is None else f"{rival.holder} with priority {rival.priority} (hold {rival.id})"
