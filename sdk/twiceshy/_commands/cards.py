"""Cards of a timeline on a terminal in colour, elsewhere plain, each as soon as it is made."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.text import Text

from twiceshy._timeline import Card, MailCard, Part, lines_of

_STYLES: Final = {
    "number": "bold",
    "kind": "cyan",
    "plain": "",
    "mark": "dim",
    "alarm": "bold red",
    "note": "yellow",
}


def print_cards(cards: Iterable[Card | MailCard]) -> int:
    """Print cards one after the other; return how many there were."""
    count = 0
    for card in cards:
        count += 1
        for line in lines_of(card):
            print_parts(line)
    return count


def print_parts(parts: Iterable[Part]) -> None:
    """Print a line, which is never wrapped or cut here."""
    print_text(Text.assemble(*((part.text, _STYLES[part.role]) for part in parts)))


def print_text(text: Text) -> None:
    """Print a text in its colours, where the output has some."""
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(text, soft_wrap=True)
    click.echo(captured.get().removesuffix("\n").rstrip(" "), color=True)


def print_json_cards(head: Mapping[str, object], cards: Iterable[Card]) -> None:
    """Print a JSON object whose last member is the timeline, a card a line, each as soon as it is made."""
    members = ",\n".join(f'  "{name}": {_json(member)}' for name, member in head.items())
    click.echo(f'{{\n{members},\n  "timeline": [', nl=False)
    for line in _separated(cards):
        click.echo(line, nl=False)
    click.echo("\n  ]\n}")


def _separated(cards: Iterable[Card]) -> Iterator[str]:
    for at, card in enumerate(cards):
        yield f"{',' if at else ''}\n    {_json(card)}"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
