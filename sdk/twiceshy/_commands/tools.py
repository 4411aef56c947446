"""`twiceshy tools`: look at the side-effect registry, and declare what a tool is."""

from collections.abc import Iterator
from typing import Any, Final, get_args
from urllib.parse import urlencode

import click
import msgspec

from twiceshy._commands.declarations import (
    NORMALISERS,
    Declaration,
    changes,
    declared,
    flat,
    normalisers_of,
    shown,
    written,
)
from twiceshy._commands.groups import Group
from twiceshy._commands.parameters import declared_tools, in_path, json_in_file, tool_name
from twiceshy._commands.service import Refused, Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table
from twiceshy._commands.tools_apply import apply
from twiceshy._commands.tools_import import import_
from twiceshy._transports.base import Request
from twiceshy_contract.names import EffectClass, KeyRule

_NO_TOOLS: Final = "No tools are declared. The SDK declares those it decorates; so does `twiceshy tools apply`."
_ROLES: Final = ("identity", "content", "ignored")
_RULES: Final = ("approval", "compensation", "probe", "resource", "simulator", "fork", "loop_limit", "sink")
_NUMBERS: Final = ("lease_seconds", "attempts", "backoff_seconds", "provider_window_seconds")


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the registry holds it; the declaration is kept as it came, with what a later service may add."""

    name: str
    version: int
    declared_at: str
    declaration: dict[str, object]


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """All tools, by name."""

    items: tuple[Tool, ...]


@click.group(cls=Group)
def tools() -> None:
    """List, show, declare, apply and import tools."""


class Term(msgspec.Struct, frozen=True):
    """From when until when a version held."""

    since: str
    until: str | None


class Version(Tool, frozen=True, kw_only=True):
    """A version of a tool, and when it held."""

    digest: str
    declared_by: str
    terms: tuple[Term, ...]


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """All versions of a tool, newest first."""

    items: tuple[Version, ...]


_at = click.option("--at", metavar="INSTANT", help="As it was then (RFC 3339, such as 2026-10-12T14:00:00Z).")


@tools.command(name="list")
@_at
@with_json
@of_service
def list_(*, at: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """List all declared tools, by name."""
    path = f"/v1/tools{_query(at=at)}"
    found, body = Service(url, token).ask(Request(method="GET", path=path), Tools)
    if as_json:
        print_json(body)
    elif not found.items:
        print_line("No tools were declared then." if at else _NO_TOOLS)
    else:
        headings = ("tool", "version", "class", "key rule", "declared by", "declared", "with")
        print_table(headings, map(_line, found.items))


@tools.command()
@click.argument("name", callback=tool_name, shell_complete=declared_tools)
@click.option("--version", type=click.IntRange(1), help="This version of it.")
@_at
@with_json
@of_service
def show(*, name: str, version: int | None, at: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the declaration of the tool NAME that holds now, or held.

    An effect names the version that it began under: `twiceshy tools show NAME --version` shows its rules.
    """
    if version is not None and at is not None:
        raise click.UsageError("Ask for a --version or for an instant (--at), not for both.")
    path = f"{_path(name)}{_query(version=version, at=at)}"
    tool, body = Service(url, token).ask(Request(method="GET", path=path), Tool)
    if as_json:
        print_json(body)
    else:
        parts = ((part, shown(value)) for part, value in flat(tool.declaration).items())
        print_facts([("tool", tool.name), ("version", tool.version), ("declared", tool.declared_at), *parts])


@tools.command()
@click.argument("name", callback=tool_name, shell_complete=declared_tools)
@with_json
@of_service
def versions(*, name: str, as_json: bool, url: str | None, token: str | None) -> None:
    """List all versions of the tool NAME, newest first, and when each of them held."""
    found, body = Service(url, token).ask(Request(method="GET", path=f"{_path(name)}/versions"), Versions)
    if as_json:
        print_json(body)
    else:
        headings = ("version", "class", "declared by", "held since", "until", "digest")
        print_table(headings, (line for version in found.items for line in _lines(version)))


