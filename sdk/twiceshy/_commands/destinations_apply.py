"""`twiceshy destinations apply`: the destinations of a file, shown against those there are, then declared."""

from collections.abc import Sequence
from typing import Literal

import click
import msgspec

from twiceshy._commands.declarations import shown
from twiceshy._commands.destination_documents import Wanted, read_destinations, refused_by_service
from twiceshy._commands.parameters import in_path
from twiceshy._commands.plans import NotTaken, agree, planning
from twiceshy._commands.service import Refused, Service, of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._transports.base import Request
from twiceshy_contract.destination_files import Flaw
from twiceshy_contract.destinations import Destination, DestinationCheck, DestinationList, DestinationView
from twiceshy_contract.refusals import steps_of

_MARKS = {"new": "+", "changed": "~", "unchanged": "="}
Change = Literal["new", "changed", "unchanged"]


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one destination: the lines that say so, and the version that it has then."""

    name: str
    change: Change
    lines: tuple[str, ...] = ()
    version: int | None = None


class Plan(msgspec.Struct, frozen=True):
    """What becomes of all of them."""

    items: tuple[Planned, ...]


@click.command()
@click.argument("file", metavar="FILE")
@planning
@with_json
@of_service
def apply(*, file: str, dry_run: bool, yes: bool, as_json: bool, url: str | None, token: str | None) -> None:
    """Declare all destinations of FILE (YAML or JSON; - for standard input), after showing what changes.

    What is said of a destination is the whole of it: what is left out has its default. Destinations that are not in
    FILE stay as they are. Secrets are named, and read by whoever sends.

    \b
    destinations:
      mail:
        kind: smtp
        host: smtp.example.com
        sender: Bookings <bookings@example.com>
        username: bookings
        password: env:TWICESHY_SECRET_MAIL
      orders:
        kind: webhook
        url: https://shop.example.com/hooks
        secrets: [env:TWICESHY_SECRET_ORDERS]
    """  # noqa: D301 - click reads the control character
    if as_json and not (dry_run or yes):
        raise click.UsageError("--json asks nothing: add --dry-run to see the plan, or --yes to apply it.")
    wanted = read_destinations(file)
    service = Service(url, token)
    held, _ = service.ask(Request(method="GET", path="/v1/destinations"), DestinationList)
    plan = _planned(wanted, {it.name: it for it in held.items})
    changing = [it.name for it in plan.items if it.change != "unchanged"]
    _check(service, wanted, changing)
    if not as_json:
        _show(plan)
    if changing and not dry_run:
        if not yes:
            agree()
        versions = _declare(service, wanted, changing)
        plan = Plan(tuple(msgspec.structs.replace(it, version=versions.get(it.name, it.version)) for it in plan.items))
    if as_json:
        print_json(msgspec.json.encode(plan))
    elif dry_run:
        print_line("This is a dry run: nothing was applied.")
    elif changing:
        print_line("Applied.")


def _planned(wanted: Wanted, held: dict[str, DestinationView]) -> Plan:
    return Plan(tuple(_becomes(name, settings, held.get(name)) for name, settings in wanted.settings.items()))


def _becomes(name: str, settings: Destination, before: DestinationView | None) -> Planned:
    old = {} if before is None else msgspec.to_builtins(before.settings)
    new = msgspec.to_builtins(settings)
    lines = tuple(
        f"{part}: {shown(old.get(part))} → {shown(new.get(part))}"
        for part in dict.fromkeys([*new, *old])
        if old.get(part) != new.get(part) and (before is not None or shown(new[part]) != "-")
    )
    if before is None:
        return Planned(name=name, change="new", lines=lines)
    return Planned(name=name, change="changed" if lines else "unchanged", lines=lines, version=before.version)


def _check(service: Service, wanted: Wanted, names: Sequence[str]) -> None:
    """Ask whether the service would take them all. What it would not is named by its line."""
    flaws: list[tuple[str, Flaw]] = []
    for name in names:
        try:
            service.ask(_request(wanted, name, "?dry_run=true"), DestinationCheck)
        except Refused as refused:
            if not refused.errors:
                raise
            flaws += [(name, (steps_of(error.path), error.message)) for error in refused.errors]
    if flaws:
        raise refused_by_service(wanted, flaws)


def _declare(service: Service, wanted: Wanted, names: Sequence[str]) -> dict[str, int]:
    """Declare them one by one and return their versions. Raises NotTaken, which says how far that came."""
    versions: dict[str, int] = {}
    for name in names:
        try:
            declared, _ = service.ask(_request(wanted, name), DestinationView)
        except click.ClickException as error:
            done = f"Applied: {', '.join(versions)}." if versions else "Nothing before it was applied."
            raise NotTaken(
                f"{name} was not applied, or its answer did not come: {error.message}\n  {done} Not applied: "
                f"{', '.join(names[len(versions) :])}. Mend that and apply the file again: what is declared already "
                "stays as it is."
            ) from error
        versions[name] = declared.version
    return versions


def _request(wanted: Wanted, name: str, query: str = "") -> Request:
    body = msgspec.json.encode(wanted.settings[name])
    return Request(method="PUT", path=f"/v1/destinations/{in_path(name)}{query}", body=body)


def _show(plan: Plan) -> None:
    for it in plan.items:
        print_line(f"{_MARKS[it.change]} {it.name}: {it.change}")
        for line in it.lines:
            print_line(f"    {line}")
    counts = {change: sum(it.change == change for it in plan.items) for change in _MARKS}
    print_line(", ".join(f"{count} {change}" for change, count in counts.items()) + ".")
