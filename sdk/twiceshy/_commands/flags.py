"""`twiceshy flags`: what the guard wants an operator to see."""

from typing import Any, get_args
from uuid import UUID

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_line, print_table
from twiceshy._transports.base import Request
from twiceshy_contract.flags import CloseFlagRequest, FlagKind, FlagState, FlagView


@click.group(cls=Group)
def flags() -> None:
    """List and close what an operator should see."""


@flags.command(name="list")
@click.option("--kind", type=click.Choice(get_args(FlagKind)), help="Only flags of this kind.")
@click.option("--state", type=click.Choice(get_args(FlagState)), help="Only flags in this state.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List flags, newest first."""
    filters = {name: asked[name] for name in ("kind", "state") if asked[name] is not None}
    limit = None if asked["everything"] else asked["limit"]
    found = gather(Service(url, token), "/v1/flags", filters, Page[FlagView], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No flags.")
    else:
        headings = ("flag", "kind", "state", "since", "tool", "run", "effect", "what was seen")
        print_table(headings, (_row(flag) for flag in found.items))
        if found.next is not None:
            print_line("There are more: use --limit, --all, --kind or --state.")


@flags.command()
@click.argument("flag", type=click.UUID)
@click.option("--reason", required=True, help="What became of it; kept with the flag.")
@click.option("--by", help="Who has seen to it.")
@with_json
@of_service
def close(*, flag: UUID, reason: str, by: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Close the flag FLAG: somebody has seen to it. One that is closed already stays as it was closed."""
    body = msgspec.json.encode(CloseFlagRequest(reason=reason, by=by))
    closed, answer = Service(url, token).ask(
        Request(method="POST", path=f"/v1/flags/{flag}/close", body=body), FlagView
    )
    if as_json:
        print_json(answer)
    else:
        whose = "" if closed.closed_by is None else f" by {closed.closed_by}"
        print_line(f"Flag {closed.id} ({closed.kind}) is closed{whose}: {closed.reason}")


def _row(flag: FlagView) -> tuple[Cell, ...]:
    return (str(flag.id), flag.kind, flag.state, moment(flag.at), flag.tool, flag.run, flag.key, flag.detail)
