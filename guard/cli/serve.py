"""`twiceshy serve`: the guard as a process."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from guard import logs
from guard.accelerator import address
from guard.app import app
from guard.cli.migrate import DATABASE_OPTION, said_plainly
from guard.cli.serving import Serving
from guard.cli.variables import refuse_unknown_variables
from guard.cli.worker import Plan
from guard.cli.workers import Workers
from guard.collector import spare_the_collector
from guard.core.effects import SECOND
from guard.core.retention import RECALLED_AT_MOST
from guard.preparation import prepare
from guard.service.measures import METERS_PREFIX, METERS_VARIABLE
from guard.settings import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    DEFAULT_REDIS_SECONDS,
    Settings,
    SettingsRefused,
    approvers_of,
    inbound_secrets_of,
    tokens_of,
)
from guard.store.sql.engine import open_store
from outbox_relay.beside import declared_beside, relay_beside
from outbox_relay.command import (
    ALLOW_OPTION,
    DESTINATIONS_OPTION,
    DRAIN_OPTION,
    destinations_said,
    networks_said,
)
from outbox_relay.declared import declare_all
from outbox_relay.reaching import opener, reaching_with
from outbox_relay.settings import RelaySettings
from twiceshy_contract.destinations import Destination


@click.command()
@click.option(
    "--host",
    default=DEFAULT_HOST,
    show_default=True,
    envvar="TWICESHY_HOST",
    show_envvar=True,
    help="Address to bind to.",
)
@click.option(
    "--port",
    default=DEFAULT_PORT,
    show_default=True,
    envvar="TWICESHY_PORT",
    show_envvar=True,
    type=click.IntRange(0, 65535),
    help="Port to bind to; 0 takes a free one.",
)
@DATABASE_OPTION
@click.option(
    "--tokens", default="", envvar="TWICESHY_TOKENS", show_envvar=True, help="Bearer tokens, separated by commas."
)
@click.option(
    "--approvers",
    default="",
    envvar="TWICESHY_APPROVERS",
    show_envvar=True,
    help="Who alone may decide approvals: name:token, separated by commas.",
)
@click.option(
    "--inbound-secrets",
    default="",
    envvar="TWICESHY_INBOUND_SECRETS",
    show_envvar=True,
    help="Secrets that sign mail which comes in, separated by commas.",
)
@click.option(
    "--redis",
    default="",
    metavar="URL",
    envvar="TWICESHY_REDIS",
    show_envvar=True,
    help="Redis or Valkey that makes answers arrive sooner: redis://…, rediss://…, unix://…, redis+cluster://…, "
    "redis+sentinel://….",
)
@click.option(
    "--redis-seconds",
    default=DEFAULT_REDIS_SECONDS,
    show_default=True,
    envvar="TWICESHY_REDIS_SECONDS",
    show_envvar=True,
    type=click.IntRange(1, RECALLED_AT_MOST // SECOND),
    help="How long after its end a final effect is found in Redis.",
)
@click.option(
    "--log",
    default="requests",
    show_default=True,
    envvar="TWICESHY_LOG",
    show_envvar=True,
    type=click.Choice(["requests", "problems"]),
    help="Log one line a request, or only what goes wrong.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    envvar="TWICESHY_WORKERS",
    show_envvar=True,
    type=click.IntRange(1, 64),
    help="Processes that serve the port together, on PostgreSQL.",
)
@click.option(
    "--linger-seconds",
    default=0.0,
    show_default=True,
    envvar="TWICESHY_LINGER_SECONDS",
    show_envvar=True,
    type=click.FloatRange(0, 300),
    help="How long it serves on after it is asked to stop, while /health/ready says 503: for a load balancer.",
)
@click.option("--with-relay", is_flag=True, help="Deliver what is staged from this process too.")
@DESTINATIONS_OPTION
@ALLOW_OPTION
@DRAIN_OPTION
def serve(
    *,
    log: str,
    workers: int,
    with_relay: bool,
    destinations: Path | None,
    allow: str,
    drain_seconds: float | None,
    **said: Any,
) -> None:
    """Serve the guard.

    A SQLite file is made and brought up to date by itself; PostgreSQL is brought up to date by `migrate`.
    """
    refuse_unknown_variables()
    open_sink = opener(networks_said(allow))
    declared = destinations_said(destinations)
    linger_seconds: float = said.pop("linger_seconds")
    try:
        settings = _settings(**said)
    except SettingsRefused as error:
        raise click.UsageError(str(error)) from error
    _check_workers(workers, settings.database, with_relay=with_relay)
    log_level = logging.INFO if log == "requests" else logging.WARNING
    with said_plainly():
        described = asyncio.run(prepare(settings.database))
    if not described.is_durable:
        off = ", ".join(f"{name} is {value}" for name, value in described.durability.items())
        click.echo(f"Warning: a power cut may take back what was answered ({off}). Turn all of them on.", err=True)
    listening = _listen(settings)
    relays = " and relays" if with_relay else ""
    announcement = f"Twiceshy serves {_address(listening)} (API at /schema){relays}. Ctrl-C stops it."
    logs.write_to_stderr(log_level)
    if workers > 1:
        with said_plainly():
            asyncio.run(_declare(settings.database, declared))
        plan = Plan(settings=settings, allow=allow, log_level=log_level, linger_seconds=linger_seconds)
        _run_workers(plan, workers, listening, announcement)
        return
    spare_the_collector()
    relaying = RelaySettings(drain_seconds=drain_seconds)
    beside = relay_beside(open_sink, relaying, declared) if with_relay else declared_beside(declared)
    served = app(settings, reaching_with(open_sink), beside)
    server = Serving(served, listening, partial(click.echo, announcement))
    server.linger_seconds, server.relays = linger_seconds, with_relay
    try:
        server.run()
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
    if not server.started:
        sys.exit(1)


def _run_workers(plan: Plan, count: int, listening: socket.socket, announcement: str) -> None:
    """Serve with several processes, which add their meters up in a folder. Raises click.ClickException."""
    with TemporaryDirectory(prefix=METERS_PREFIX) as folder:
        os.environ[METERS_VARIABLE] = folder
        workers = Workers(plan, listening, count, partial(click.echo, announcement))
        workers.run()
    if workers.failure is not None:
        raise click.ClickException(workers.failure)
    if workers.was_interrupted:
        click.echo("Stopped.", err=True)


async def _declare(database: str, declared: Mapping[str, Destination]) -> None:
    """Declare the destinations of a file once, for all workers: one that is started later would take changes back."""
    if declared:
        store = await open_store(database)
        try:
            await declare_all(store.destinations, declared)
        finally:
            await store.close()


def _check_workers(workers: int, database: str, *, with_relay: bool) -> None:
    """Refuse several workers where they cannot be. Raises click.UsageError."""
    if workers > 1 and database.startswith("sqlite"):
        raise click.UsageError(
            f"A SQLite file has one writer, so {workers} workers would only wait for each other. Leave --workers out, "
            "or name a PostgreSQL database with --database."
        )
    if workers > 1 and with_relay:
        raise click.UsageError(
            "With several workers the relay is a process of its own, which is watched and restarted by itself: "
            "leave --with-relay out, and run `twiceshy relay` beside."
        )


def _address(listening: socket.socket) -> str:
    """Write the address that a socket listens at."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _settings(*, tokens: str, approvers: str, inbound_secrets: str, redis: str, **said: Any) -> Settings:
    """Read the settings of the command line. Raises SettingsRefused."""
    if redis:
        try:
            address.check(redis)
        except address.AddressRefused as error:
            raise SettingsRefused(str(error)) from error
    return Settings(
        tokens=tokens_of(tokens),
        approvers=approvers_of(approvers),
        inbound_secrets=inbound_secrets_of(inbound_secrets),
        redis=redis,
        **said,
    )


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise click.ClickException(
            f"Cannot bind to {settings.host}:{settings.port}: {error.strerror or error}. "
            "Name another with --port or --host."
        ) from error
