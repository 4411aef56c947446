"""What is typed on the command line: names that a path can carry, and JSON from the line, a file or standard input."""

import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import msgspec

from twiceshy._commands.service import Service
from twiceshy._settings import DEFAULT_URL
from twiceshy._transports.base import Request
from twiceshy_contract.names import RunName, ToolName
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import decode

_COMPLETION_SECONDS = 0.5


class _Named(msgspec.Struct):
    """Anything that has a name."""

    name: str


class _Names(msgspec.Struct):
    """All tools."""

    items: tuple[_Named, ...]


def run_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a run."""
    return _checked("run", RunName, context, parameter, value)


def saga_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a saga."""
    return _checked("saga", RunName, context, parameter, value)


def tool_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a tool."""
    return _checked("tool", ToolName, context, parameter, value)


def declared_tools(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of declared tools: ask the service, briefly; without an answer there are none."""
    del parameter
    try:
        service = Service(context.params.get("url") or DEFAULT_URL, context.params.get("token"))
        request = Request(method="GET", path="/v1/tools", timeout_seconds=_COMPLETION_SECONDS)
        names, _ = service.ask(request, _Names)
    except click.ClickException:
        return []
    return [tool.name for tool in names.items if tool.name.startswith(incomplete)]


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
