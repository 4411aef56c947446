"""`twiceshy runs list --called`: calls found in the logs of all runs."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from twiceshy._commands.pages import Page, gather
from twiceshy._commands.service import Service, print_json
from twiceshy._commands.tables import print_line, print_table
from twiceshy_contract.events import FoundEvent

OF_CALLS: Final = ("argument", "empty", "outcome", "kind", "since")
"""Options that go with --called."""
_AGO: Final = re.compile(r"(?P<count>\d{1,5})(?P<unit>[smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SHOWN: Final = 60
"""Characters of the arguments in a table; --json has all."""


def calls_asked(asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the query of the search."""
    query = {"name": str(asked["called"])}
    query |= {name: str(asked[name]) for name in ("workflow", "outcome", "kind") if asked[name]}
    if asked["argument"]:
        query |= _argument(asked["argument"])
    if asked["empty"]:
        query["empty"] = "true"
    if asked["since"]:
        query["since"] = _instant(asked["since"]).isoformat()
    return query


def list_calls(service: Service, query: dict[str, str], limit: int | None, *, as_json: bool) -> None:
    """Print the calls that are found, newest runs first, and of how many runs they are."""
    found = gather(service, "/v1/events", query, Page[FoundEvent], limit=limit, total=None)
    if as_json:
        print_json(found.body)
        return
    if not found.items:
        print_line("No calls.")
        return
    print_table(
        ("run", "event", "call", "arguments", "outcome", "recorded"),
        ((call.run, call.seq, call.name, _short(call.arguments), _end(call), _when(call.at)) for call in found.items),
    )
    count = len({call.run for call in found.items})
    print_line(f"{_counted(len(found.items), 'call')} in {_counted(count, 'run')}.")
    if found.next is not None:
        print_line("There are more: use --limit or --all.")


def _argument(text: str) -> dict[str, str]:
    """Read `name`, `name=value` or `name=beginning*`; a backslash before the asterisk makes it one of the value."""
    name, equals, value = text.partition("=")
    if not name:
        raise click.UsageError(f"--argument {text!r} names no argument: write it as jurisdiction=GB-*.")
    if not equals:
        return {"argument": name}
    if value.endswith(r"\*"):
        return {"argument": name, "equals": f"{value[:-2]}*"}
    if value.endswith("*"):
        return {"argument": name, "prefix": value[:-1]}
    return {"argument": name, "equals": value}


def _instant(text: str) -> datetime:
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return datetime.now(UTC) - timedelta(**{_UNITS[ago["unit"]]: int(ago["count"])})
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(f"--since {text!r} is neither 30d or 12h nor a time: 2026-10-12T14:00:00Z.") from error
    if instant.tzinfo is None:
        raise click.UsageError(f"--since {text!r} has no offset: write {text}Z for UTC.")
    return instant


def _end(call: FoundEvent) -> str | None:
    return f"{call.outcome}, empty" if call.empty else call.outcome


def _short(arguments: object) -> str:
    text = msgspec.json.encode(arguments).decode()
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _when(at: int) -> str:
    """Return microseconds since 1970 as a moment to the second."""
    try:
        return f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return str(at)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