@tools.command()
@click.argument("name", callback=tool_name, shell_complete=declared_tools)
@click.option("--class", "class_", type=click.Choice(get_args(EffectClass)), help="What a call does to the world.")
@click.option("--key", type=click.Choice(get_args(KeyRule)), help="What names a call.")
@click.option("--identity", multiple=True, metavar="/PATH", help="An argument that must match; repeatable.")
@click.option("--content", multiple=True, metavar="/PATH", help="An argument that may be rephrased; repeatable.")
@click.option("--ignored", multiple=True, metavar="/PATH", help="An argument that is not looked at; repeatable.")
@click.option(
    "--normaliser",
    multiple=True,
    metavar="/PATH=NAME",
    help=f"How it is written alike; repeatable. Names: {NORMALISERS}; or as JSON.",
)
@click.option("--lease-seconds", type=float, help="How long an attempt may run without a sign of life.")
@click.option("--attempts", type=int, help="How often it is tried.")
@click.option("--backoff-seconds", type=float, help="The wait before the second try; doubled with each.")
@click.option("--provider-window-seconds", type=float, help="How long the provider answers a repeated downstream key.")
@click.option("--anew", is_flag=True, help="What is not said gets its default, instead of what holds.")
@click.option("--file", "file", metavar="FILE", help="The whole declaration as JSON; - for standard input.")
@with_json
@of_service
def declare(*, name: str, file: str | None, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Declare the tool NAME, as a person: code may then only raise its class.

    What is not said stays as it holds. Runs that used the tool before keep the roles that they began with.

    \b
    twiceshy tools declare send_mail --content /subject --content /body --normaliser /to=email
    twiceshy tools show send_mail --json | jq .declaration | twiceshy tools declare mail_v2 --file -
    """  # noqa: D301 - click reads the control character
    service = Service(url, token)
    body = _said(None, said) if file is None else _in_file(file, said)
    before = _held(service, name)
    if file is None and before is not None and not said["anew"]:
        body = _said(before.declaration, said)
    after, answer = service.ask(Request(method="PUT", path=_path(name), body=body), Tool)
    if as_json:
        print_json(answer)
    else:
        _tell(before, after)


def _said(held: Declaration | None, said: dict[str, Any]) -> bytes:
    """Return the declaration that the options make of what holds (None: of the defaults)."""
    numbers = {name: said[name] for name in _NUMBERS if said[name] is not None}
    roles: dict[str, object] = {role: list(said[role]) for role in _ROLES if said[role]}
    if said["normaliser"]:
        roles["normalisers"] = normalisers_of(said["normaliser"])
    effect_class = {} if said["class_"] is None else {"class": said["class_"]}
    return written(declared(held, effect_class | numbers, roles, said["key"]), "What is said")


def _in_file(file: str, said: dict[str, Any]) -> bytes:
    """Read the declaration in a file, which a person makes his own."""
    if any(said.values()):
        raise click.UsageError("--file holds the whole declaration: leave out the options that say parts of it.")
    declaration = json_in_file(file, "--file")
    body = written(declaration, "--file")
    return written(declared(declaration, {}, {}, None), "--file") if isinstance(declaration, dict) else body


def _held(service: Service, name: str) -> Tool | None:
    try:
        return service.ask(Request(method="GET", path=_path(name)), Tool)[0]
    except Refused as refused:
        if refused.code == "not-found":
            return None
        raise


def _tell(before: Tool | None, after: Tool) -> None:
    """Say what holds now and what that changed."""
    if before is not None and before.version == after.version:
        print_line(f"Tool {after.name} is declared like this already: version {after.version} holds, nothing changed.")
        return
    was = "nobody had declared it" if before is None else f"was {before.version}"
    changed = changes(None if before is None else before.declaration, after.declaration)
    print_line(f"Tool {after.name} is at version {after.version} ({was}).")
    for line in changed:
        print_line(f"  {line}")
    if before is None:
        print_line("  all else: the defaults" if changed else "  all of it: the defaults")


def _line(tool: Tool) -> list[Cell]:
    parts = flat(tool.declaration)
    told = [shown(parts.get(part)) for part in ("class", "key rule", "declared_by")]
    rules = [rule for rule in _RULES if parts.get(rule) not in (None, "auto")]
    return [tool.name, tool.version, *told, moment(tool.declared_at), ", ".join(rules) or None]


def _lines(version: Version) -> Iterator[list[Cell]]:
    """Yield a line for each term in which a version held, latest first."""
    effect_class = shown(version.declaration.get("class"))
    for term in reversed(version.terms):
        until = moment(term.until) or "now"
        yield [version.version, effect_class, version.declared_by, moment(term.since), until, version.digest[:12]]


def _query(**asked: object) -> str:
    given = {name: value for name, value in asked.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _path(name: str) -> str:
    return f"/v1/tools/{in_path(name)}"


for command in (apply, import_):
    tools.add_command(command)
