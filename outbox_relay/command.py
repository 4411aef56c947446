"""`twiceshy relay`: the relay as a process of its own."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

import click
import msgspec
from prometheus_client import start_http_server

from guard import logs
from guard.collector import spare_the_collector
from guard.ports.relay import RelayStore
from guard.ports.store import StoreUnavailable
from guard.settings import DEFAULT_DATABASE
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.engine import open_store
from guard.store.sql.refusals import AddressRefused, DatabaseRefused
from outbox_relay.declared import FileRefused, declare_all, destinations_in
from outbox_relay.networks import VARIABLE, Networks, networks_of
from outbox_relay.reaching import opener
from outbox_relay.relay import Relay
from outbox_relay.settings import DEFAULT_CONCURRENCY, DEFAULT_HISTORY_DAYS, RelaySettings
from twiceshy_contract.destinations import Destination
from twiceshy_contract.variables import refusal_of_unknown

_ENDED_AT_ONCE: Final = 1


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for, checked."""

    database: str
    settings: RelaySettings
    networks: Networks
    destinations: Mapping[str, Destination]
    metrics: tuple[str, int] | None
    once: bool


DESTINATIONS_OPTION = click.option(
    "--destinations",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file of destinations, as `destinations apply` takes it; they are declared first.",
)
ALLOW_OPTION = click.option(
    "--allow",
    default="",
    envvar=VARIABLE,
    show_envvar=True,
    help="Networks besides the public ones that messages may go into, separated by commas: 10.0.0.0/8,127.0.0.1/32.",
)

DRAIN_OPTION = click.option(
    "--drain-seconds",
    type=click.FloatRange(0, 3600),
    help="How long what is under way may take once the relay is asked to stop. Default: its time-out.",
)


@click.command()
@click.option(
    "--database",
    default=DEFAULT_DATABASE,
    envvar="TWICESHY_DATABASE",
    show_envvar=True,
    help="postgresql://USER:PASSWORD@HOST:PORT/NAME.",
)
@click.option(
    "--concurrency",
    default=DEFAULT_CONCURRENCY,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Messages under way at once, at all destinations together.",
)
@DESTINATIONS_OPTION
@ALLOW_OPTION
@click.option(
    "--history-days",
    default=DEFAULT_HISTORY_DAYS,
    show_default=True,
    type=click.IntRange(1, 3650),
    help="How long it is known what was delivered.",
)
@DRAIN_OPTION
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Port to serve Prometheus metrics on.")
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address to serve them on.")
@click.option("--once", is_flag=True, help="Deliver what is due now, and end.")
def relay(**said: Any) -> None:
    """Deliver what was staged, from a PostgreSQL database.

    Any number of relays may work on one database. Over a SQLite file, `twiceshy serve --with-relay` delivers.
    """
    refusal = refusal_of_unknown(os.environ)
    if refusal is not None:
        raise click.UsageError(refusal)
    plan = _plan(**said)
    logs.write_to_stderr(logging.INFO)
    spare_the_collector()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_relay(plan))
    except DatabaseRefused as error:
        raise click.ClickException(str(error)) from error
    except StoreUnavailable as error:
        raise click.ClickException(f"{str(error).rstrip('.')}. Check --database, and that the server runs.") from error


def networks_said(allow: str) -> Networks:
    """Read `--allow`. Raises click.UsageError."""
    try:
        return networks_of(allow)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def destinations_said(path: Path | None) -> Mapping[str, Destination]:
    """Read `--destinations`. Raises click.UsageError."""
    try:
        return {} if path is None else destinations_in(path)
    except FileRefused as error:
        raise click.UsageError(f"{error}\n  Nothing was declared.") from error


def _plan(
    *, database: str, destinations: Path | None, allow: str, metrics_host: str, metrics_port: int | None, **said: Any
) -> _Plan:
    """Check what the command line asks for. Raises click.UsageError."""
    _refuse_file(database)
    once = bool(said.pop("once"))
    return _Plan(
        database=database,
        settings=RelaySettings(**said),
        networks=networks_said(allow),
        destinations=destinations_said(destinations),
        metrics=None if metrics_port is None else (metrics_host, metrics_port),
        once=once,
    )


def _refuse_file(database: str) -> None:
    try:
        address = parse(database)
    except AddressRefused as error:
        raise click.UsageError(str(error)) from error
    if isinstance(address, FileAddress):
        raise click.UsageError(
            f"{address.shown} is a SQLite file, where two busy processes keep each other waiting. Run `twiceshy serve "
            f"--with-relay --database {address.shown}`, or relay from PostgreSQL: --database postgresql://…"
        )


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _relay(plan: _Plan) -> None:
    store = await open_store(plan.database)
    try:
        await declare_all(store.destinations, plan.destinations)
        at_work = Relay(store.relay, opener(plan.networks), plan.settings)
        if plan.metrics is not None:
            _serve_metrics(at_work, *plan.metrics)
        if plan.once:
            await _once(at_work, store.relay)
            return
        _stop_on_signals(at_work)
        click.echo(f"Twiceshy relays from {parse(plan.database).shown}. Ctrl-C stops it.")
        await at_work.run()
    finally:
        await store.close()
    click.echo("Stopped.", err=True)


async def _once(at_work: Relay, store: RelayStore) -> None:
    _stop_on_signals(at_work)
    try:
        await at_work.run_once()
    finally:
        await at_work.close()
    delivered, failed = at_work.measures.summary()
    click.echo(f"{delivered} delivered, {failed} tries that did not deliver.")
    left = sum(backlog.pending for backlog in (await store.backlogs()).values())
    if left:
        click.echo(f"{left} left: not due yet, or held back by a pause, a rate, a breaker, or their lane.", err=True)


def _serve_metrics(at_work: Relay, host: str, port: int) -> None:
    try:
        start_http_server(port, addr=host, registry=at_work.measures.registry)
    except OSError as error:
        raise click.ClickException(
            f"Cannot bind to {host}:{port}: {error.strerror or error}. Name another with --metrics-port."
        ) from error


def end_at_once() -> NoReturn:
    """End the process without waiting for what is under way."""
    click.echo("Ended at once: what was under way is taken back when its lease has run out.", err=True)
    os._exit(_ENDED_AT_ONCE)


def _stop_on_signals(at_work: Relay) -> None:
    """Let the first signal end the relay in order, and a second one at once."""
    loop = asyncio.get_running_loop()
    asked: list[int] = []

    def stop(number: int) -> None:
        if asked:
            end_at_once()
        asked.append(number)
        at_work.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
