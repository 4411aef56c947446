"""How messages look on a terminal."""

from collections.abc import Sequence
from typing import Final

from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy_contract.destinations import DestinationView
from twiceshy_contract.outbox import MessageState, MessageSummary, MessageView

_AGAIN: Final = "`twiceshy outbox redrive {id} --as retry --reason ...`"
_BACK: Final = "`twiceshy outbox cancel {id} --reason ...`"
_NEXT: Final[dict[MessageState, str]] = {
    "pending": f"the relay sends it when it is due; {_BACK} takes it back",
    "claimed": "a relay is about to send it",
    "sending": "a relay is sending it",
    "dead": f"mend what its note and its tries name, then {_AGAIN}; or {_BACK}",
    "unknown": f"it may have arrived: ask its receiver. Where it has not, {_AGAIN}; where it has, {_BACK}",
    "parked": f"it waits for a person: its note says why. {_AGAIN} sends it, {_BACK} takes it back",
    "delivered": "nothing; `twiceshy outbox redrive {id} --as anew --reason ...` makes it happen a second time",
    "cancelled": "nothing; `twiceshy outbox redrive {id} --as anew --reason ...` sends it all the same",
    "withdrawn": "nothing: its effect was taken back before it was sent",
}


def print_messages(messages: Sequence[MessageSummary], *, is_cut: bool, is_all: bool) -> None:
    """Print a listing, ids whole so that they can be copied."""
    if not messages:
        print_line("No messages." if is_all else "No messages wait. Those that are over: --state delivered, ...")
        return
    headings = ("message", "state", "destination", "to", "type", "run", "tries", "staged", "note")
    print_table(headings, map(_row, messages))
    if is_cut:
        print_line("There are more: use --limit, --all, --state, --destination or --run.")


def print_message(message: MessageView, waits_for: str | None = None) -> None:
    """Print everything about one message, and what it waits for."""
    print_facts(_facts(message, waits_for))
    if message.tries:
        rows = ((it.number, it.epoch, moment(it.at), it.result, it.detail) for it in message.tries)
        print_table(("try", "epoch", "at", "came to", "why"), rows, title="Tries that did not deliver")
    if message.headers:
        print_table(("header", "value"), message.headers.items(), title="Headers")
    print_line(f"Body ({message.content_type}, {message.size} bytes)")
    for line in message.body.splitlines():
        print_line(f"  {line}")


def _row(it: MessageSummary) -> tuple[Cell, ...]:
    return (
        str(it.id), state_of(it.state), it.destination, it.recipient or it.lane, it.type, it.run, it.attempts,
        moment(it.staged_at), it.note,
    )  # fmt: skip


def hindrance(destination: DestinationView) -> str | None:
    """Say why nothing is sent to a destination now; None where it is."""
    if destination.state != "active":
        why = "" if destination.note is None else f" ({destination.note})"
        again = f"`twiceshy destinations resume {destination.name} --reason ...`"
        return f"{destination.name} is {destination.state}{why}; {again}"
    breaker = destination.breaker
    if breaker.state == "open":
        until = "" if breaker.open_until is None else f" until {moment(breaker.open_until)}"
        return f"the breaker of {destination.name} is open{until}: its last tries failed"
    if breaker.held_until is None:
        return None
    return f"{destination.name} asked to be left alone until {moment(breaker.held_until)}"


def _facts(it: MessageView, waits_for: str | None) -> list[tuple[str, Cell]]:
    return [
        ("message", f"{it.id} (epoch {it.epoch})"),
        ("state", state_of(it.state)),
        ("note", it.note),
        ("waits for", waits_for),
        ("next", _NEXT[it.state].format(id=it.id)),
        ("destination", it.destination),
        ("to", it.recipient),
        ("lane", it.lane),
        ("type", it.type),
        ("effect", it.key),
        ("run", it.run),
        ("tries", it.attempts),
        ("staged", it.staged_at),
        ("due", it.due_at),
        ("over", it.settled_at),
        ("receipt", it.receipt),
    ]
