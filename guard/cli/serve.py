"""`twiceshy serve`: the guard as a process."""

import asyncio
import socket
import sys
from typing import Final

import click
import structlog
import uvicorn
from litestar import Litestar

from guard.app import app, stop_waiting
from guard.cli.migrate import DATABASE_OPTION, said_plainly
from guard.settings import DEFAULT_HOST, DEFAULT_PORT, Settings, SettingsRefused, tokens_of
from guard.store.sql.engine import open_store
from guard.store.sql.schema import migrate

GRACE_SECONDS: Final = 10
"""How long a service that is asked to stop waits for its last requests."""


class _Announcing(uvicorn.Server):
    """Says that it serves once it does, and lets nobody wait once it is to stop."""

    def __init__(self, config: uvicorn.Config, served: Litestar, announcement: str) -> None:
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
@click.option("--host", default=DEFAULT_HOST, show_default=True, envvar="TWICESHY_HOST", help="Address to bind to.")
@click.option(
    "--port", default=DEFAULT_PORT, show_default=True, envvar="TWICESHY_PORT", type=click.IntRange(0, 65535),
    help="Port to bind to; 0 takes a free one.",
)  # fmt: skip
@DATABASE_OPTION
@click.option("--tokens", default="", envvar="TWICESHY_TOKENS", help="Bearer tokens, separated by commas.")
def serve(host: str, port: int, database: str, tokens: str) -> None:
    """Serve the guard.

    A SQLite file is made and brought up to date by itself; PostgreSQL is brought up to date by `migrate`.
    """
    try:
        settings = Settings(database=database, host=host, port=port, tokens=tokens_of(tokens))
    except SettingsRefused as error:
        raise click.UsageError(str(error)) from error
    with said_plainly():
        asyncio.run(_prepare(settings))
    _log_to_stderr()
    listening = _listen(settings)
    bound_host, bound_port = listening.getsockname()[:2]
    shown = f"[{bound_host}]" if ":" in bound_host else bound_host
    served = app(settings)
    config = uvicorn.Config(
        served,
        http="httptools",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
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


async def _prepare(settings: Settings) -> None:
    """Bring a SQLite file up to date, and open the database once, so that what is wrong is said in one line."""
    if settings.database.startswith("sqlite"):
        await migrate(settings.database)
    store = await open_store(settings.database)
    await store.close()


def _log_to_stderr() -> None:
    """Write one JSON line an event, with traces but without the values of variables."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
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
