"""What is typed on the command line: names that a path can carry, and JSON from the line, a file or standard input."""

import sys
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote
from uuid import UUID

import click
import msgspec

from twiceshy._commands.service import Service
from twiceshy._settings import DEFAULT_URL
from twiceshy._transports.base import Request
from twiceshy_contract.destinations import DestinationName
from twiceshy_contract.names import RunName, ToolName
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import decode

_COMPLETION_SECONDS = 0.5
_EPOCH_DIGITS: Final = 9


class _Named(msgspec.Struct):
    """Anything that has a name."""

    name: str


class _Names(msgspec.Struct):
    """All things of a kind."""

    items: tuple[_Named, ...]


class MessageName(NamedTuple):
    """A message as it is named: by its id, or with its epoch, as receivers see it."""

    id: UUID
    epoch: int | None


def message_name(context: click.Context, parameter: click.Parameter, value: str | None) -> MessageName | None:
    """Read the id of a message, or `id.epoch`."""
    if value is None:
        return None
    text, dot, epoch = value.partition(".")
    try:
        return MessageName(UUID(text), _epoch(epoch) if dot else None)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is no message: name its id, a UUID, or id.epoch as its receiver saw it.", context, parameter
        ) from error


def _epoch(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _EPOCH_DIGITS:
        raise ValueError(text)
    return int(text)


def run_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a run."""
    return _checked("run", RunName, context, parameter, value)


def saga_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a saga."""
    return _checked("saga", RunName, context, parameter, value)


def tool_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a tool."""
    return _checked("tool", ToolName, context, parameter, value)


def destination_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a destination."""
    if value is None:
        return None
    try:
        return str(msgspec.convert(value, DestinationName))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise click.BadParameter(
            f"{value!r} is not the name of a destination: it has 1 to 100 letters, digits, dots, dashes and "
            "underscores.",
            context,
            parameter,
        ) from error


def declared_tools(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of declared tools."""
    del parameter
    return _completed(context, "/v1/tools", incomplete)


def declared_destinations(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of destinations."""
    del parameter
    return _completed(context, "/v1/destinations", incomplete)


def _completed(context: click.Context, path: str, incomplete: str) -> list[str]:
    """Ask the service for names, briefly; without an answer there are none."""
    try:
        service = Service(context.params.get("url") or DEFAULT_URL, context.params.get("token"))
        request = Request(method="GET", path=path, timeout_seconds=_COMPLETION_SECONDS)
        names, _ = service.ask(request, _Names)
    except click.ClickException:
        return []
    return [named.name for named in names.items if named.name.startswith(incomplete)]


def in_path(name: str) -> str:
    """Quote a name so that it is one part of a path."""
    return quote(name, safe="")


def json_of(text: str, option: str) -> JsonValue:
    """Read JSON from the text itself, from the file that follows an `@`, or from standard input for `-`."""
    body = (
        _file(text[1:], option)
        if text.startswith("@")
        else _standard_input()
        if text == "-"
        else text.encode(errors="surrogateescape")
    )
    return json_in(body, option)


def json_in_file(name: str, option: str) -> JsonValue:
    """Read JSON from a file, or from standard input for `-`."""
    return json_in(bytes_in_file(name, option), option)


def bytes_in_file(name: str, option: str) -> bytes:
    """Read a file, or standard input for `-`."""
    return _standard_input() if name == "-" else _file(name, option)


def json_in(body: bytes, option: str) -> JsonValue:
    """Read strict JSON."""
    try:
        return decode(body)
    except Refusal as error:
        where = f" at {error.path}" if error.path else ""
        raise click.UsageError(f"{option} is not JSON{where}: {error.reason}.") from error


def _file(name: str, option: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"{option}: {name!r} cannot be read ({why}).") from error


def _standard_input() -> bytes:
    if sys.stdin.isatty():
        click.echo("Reading from the terminal; end it with Ctrl-D.", err=True)
    return sys.stdin.buffer.read()


def _checked(noun: str, kind: Any, context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        value.encode()
        return str(msgspec.convert(value, kind))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise click.BadParameter(
            f"{value!r} is not the name of a {noun}: it has 1 to 200 characters, without control characters and "
            "slashes.",
            context,
            parameter,
        ) from error
