"""`twiceshy tools import`: declarations out of somebody else's document, as hints."""

from collections.abc import Callable
from typing import Any

import click

from twiceshy._commands.documents import Document, read_document
from twiceshy._commands.groups import Group
from twiceshy._commands.imported import Imported
from twiceshy._commands.mcp_tools import tools_of
from twiceshy._commands.openapi_tools import operations_of
from twiceshy._commands.plans import Wanted, carry_out, planning
from twiceshy._commands.service import Service, of_service, with_json
from twiceshy_contract.refusals import JsonValue


@click.group(name="import", cls=Group)
def import_() -> None:
    """Declare tools as somebody else's document describes them.

    What is imported is a hint: it is taken where nobody has said anything, and may raise a class over what code or a
    person said, but lowers nothing. The plan is shown first.
    """


def _importing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and options that both imports have."""
    file = click.argument("file", metavar="FILE")
    prefix = click.option("--prefix", default="", metavar="TEXT", help="What every name begins with, such as crm.")
    return file(prefix(planning(with_json(of_service(command)))))


@import_.command()
@_importing
def mcp(*, file: str, prefix: str, url: str | None, token: str | None, **how: bool) -> None:
    """Import what an MCP server answers to tools/list (JSON; - for standard input).

    A tool with readOnlyHint is read, one with idempotentHint idempotent, every other a side_effect: a missing hint is
    the specification's default. A slash in a name becomes a dot.
    """
    document = read_document(file, "FILE")
    _carry_out(document, tools_of(document.value), prefix, Service(url, token), how)


@import_.command()
@_importing
def openapi(*, file: str, prefix: str, url: str | None, token: str | None, **how: bool) -> None:
    """Import the operations of an OpenAPI 3 document (YAML or JSON; - for standard input).

    A tool is called by its operationId, or by method and path; a slash becomes a dot ("POST .v1.charges"). GET, HEAD,
    OPTIONS, TRACE and QUERY are read, PUT and DELETE idempotent, POST and PATCH a side_effect. A header parameter
    Idempotency-Key is noted as provider_key_header; how long the provider remembers a key
    (provider_window_seconds), a person says.
    """
    document = read_document(file, "FILE")
    _carry_out(document, operations_of(document.value), prefix, Service(url, token), how)


def _carry_out(document: Document, imported: Imported, prefix: str, service: Service, how: dict[str, bool]) -> None:
    named = imported.named(prefix)
    if not (named or imported.flaws):
        imported.flaw((), "there is no tool in it")
    if imported.flaws:
        raise document.refused(imported.flaws)
    for place, what in imported.remarks:
        click.echo(f"{document.place(place)}: {what}.", err=True)
    declarations: dict[str, dict[str, JsonValue]] = {
        name: {**tool.declaration, "declared_by": "hint"} for name, tool in named.items()
    }
    places = {name: tool.place for name, tool in named.items()}
    carry_out(service, Wanted(document=document, declarations=declarations, places=places), **how)
