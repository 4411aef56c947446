"""Several declarations at once: the plan is shown, agreed to, and carried out whole or not at all."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import click
import msgspec

from twiceshy._commands.declarations import changes
from twiceshy._commands.documents import Document
from twiceshy._commands.service import Service, print_json
from twiceshy._commands.tables import print_line
from twiceshy._transports.base import Request
from twiceshy_contract.problems import FieldError
from twiceshy_contract.refusals import JsonValue, Step, pointer, steps_of

_MARKS: Final = {"new": "+", "changed": "~", "again": "~", "unchanged": "=", "refused": "!"}
_SPEAKERS: Final = {"person": "a person", "code": "code"}
_PLAN_SECONDS: Final = 30.0
Declared = dict[str, JsonValue]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Declarations by the name of their tool, and where in a document each of them stands."""

    document: Document
    declarations: dict[str, Declared]
    places: dict[str, tuple[Step, ...]]


class _Held(msgspec.Struct, frozen=True):
    """The version that held before."""

    version: int
    declaration: dict[str, object]


class _Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one tool; declarations are kept as they came."""

    name: str
    change: Literal["new", "changed", "again", "unchanged", "refused"]
    before: _Held | None = None
    version: int | None = None
    declaration: dict[str, object] | None = None
    lowered: tuple[str, ...] = ()
    errors: tuple[FieldError, ...] = ()


class _Plan(msgspec.Struct, frozen=True):
    """What becomes of all of them."""

    items: tuple[_Planned, ...]


class NotTaken(click.ClickException):
    """The service would not take the declarations, or a person did not."""


def planning(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that plans before it writes."""
    dry_run = click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
    yes = click.option("--yes", is_flag=True, help="Apply without being asked.")
    return dry_run(yes(command))


def carry_out(service: Service, wanted: Wanted, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Plan, show the plan, ask, and apply."""
    if as_json and not (dry_run or yes):
        raise click.UsageError("--json asks nothing: add --dry-run to see the plan, or --yes to apply it.")
    plan, body = service.ask(_request("plan", {"tools": wanted.declarations}), _Plan)
    refused = [planned for planned in plan.items if planned.change == "refused"]
    if refused:
        raise NotTaken(_refusals(wanted, refused))
    if not as_json:
        _show(plan, wanted)
    has_changes = any(planned.change != "unchanged" for planned in plan.items)
    if not dry_run and has_changes:
        if not yes:
            agree()
        seen = {one.name: 0 if one.before is None else one.before.version for one in plan.items}
        _, body = service.ask(_request("apply", {"tools": wanted.declarations, "seen": seen}), _Plan)
    if as_json:
        print_json(body)
    elif dry_run:
        print_line("This is a dry run: nothing was applied.")
    elif has_changes:
        print_line("Applied.")


def _request(verb: str, body: Mapping[str, object]) -> Request:
    return Request(
        method="POST", path=f"/v1/tools/{verb}", body=msgspec.json.encode(body), timeout_seconds=_PLAN_SECONDS
    )


def _refusals(wanted: Wanted, refused: Iterable[_Planned]) -> str:
    lines = (
        f"{wanted.document.place([*wanted.places[one.name], *steps_of(error.path)])}: "
        f"{pointer(['tools', one.name])}{error.path}: {error.message}."
        for one in refused
        for error in one.errors
    )
    return "\n  ".join([*lines, "Nothing was applied."])


def _show(plan: _Plan, wanted: Wanted) -> None:
    """Print what becomes of each tool, a line for each part that changes."""
    for planned in plan.items:
        print_line(f"{_MARKS[planned.change]} {planned.name}: {_becomes(planned)}{_spoken(planned, wanted)}")
        if planned.change == "unchanged":
            continue
        lowered = {part.removeprefix("/") for part in planned.lowered}
        before = None if planned.before is None else planned.before.declaration
        for line in changes(before, planned.declaration or {}):
            mark = "!" if line.partition(":")[0] in lowered else " "
            print_line(f"  {mark} {line}{'  (guards less than before)' if mark == '!' else ''}")
    print_line(_sum(plan))


def _becomes(planned: _Planned) -> str:
    before = 0 if planned.before is None else planned.before.version
    match planned.change:
        case "new":
            return f"new, version {planned.version}"
        case "unchanged":
            return f"unchanged, version {planned.version}"
        case "again":
            return f"version {planned.version} again, instead of {before}"
        case _:
            return f"version {planned.version}, instead of {before}"


def _spoken(planned: _Planned, wanted: Wanted) -> str:
    """Say who is believed more than the sender, where somebody is."""
    speaker = (planned.declaration or {}).get("declared_by")
    if speaker == wanted.declarations[planned.name]["declared_by"]:
        return ""
    who = _SPEAKERS.get(str(speaker), "somebody")
    return f" ({who} declared it, which wins)"


def _sum(plan: _Plan) -> str:
    counts = {change: sum(one.change == change for one in plan.items) for change in ("new", "unchanged")}
    changed = len(plan.items) - sum(counts.values())
    lowered = sum(bool(one.lowered) for one in plan.items)
    less = f" {lowered} guarded less than before." if lowered else ""
    return f"{counts['new']} new, {changed} changed, {counts['unchanged']} unchanged.{less}"


def agree(question: str | None = None, otherwise: str = "Nothing was applied.") -> None:
    """Ask on a terminal. Raises where nobody is there to be asked, and where the answer is no."""
    if not is_anybody_there():
        ways = "to apply the plan, or --dry-run only to see it" if question is None else "to do it"
        raise click.UsageError(f"Nobody can be asked here: add --yes {ways}.")
    if not click.confirm(question or "Apply this?", err=True):
        raise NotTaken(otherwise)


def is_anybody_there() -> bool:
    """Say whether a question would reach a person."""
    return sys.stdin.isatty()
