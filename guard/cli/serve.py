"""`twiceshy serve`: the guard as a process."""

import asyncio
import logging
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
import uvicorn

from guard import logs
from guard.app import app, stop_waiting
from guard.cli.migrate import DATABASE_OPTION, said_plainly
from guard.cli.protocol import OnePieceProtocol
from guard.cli.variables import refuse_unknown_variables
from guard.collector import spare_the_collector
from guard.preparation import prepare
from guard.settings import (
    DEFAULT_HOST,
    DEFAULT_PORT,
    Settings,
    SettingsRefused,
    approvers_of,
    inbound_secrets_of,
    tokens_of,
)
from guard.web.front import Front
from outbox_relay.beside import declared_beside, relay_beside
from outbox_relay.command import (
    ALLOW_OPTION,
    DESTINATIONS_OPTION,
    DRAIN_OPTION,
    destinations_said,
    end_at_once,
    networks_said,
)
from outbox_relay.reaching import opener, reaching_with
from outbox_relay.settings import RelaySettings

GRACE_SECONDS: Final = 10
"""How long a service that is asked to stop waits for its last requests."""


class _Announcing(uvicorn.Server):
    """Says that it serves once it does, and lets nobody wait once it is to stop."""

    def __init__(self, config: uvicorn.Config, served: Front, announcement: str, *, relays: bool) -> None:
        super().__init__(config)
        self._served = served
        self._announcement = announcement
        self._relays = relays

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order, and what relays at once where it is asked a second time: it may wait for a slow receiver."""
        if self._relays and self.should_exit:
            end_at_once()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and say so."""
        await super().startup(sockets)
        if self.started:
            click.echo(self._announcement)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer who waits, then wait for the last requests."""
        stop_waiting(self._served)
        await super().shutdown(sockets)


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
    "--log",
    default="requests",
    show_default=True,
    envvar="TWICESHY_LOG",
    show_envvar=True,
    type=click.Choice(["requests", "problems"]),
    help="Log one line a request, or only what goes wrong.",
)
@click.option("--with-relay", is_flag=True, help="Deliver what is staged from this process too.")
@DESTINATIONS_OPTION
@ALLOW_OPTION
@DRAIN_OPTION
def serve(
    *, log: str, with_relay: bool, destinations: Path | None, allow: str, drain_seconds: float | None, **said: Any
) -> None:
    """Serve the guard.

    A SQLite file is made and brought up to date by itself; PostgreSQL is brought up to date by `migrate`.
    """
    refuse_unknown_variables()
    open_sink = opener(networks_said(allow))
    declared = destinations_said(destinations)
    try:
        settings = _settings(**said)
    except SettingsRefused as error:
        raise click.UsageError(str(error)) from error
    with said_plainly():
        described = asyncio.run(prepare(settings.database))
    if not described.is_durable:
        off = ", ".join(f"{name} is {value}" for name, value in described.durability.items())
        click.echo(f"Warning: a power cut may take back what was answered ({off}). Turn all of them on.", err=True)
    logs.write_to_stderr(logging.INFO if log == "requests" else logging.WARNING)
    spare_the_collector()
    listening = _listen(settings)
    bound_host, bound_port = listening.getsockname()[:2]
    shown = f"[{bound_host}]" if ":" in bound_host else bound_host
    relaying = RelaySettings(drain_seconds=drain_seconds)
    beside = relay_beside(open_sink, relaying, declared) if with_relay else declared_beside(declared)
    served = app(settings, reaching_with(open_sink), beside)
    relays = " and relays" if with_relay else ""
    announcement = f"Twiceshy serves http://{shown}:{bound_port} (API at /schema){relays}. Ctrl-C stops it."
    server = _Announcing(_config(served), served, announcement, relays=with_relay)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
    if not server.started:
        sys.exit(1)


def _config(served: Front) -> uvicorn.Config:
    return uvicorn.Config(
        served,
        http=OnePieceProtocol,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def _settings(*, tokens: str, approvers: str, inbound_secrets: str, **said: Any) -> Settings:
    """Read the settings of the command line. Raises SettingsRefused."""
    return Settings(
        tokens=tokens_of(tokens),
        approvers=approvers_of(approvers),
        inbound_secrets=inbound_secrets_of(inbound_secrets),
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
