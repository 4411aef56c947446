"""What came of each accident, and whether that is what a guard must make of it."""

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from guard.demo.deliveries import Delivery
from guard.demo.deliveries import wrong as lost_or_doubled


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One accident: the holds in the calendar's file, those that guarded agents were told of, and the record."""

    accident: str
    title: str
    doubtful: bool
    without_guard: tuple[int, ...]
    with_guard: tuple[int, ...]
    told: tuple[int, ...]
    states: tuple[str, ...]
    settled: str


def wrong(line: Line) -> str | None:
    """Say what is wrong with a line, if anything is."""
    if len(line.without_guard) < 2:
        found = f"without the guard the calendar has {len(line.without_guard)} entries; the accident did not happen"
    elif len(line.with_guard) != 1:
        found = f"with the guard the calendar has {len(line.with_guard)} entries instead of one"
    elif not line.told or set(line.told) != set(line.with_guard):
        found = f"the agents were told of holds {line.told} where the calendar has {line.with_guard}"
    elif line.states != (("executing", "in_doubt", "succeeded") if line.doubtful else ("executing", "succeeded")):
        found = f"the effect went {' > '.join(line.states)}"
    else:
        return None
    return f"{line.title}: {found}."


def as_json(lines: list[Line], deliveries: list[Delivery]) -> str:
    """Write both tables as JSON."""
    rows = [
        {
            "accident": line.accident,
            "title": line.title,
            "without_guard": len(line.without_guard),
            "with_guard": len(line.with_guard),
            "states": line.states,
            "settled": line.settled,
            "told": line.told,
            "wrong": wrong(line),
        }
        for line in lines
    ]
    told = [msgspec.to_builtins(delivery) | {"wrong": lost_or_doubled(delivery)} for delivery in deliveries]
    return msgspec.json.format(msgspec.json.encode({"accidents": rows, "deliveries": told}), indent=2).decode()


def print_table(console: Console, lines: list[Line]) -> None:
    """Print the table."""
    table = Table(title="Holds in the calendar's own file", box=box.HORIZONTALS, show_lines=True)
    table.add_column("accident", ratio=3)
    table.add_column("without\nthe guard", justify="right", style="red", no_wrap=True)
    table.add_column("with\nthe guard", justify="right", style="green", no_wrap=True)
    table.add_column("how it was settled,\nas the service recorded it", ratio=5)
    for line in lines:
        states = Text(" > ".join(line.states), style="bold")
        table.add_row(
            line.title,
            str(len(line.without_guard)),
            str(len(line.with_guard)),
            Text("\n").join([states, Text(line.settled)]),
        )
    console.print(table)


def print_deliveries(console: Console, deliveries: list[Delivery]) -> None:
    """Print what came of the messages of one booking."""
    table = Table(title="Messages of a booking, the relay killed twice", box=box.HORIZONTALS, show_lines=True)
    table.add_column("message", ratio=3)
    table.add_column("came to the\nletterbox", justify="right", no_wrap=True)
    table.add_column("kept by the\nletterbox", justify="right", style="green", no_wrap=True)
    table.add_column("how it ended,\nas the outbox recorded it", ratio=5)
    for delivery in deliveries:
        table.add_row(delivery.title, str(delivery.arrived), str(delivery.kept), delivery.told)
    console.print(table)
