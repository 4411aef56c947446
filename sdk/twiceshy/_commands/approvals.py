"""`twiceshy approvals`: what waits for a person, and that person's word."""

import getpass
import json
from collections.abc import Callable
from typing import Any, get_args
from uuid import UUID

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import declared_tools, json_of, run_name, tool_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.approvals import (
    ApprovalState,
    ApprovalView,
    CancelApprovalRequest,
    DecideRequest,
    Verdict,
    VoteView,
)


@click.group(cls=Group)
def approvals() -> None:
    """List, show and decide what waits for a person."""


def _as_whom(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option that says who speaks."""
    return click.option(
        "--as",
        "as_",
        metavar="NAME",
        help="Who decides; else the owner of --token, where approvers have their own, or your login name.",
    )(command)


@approvals.command(name="list")
@click.option("--state", type=click.Choice(get_args(ApprovalState)), help="Only approvals in this state.")
@click.option("--tool", callback=tool_name, shell_complete=declared_tools, help="Only approvals of this tool.")
@click.option("--run", callback=run_name, help="Only approvals of this run.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List approvals, newest first."""
    filters = {name: asked[name] for name in ("state", "tool", "run") if asked[name] is not None}
    limit = None if asked["everything"] else asked["limit"]
    service = Service(url, token)
    found = gather(service, "/v1/approvals", filters, Page[ApprovalView], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No approvals.")
    else:
        print_table(("approval", "state", "asked", "until", "run", "by", "what"), map(_row, found.items))
        if found.next is not None:
            print_line("There are more: use --limit, --all, --state, --tool or --run.")
    if not found.items:
        service.mention_record_here()


@approvals.command()
@click.argument("approval", type=click.UUID)
@with_json
@of_service
def show(*, approval: UUID, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the approval APPROVAL: what is asked, and what was said."""
    seen, body = Service(url, token).ask(Request(method="GET", path=f"/v1/approvals/{approval}"), ApprovalView)
    if as_json:
        print_json(body)
    else:
        print_facts(_facts(seen))
        if seen.decisions:
            print_table(("who", "said", "when", "reason"), map(_vote, seen.decisions), title="Decisions")


@approvals.command()
@click.argument("approval", type=click.UUID)
@click.option("--edit", metavar="JSON", help="Arguments to run in the place of those asked for; @FILE or - to read.")
@click.option("--reason", help="Why; kept with the approval.")
@_as_whom
@with_json
@of_service
def approve(*, approval: UUID, edit: str | None, url: str | None, token: str | None, **said: Any) -> None:
    """Approve APPROVAL: the effect may run, with the arguments that were asked for or with those of --edit."""
    arguments = None if edit is None else json_of(edit, "--edit")
    if arguments is not None and not isinstance(arguments, dict):
        raise click.UsageError("--edit is a JSON object of all arguments, such as '{\"amount\": 80}'.")
    _decide(Service(url, token), approval, "approve", said, token=token, arguments=arguments)


@approvals.command()
@click.argument("approval", type=click.UUID)
@click.option("--reason", required=True, help="Why; the agent is told so.")
@_as_whom
@with_json
@of_service
def deny(*, approval: UUID, url: str | None, token: str | None, **said: Any) -> None:
    """Deny APPROVAL: the effect never runs, and the same call is not asked for again in its run."""
    _decide(Service(url, token), approval, "deny", said, token=token)


@approvals.command()
@click.argument("approval", type=click.UUID)
@click.option("--reason", required=True, help="Why; the agent is told so.")
@_as_whom
@with_json
@of_service
def cancel(*, approval: UUID, url: str | None, token: str | None, **said: Any) -> None:
    """Take APPROVAL back: what waits never runs; what was approved and has not begun is asked anew."""
    body = CancelApprovalRequest(reason=said["reason"], by=_who(said["as_"], token))
    asked = Request(method="POST", path=f"/v1/approvals/{approval}/cancel", body=msgspec.json.encode(body))
    _print(*Service(url, token).ask(asked, ApprovalView), as_json=said["as_json"])


def _decide(
    service: Service,
    approval: UUID,
    verdict: Verdict,
    said: dict[str, Any],
    *,
    token: str | None,
    arguments: dict[str, Any] | None = None,
) -> None:
    body = DecideRequest(verdict=verdict, by=_who(said["as_"], token), reason=said["reason"], arguments=arguments)
    asked = Request(method="POST", path=f"/v1/approvals/{approval}/decide", body=msgspec.json.encode(body))
    _print(*service.ask(asked, ApprovalView), as_json=said["as_json"])


def _who(name: str | None, token: str | None) -> str | None:
    """Return who speaks: as said; with a token, its owner, whom the service knows; else whoever is logged in."""
    if name is not None or token is not None:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:
        raise click.UsageError("Say who decides, with --as NAME.") from error


def _print(seen: ApprovalView, body: bytes, *, as_json: bool) -> None:
    if as_json:
        print_json(body)
        return
    approving = sum(vote.verdict == "approve" for vote in seen.decisions)
    left = f", {approving} of {seen.quorum} have approved" if seen.state == "open" else ""
    print_line(f"Approval {seen.id} is {seen.state}{left}: {seen.summary}")
    if seen.edited is not None:
        print_line(f"It runs with {json.dumps(seen.edited, ensure_ascii=False)}.")


def _row(seen: ApprovalView) -> tuple[Cell, ...]:
    who = ", ".join(vote.by for vote in seen.decisions) or seen.cancelled_by
    state = state_of(seen.state)
    return (str(seen.id), state, moment(seen.asked_at), moment(seen.expires_at), seen.run, who, seen.summary)


def _facts(seen: ApprovalView) -> list[tuple[str, Cell]]:
    edited = None if seen.edited is None else json.dumps(seen.edited, ensure_ascii=False)
    return [
        ("approval", str(seen.id)),
        ("state", state_of(seen.state)),
        ("what", seen.summary),
        ("tool", f"{seen.tool} (version {seen.tool_version})"),
        ("arguments", json.dumps(seen.arguments, ensure_ascii=False)),
        ("runs with", edited),
        ("effect", seen.key),
        ("run", seen.run),
        ("asked by", seen.requester),
        ("asked", seen.asked_at),
        ("round", seen.round if seen.round > 1 else None),
        ("until", seen.expires_at),
        ("needed", f"{seen.quorum}{', not who asked' if seen.four_eyes else ''}"),
        ("why asked", json.dumps(seen.evidence, ensure_ascii=False)),
        ("decided", seen.decided_at),
        ("cancelled by", seen.cancelled_by),
        ("reason", seen.reason),
    ]


def _vote(vote: VoteView) -> tuple[Cell, ...]:
    said = f"{vote.verdict}{', with other arguments' if vote.edited else ''}"
    return (vote.by, said, moment(vote.at), vote.reason)
