"""How things look: on a terminal in colour, elsewhere plain, and never wrapped or cut, so that keys can be copied."""

from collections.abc import Iterable, Sequence
from typing import Final

import click
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_WIDEST: Final = 1_000_000
_COLOURS: Final = {
    "succeeded": "green",
    "failed": "red",
    "in_doubt": "bold yellow",
    "executing": "cyan",
    "stuck": "bold yellow",
    "active": "green",
    "delivered": "green",
    "claimed": "cyan",
    "sending": "cyan",
    "half_open": "yellow",
    "paused": "yellow",
    "parked": "yellow",
    "unknown": "bold yellow",
    "dead": "red",
    "disabled": "red",
    "open": "red",
}
_DIM: Final = ("pending", "finished", "cancelled", "withdrawn", "closed")

Cell = str | int | float | Text | None


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Cell]], *, title: str | None = None) -> None:
    """Print rows below their headings; None is shown as a dash."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    _print_whole(table)


def print_facts(facts: Iterable[tuple[str, Cell]]) -> None:
    """Print names with their values; what is None is left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for name, value in facts:
        if value is not None:
            table.add_row(name, _cell(value))
    _print_whole(table)


def print_line(text: str) -> None:
    """Print one line."""
    click.echo(_printable(text))


def state_of(state: str, note: str = "", *, count: int | None = None) -> Text:
    """Return a state in its colour, or a count of what is in that state."""
    said = f"{state}{note}" if count is None else str(count)
    return Text(said, style=_COLOURS.get(state, "dim" if state in _DIM else ""))


def moment(instant: str | None) -> str | None:
    """Return an instant of the wire to the second."""
    return None if instant is None else f"{instant[:19]}Z"


def _cell(value: Cell) -> Text:
    if isinstance(value, Text):
        return value
    return Text("-" if value is None else _printable(str(value)))


def _printable(text: str) -> str:
    """Write out what would move the cursor or change the terminal: texts come from tools and providers."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def _print_whole(table: Table) -> None:
    """Print a table as wide as it is, without the blanks that fill its last column; a terminal wraps lines itself."""
    console = Console()
    width = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    wide = Console(width=max(console.width, width), highlight=False)
    with wide.capture() as captured:
        wide.print(table)
    for line in captured.get().splitlines():
        click.echo(line.rstrip(), color=True)
