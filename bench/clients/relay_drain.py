"""The relay over a queue that was filled: `python -m bench.clients.relay_drain DATABASE_URL LOAD [WEBHOOK_URL]`.

LOAD is `free` (no order), `lanes` (500 of them) or `poisoned` (the same, beside one lane of 50,000 behind a message
that cannot be delivered). With a WEBHOOK_URL messages are sent there, 64 in flight; else the sink does nothing.
"""

import asyncio
import base64
import os
import secrets
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

import asyncpg
import uvloop

from bench.draining import MESSAGE_BYTES, drained, serve_drains
from guard.collector import spare_the_collector
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.engine import open_store
from outbox_relay.networks import networks_of
from outbox_relay.relay import Relay
from outbox_relay.secrets import secret_reader
from outbox_relay.settings import RelaySettings
from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Sink
from outbox_relay.sinks.opening import open_sink
from twiceshy_contract.destinations import Destination, LogDestination, WebhookDestination

_LANES: Final = 500
_POISONED: Final = 50_000
_IN_FLIGHT: Final = 64
_AT_ONCE: Final = 1_000
_COLUMNS: Final = (
    "message, epoch, tenant, effect, destination_id, destination, lane, content_type, headers, body, staged_at, state, "
    "attempts, in_lane, due_at"
)
_IS_FILLED: Final = "select exists (select 1 from outbox where state <> 4 and coalesce(lane, '') <> 'poisoned')"
Execute = Callable[[str], Awaitable[object]]


class _Nothing:
    """A sink that has delivered everything."""

    capability: Literal["deduplicates", "sends_blindly"] = "deduplicates"

    async def send(self, outgoing: Outgoing) -> Delivered:
        """Say that it is delivered."""
        del outgoing
        return _DELIVERED

    async def check(self) -> Reached:
        """Say that all is well."""
        return Reached(ok=True, detail="")

    async def close(self) -> None:
        """Have nothing to give back."""


_DELIVERED: Final = Delivered(receipt="ok")


async def main(url: str, load: str, webhook: str | None) -> None:
    """Take turns; each fills the queue with messages of one effect that has succeeded, and drains it."""
    store = await open_store(url)
    settings = _settings(webhook)
    record, _ = await store.destinations.declare(_TENANT, "bench", settings)
    execute, fetch = await _connection(url)
    destination = record.place.id
    if load == "poisoned":
        await execute(_statement(url, destination, _POISONED, "'poisoned'"))
        await execute("update outbox set state = 4, note = 'poison' where id = (select min(id) from outbox)")

    async def fill(messages: int) -> None:
        lane = "null" if load == "free" else f"'lane-' || (n % {_LANES})"
        await execute(_statement(url, destination, messages, lane))

    async def is_filled() -> bool:
        return await fetch(_IS_FILLED)

    def opened(name: str, declared: Destination) -> Sink:
        if webhook is None:
            return _Nothing()
        return open_sink(name, declared, secret_reader(os.environ), networks_of("127.0.0.1/32"), Path())

    async def drain(_messages: int) -> None:
        in_flight = _IN_FLIGHT if webhook else _AT_ONCE
        relay = Relay(store.relay, opened, RelaySettings(concurrency=in_flight))
        running = asyncio.create_task(relay.run())
        await drained(is_filled)
        relay.stop()
        await running

    await serve_drains(fill, drain, {})


_TENANT: Final[Any] = 1


def _settings(webhook: str | None) -> Destination:
    if webhook is None:
        return LogDestination(concurrency=_AT_ONCE)
    os.environ["TWICESHY_SECRET_BENCH"] = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
    return WebhookDestination(url=webhook, secrets=("env:TWICESHY_SECRET_BENCH",), concurrency=_IN_FLIGHT)


def _statement(url: str, destination: int, messages: int, lane: str) -> str:
    """Return what fills the queue on one of the databases."""
    key = "(select key from effects limit 1)"
    is_file = isinstance(parse(url), FileAddress)
    now = "(unixepoch() * 1000000)" if is_file else "(extract(epoch from now()) * 1000000)::bigint"
    numbers = (
        f"(with recursive n(n) as (select 1 union all select n + 1 from n where n < {messages}) select n from n)"
        if is_file
        else f"generate_series(1, {messages}) n"
    )
    uuid = "randomblob(16)" if is_file else "gen_random_uuid()"
    body = f"cast('{'x' * MESSAGE_BYTES}' as blob)" if is_file else f"'{'x' * MESSAGE_BYTES}'::bytea"
    headers = "cast('{}' as blob)" if is_file else "'{}'::bytea"
    is_in_lane = "false" if lane == "null" else "true"
    return (
        f"insert into outbox ({_COLUMNS}) select {uuid}, 1, 1, {key}, {destination}, 'bench', {lane}, 'text/plain', "
        f"{headers}, {body}, {now}, 1, 0, {is_in_lane}, {now} from {numbers}"
    )


async def _connection(url: str) -> tuple[Execute, Callable[[str], Awaitable[bool]]]:
    """Open a connection of its own; return what executes a statement, and what answers a question."""
    address = parse(url)
    if isinstance(address, FileAddress):
        held = sqlite3.connect(address.path, timeout=30, isolation_level=None, check_same_thread=False)

        async def execute(statement: str) -> object:
            return await asyncio.to_thread(lambda: held.execute(statement).fetchall())

        async def fetch(question: str) -> bool:
            return bool((await asyncio.to_thread(lambda: held.execute(question).fetchone()))[0])

        return execute, fetch
    connection = await asyncpg.connect(url)

    async def fetch_value(question: str) -> bool:
        return bool(await connection.fetchval(question))

    return connection.execute, fetch_value


if __name__ == "__main__":
    spare_the_collector()  # as `twiceshy relay` does
    uvloop.run(main(sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None))
