"""`twiceshy serve`: the guard as a process."""

import asyncio
import gc
import logging
import socket
import sys
from typing import Final

import click
import uvicorn

from guard import logs
from guard.app import app, stop_waiting
from guard.cli.migrate import DATABASE_OPTION, said_plainly
from guard.cli.protocol import OnePieceProtocol
from guard.cli.variables import refuse_unknown_variables
from guard.preparation import prepare
from guard.settings import DEFAULT_HOST, DEFAULT_PORT, Settings, SettingsRefused, approvers_of, tokens_of
from guard.web.front import Front

GRACE_SECONDS: Final = 10
"""How long a service that is asked to stop waits for its last requests."""


class _Announcing(uvicorn.Server):
    """Says that it serves once it does, and lets nobody wait once it is to stop."""

    def __init__(self, config: uvicorn.Config, served: Front, announcement: str) -> None:
        super().__init__(config)
        self._served = served
        self._announcement = announcement

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
    "--log",
    default="requests",
    show_default=True,
    envvar="TWICESHY_LOG",
    show_envvar=True,
    type=click.Choice(["requests", "problems"]),
    help="Log one line a request, or only what goes wrong.",
)
def serve(*, host: str, port: int, database: str, tokens: str, approvers: str, log: str) -> None:
    """Serve the guard.

    A SQLite file is made and brought up to date by itself; PostgreSQL is brought up to date by `migrate`.
    """
    refuse_unknown_variables()
    try:
        settings = Settings(
            database=database, host=host, port=port, tokens=tokens_of(tokens), approvers=approvers_of(approvers)
        )
    except SettingsRefused as error:
        raise click.UsageError(str(error)) from error
    with said_plainly():
        described = asyncio.run(prepare(settings.database))
    if not described.is_durable:
        off = ", ".join(f"{name} is {value}" for name, value in described.durability.items())
        click.echo(f"Warning: a power cut may take back what was answered ({off}). Turn all of them on.", err=True)
    logs.write_to_stderr(logging.INFO if log == "requests" else logging.WARNING)
    _spare_the_collector()
    listening = _listen(settings)
    bound_host, bound_port = listening.getsockname()[:2]
    shown = f"[{bound_host}]" if ":" in bound_host else bound_host
    served = app(settings)
    config = uvicorn.Config(
        served,
        http=OnePieceProtocol,
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Announcing(
        config, served, f"Twiceshy serves http://{shown}:{bound_port} (API at /schema). Ctrl-C stops it."
    )
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
    if not server.started:
        sys.exit(1)


def _spare_the_collector() -> None:
    """Let Python's collector pass over what lives as long as the process, and look for cycles less often.

    A request leaves none behind; by default every 700 objects are a reason to look.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise click.ClickException(
            f"Cannot bind to {settings.host}:{settings.port}: {error.strerror or error}. "
            "Name another with --port or --host."
        ) from error
