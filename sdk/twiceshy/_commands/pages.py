"""Listings that are longer than a page: followed by `next`, with a bar on a terminal's standard error."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlencode

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from twiceshy._commands.service import Service
from twiceshy._transports.base import Request

T = TypeVar("T")

PAGE: Final = 500
"""The largest page that the service gives."""


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page; `next` is the `after` of the page that follows."""

    items: tuple[T, ...]
    next: str | None


class Listing(msgspec.Struct, Generic[T], frozen=True):
    """What was gathered, read and as it came. `next` continues where the limit cut it off."""

    items: list[T]
    raw: list[msgspec.Raw]
    next: str | None

    @property
    def body(self) -> bytes:
        """The listing as one page of JSON."""
        return msgspec.json.encode({"items": self.raw, "next": self.next})


def how_many(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say how much of a listing is wanted."""
    limit = click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
    everything = click.option("--all", "everything", is_flag=True, help="All of them, however many.")
    return limit(everything(command))


def gather(
    service: Service,
    path: str,
    query: Mapping[str, str | Sequence[str]],
    kind: type[Page[T]],
    *,
    limit: int | None,
    total: int | None,
) -> Listing[T]:
    """Follow a listing until the limit (None: to its end). `total` is how many there will be, where that is known."""
    items: list[T] = []
    raw: list[msgspec.Raw] = []
    after: str | None = None
    with _bar(path, total if limit is None else limit) as advance:
        while True:
            wanted = PAGE if limit is None else min(PAGE, limit - len(items))
            asked = urlencode({**query, "limit": wanted} | ({} if after is None else {"after": after}), doseq=True)
            page, body = service.ask(Request(method="GET", path=f"{path}?{asked}"), kind)
            items += page.items
            raw += msgspec.json.decode(body, type=Page[msgspec.Raw]).items
            after = page.next
            advance(len(page.items))
            if after is None or (limit is not None and len(items) >= limit):
                return Listing(items, raw, after)


@contextmanager
def _bar(path: str, total: int | None) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    is_long = total is None or total > PAGE
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not (is_long and console.is_terminal)) as progress:
        task = progress.add_task(f"Reading {path.rsplit('/', 1)[-1]}", total=total)
        yield lambda count: progress.advance(task, count)
