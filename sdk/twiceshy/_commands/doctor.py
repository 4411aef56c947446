"""`twiceshy doctor`: whether a guarded call would work from here, and if not, what to do."""

import os
import time
from importlib import metadata
from typing import Final, Literal

import click
import msgspec

from twiceshy._commands import checks
from twiceshy._commands.checks import Finding
from twiceshy._commands.service import Refused, Service, Strange, Unreached, of_service, print_json
from twiceshy._commands.tables import print_line
from twiceshy._settings import settle
from twiceshy._spool import spool_folder
from twiceshy._spool_list import look
from twiceshy._transports.base import Request
from twiceshy.exceptions import SetupError
from twiceshy_contract.status import DatabaseStatus, StatusView
from twiceshy_contract.variables import VARIABLES

GROUP: Final = "twiceshy.doctor"
_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_REFUSED: Final = {"unauthorized": "token", "store-unavailable": "database", "not-found": "versions"}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The service is alive."""

    status: Literal["live"]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All findings; `ok` says that no check failed."""

    ok: bool
    checks: list[Finding]


@click.command()
@click.option("--database", metavar="URL", help="Look at this database itself, and at no service.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@of_service
@click.pass_context
def doctor(context: click.Context, *, database: str | None, as_json: bool, url: str | None, token: str | None) -> None:
    """Check settings, service, versions, clock, database, doubt and spool; say what to do about each.

    The exit code is 1 if a check failed; a warning is none.
    """
    findings = [_settings(url, token)]
    if database is not None:
        findings += _itself(database)
    elif findings[0].level == "ok":
        findings += _through(Service(url, token), is_token_given=bool(token))
    findings.append(_spool())
    report = Report(ok=all(finding.level != "fail" for finding in findings), checks=findings)
    if as_json:
        print_json(msgspec.json.encode(report))
    else:
        _print(findings)
    context.exit(0 if report.ok else 1)


def _settings(url: str | None, token: str | None) -> Finding:
    """Judge the variables by their names, and where the service is said to be."""
    try:
        settle(url, token)
    except SetupError as error:
        return Finding(check="settings", level="fail", found=str(error))
    return checks.settings([variable.name for variable in VARIABLES if os.environ.get(variable.name)])


def _through(service: Service, *, is_token_given: bool) -> list[Finding]:
    """Ask a service for its health, then for its status."""
    began = time.perf_counter()
    try:
        service.ask(Request(method="GET", path="/health/live"), Health)
    except (Unreached, Strange, Refused) as error:
        advice = "`twiceshy doctor --database URL` looks at the database itself."
        return [Finding(check="service", level="fail", found=error.message, advice=advice)]
    alive = checks.service(service.url, time.perf_counter() - began)
    before = time.time()
    try:
        status, _ = service.ask(Request(method="GET", path="/v1/status"), StatusView)
    except (Unreached, Strange, Refused) as error:
        return [alive, _no_status(error)]
    after = time.time()
    return [
        alive,
        checks.token(is_given=is_token_given),
        checks.versions(metadata.version("twiceshy"), status),
        checks.clock(status.now, before, after),
        *checks.database(status.database),
        checks.doubt(status.effects),
        checks.outbox(status.outbox),
        *([] if status.redis is None else [checks.redis(status.redis)]),
    ]


def _no_status(error: Unreached | Strange | Refused) -> Finding:
    check = _REFUSED.get(error.code, "status") if isinstance(error, Refused) else "status"
    advice = (
        "The service is older than this command: install the same version of both." if check == "versions" else None
    )
    return Finding(check=check, level="fail", found=error.message, advice=advice)


def _itself(database: str) -> list[Finding]:
    """Look at a database through what the server's distribution offers for it."""
    point = next(iter(metadata.entry_points(group=GROUP)), None)
    if point is None:
        found = "the server, which knows databases, is not installed"
        return [Finding(check="database", level="fail", found=found, advice="`pip install twiceshy[server]`.")]
    try:
        examine = point.load()
        before = time.time()
        seen: DatabaseStatus = examine(database)
    except click.ClickException as error:
        return [Finding(check="database", level="fail", found=error.message)]
    except ImportError as error:
        advice = "Reinstall what provides it: `pip install --force-reinstall twiceshy-server`."
        return [
            Finding(check="database", level="fail", found=f"{point.value} cannot be loaded ({error})", advice=advice)
        ]
    after = time.time()
    return [
        checks.clock(seen.now, before, after),
        *checks.database(seen.database),
        checks.doubt(seen.effects),
        checks.outbox(seen.outbox),
    ]


def _spool() -> Finding:
    """Count the outcomes that wait in the spool of this folder; nothing is taken over or sent."""
    folder = spool_folder()
    if folder is None:
        return checks.spool(None, 0)
    try:
        waiting = len(look(folder))
    except OSError as error:
        return Finding(check="spool", level="fail", found=f"{folder} cannot be read ({error.strerror or error})")
    return checks.spool(str(folder), waiting)


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        level = click.style(f"{finding.level:<4}", fg=_COLOURS[finding.level])
        told = finding.found if finding.advice is None else f"{finding.found.rstrip('.')}. {finding.advice}"
        click.echo(f"{level}  {finding.check:<10}  ", nl=False)
        print_line(" ".join(told.split()))
