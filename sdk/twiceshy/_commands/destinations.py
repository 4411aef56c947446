"""`twiceshy destinations`: where messages go, how that stands, and what a file declares of it."""

from collections.abc import Callable
from typing import Any, Final

import click
import msgspec

from twiceshy._commands.declarations import shown
from twiceshy._commands.destinations_apply import apply
from twiceshy._commands.groups import Group
from twiceshy._commands.parameters import declared_destinations, destination_name, in_path
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.destinations import (
    BreakerView,
    ConnectivityView,
    Destination,
    DestinationAct,
    DestinationList,
    DestinationView,
)

_NONE: Final = "No destinations. `twiceshy destinations apply FILE` declares those of a file."
_DONE: Final = {
    "pause": "is paused: what is staged for it waits",
    "resume": "is active, and its breaker closed: what waits is sent",
    "remove": "is removed: nothing is staged for it any more, and what waits is parked",
}
_CHECK_SECONDS: Final = 60.0


@click.group(cls=Group)
def destinations() -> None:
    """List, show, apply, check, pause, resume and remove destinations."""


@destinations.command(name="list")
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None) -> None:
    """List destinations by name: whether they are reached, and what waits for them."""
    found, body = Service(url, token).ask(Request(method="GET", path="/v1/destinations"), DestinationList)
    if as_json:
        print_json(body)
    elif not found.items:
        print_line(_NONE)
    else:
        headings = (
            "destination", "kind", "state", "breaker", "pending", "in flight", "oldest pending", "dead", "unknown",
            "parked",
        )  # fmt: skip
        print_table(headings, map(_row, found.items))


@destinations.command()
@click.argument("name", callback=destination_name, shell_complete=declared_destinations)
@with_json
@of_service
def show(*, name: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the destination NAME: its settings, how it stands, and what waits for it."""
    found, body = Service(url, token).ask(Request(method="GET", path=_path(name)), DestinationView)
    if as_json:
        print_json(body)
    else:
        print_facts(_facts(found))


@destinations.command()
@click.argument("name", callback=destination_name, shell_complete=declared_destinations)
@with_json
@of_service
@click.pass_context
def check(context: click.Context, *, name: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Reach the destination NAME from the service, without delivering anything. The exit code is 1 if it fails."""
    asked = Request(method="POST", path=f"{_path(name)}/check", timeout_seconds=_CHECK_SECONDS)
    seen, body = Service(url, token).ask(asked, ConnectivityView)
    if as_json:
        print_json(body)
    else:
        said = click.style("ok", fg="green") if seen.ok else click.style("fail", fg="red")
        click.echo(f"{said}  ", nl=False)
        print_line(f"{name}: {seen.detail} ({seen.milliseconds:.0f} ms)")
    context.exit(0 if seen.ok else 1)


def _acting(command: Callable[..., None]) -> Callable[..., None]:
    """Add what pausing, resuming and removing are told."""
    name = click.argument("name", callback=destination_name, shell_complete=declared_destinations)
    reason = click.option("--reason", required=True, help="Why; kept with the destination.")
    by = click.option("--by", help="Who decides so.")
    return name(reason(by(with_json(of_service(command)))))


@destinations.command()
@_acting
def pause(**said: Any) -> None:
    """Send nothing to the destination NAME until it is resumed; messages are staged and wait."""
    _act("pause", **said)


@destinations.command()
@_acting
def resume(**said: Any) -> None:
    """Send to the destination NAME again, at once: one that was paused, disabled, or whose breaker is open."""
    _act("resume", **said)


@destinations.command()
@_acting
def remove(**said: Any) -> None:
    """Remove the destination NAME: what waits for it is parked, for a person to send or to take back."""
    _act("remove", **said)


def _act(verb: str, *, name: str, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    body = msgspec.json.encode(DestinationAct(reason=said["reason"], by=said["by"]))
    asked = Request(method="POST", path=f"{_path(name)}/{verb}", body=body)
    _, answer = Service(url, token).ask(asked, DestinationView)
    if as_json:
        print_json(answer)
    else:
        print_line(f"Destination {name} {_DONE[verb]}.")


def kind_of(settings: Destination) -> str:
    """Return the word for the kind of a destination."""
    return str(settings.__struct_config__.tag)


def _row(it: DestinationView) -> tuple[Cell, ...]:
    queue = it.queue
    return (
        it.name, kind_of(it.settings), state_of(it.state), state_of(it.breaker.state), queue.pending, queue.in_flight,
        _age(queue.oldest_pending_seconds), _alarm(queue.dead, "dead"), _alarm(queue.unknown, "unknown"),
        _alarm(queue.parked, "parked"),
    )  # fmt: skip


def _facts(it: DestinationView) -> list[tuple[str, Cell]]:
    queue = it.queue
    settings = msgspec.to_builtins(it.settings)
    return [
        ("destination", f"{it.name} (version {it.version})"),
        ("state", state_of(it.state)),
        ("note", it.note),
        ("declared", moment(it.declared_at)),
        ("breaker", _breaker(it.breaker)),
        ("held until", it.breaker.held_until),
        ("pending", f"{queue.pending}, the oldest for {_age(queue.oldest_pending_seconds)}" if queue.pending else 0),
        ("in flight", queue.in_flight),
        ("dead", _alarm(queue.dead, "dead")),
        ("unknown", _alarm(queue.unknown, "unknown")),
        ("parked", _alarm(queue.parked, "parked")),
        *((name, shown(value)) for name, value in settings.items()),
    ]


def _breaker(breaker: BreakerView) -> Cell:
    until = "" if breaker.open_until is None else f" until {moment(breaker.open_until)}"
    probing = f", {breaker.allowance} in flight at once" if breaker.allowance is not None else ""
    return state_of(breaker.state, f"{until}{probing}")


def _alarm(count: int, state: str) -> Cell:
    """Return a count in the colour of the state that is counted, where there is anything to count."""
    return state_of(state, count=count) if count else 0


def _age(seconds: float) -> str | None:
    """Say how long something has waited; nothing for what has not."""
    if seconds <= 0:
        return None
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _path(name: str) -> str:
    return f"/v1/destinations/{in_path(name)}"


destinations.add_command(apply)
