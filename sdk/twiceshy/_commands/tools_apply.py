"""`twiceshy tools apply`: the declarations of a file, as a person's word."""

from collections.abc import Iterator

import click
import msgspec

from twiceshy._commands.documents import Document, read_document
from twiceshy._commands.plans import Declared, Wanted, carry_out, planning
from twiceshy._commands.service import Service, of_service, with_json
from twiceshy_contract.names import ToolName
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.tools import ToolDeclaration
from twiceshy_contract.wire import convert

_TOOLS = "tools"
Flaws = list[tuple[tuple[Step, ...], str]]


@click.command()
@click.argument("file", metavar="FILE")
@planning
@with_json
@of_service
def apply(*, file: str, dry_run: bool, yes: bool, as_json: bool, url: str | None, token: str | None) -> None:
    """Declare all tools of FILE (YAML or JSON; - for standard input), as a person: all of them or none.

    The plan is shown first: what is new, what changes, and what would guard less than before. What is said of a tool
    is the whole of it: what is left out has its default. Tools that are not in FILE stay as they are.

    \b
    tools:
      pay:
        class: side_effect
        key: {rule: business_key}
        approval: {when: "arguments.amount > `100`"}
    """  # noqa: D301 - click reads the control character
    wanted = _wanted(read_document(file, "FILE"))
    carry_out(Service(url, token), wanted, dry_run=dry_run, yes=yes, as_json=as_json)


def _wanted(document: Document) -> Wanted:
    """Read the declarations, which a person makes his own. Raises click.UsageError with every place that is wrong."""
    root = document.value
    tools = root.get(_TOOLS) if isinstance(root, dict) else None
    flaws = list(_flaws_of_the_root(root))
    declarations: dict[str, Declared] = {}
    for name, declaration in tools.items() if isinstance(tools, dict) else ():
        flaws += _flaws(name, declaration)
        declarations[name] = {**(declaration if isinstance(declaration, dict) else {}), "declared_by": "person"}
    if flaws:
        raise document.refused(flaws)
    return Wanted(document=document, declarations=declarations, places={name: (_TOOLS, name) for name in declarations})


def _flaws_of_the_root(root: JsonValue) -> Iterator[tuple[tuple[Step, ...], str]]:
    if not isinstance(root, dict) or not isinstance(root.get(_TOOLS), dict):
        yield (_TOOLS,), "tools is missing: it is a mapping of names to declarations"
    elif not root[_TOOLS]:
        yield (_TOOLS,), "no tool is declared here"
    yield from (
        ((name,), "this field is not known") for name in (root if isinstance(root, dict) else {}) if name != _TOOLS
    )


def _flaws(name: str, declaration: JsonValue) -> Iterator[tuple[tuple[Step, ...], str]]:
    try:
        msgspec.convert(name, ToolName)
    except msgspec.ValidationError:
        yield (_TOOLS, name), "a tool's name has 1 to 200 characters, without control characters and slashes"
    if declaration is None:
        yield (_TOOLS, name), "a declaration is missing; {} is one with all defaults"
        return
    try:
        convert(declaration, ToolDeclaration)
    except Refusal as refusal:
        yield (_TOOLS, name, *refusal.steps), refusal.reason
