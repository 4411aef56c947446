"""What must not slow a relay on PostgreSQL: old snapshots, lanes that stand still, receivers that hold what they get.

Nothing is timed: the server counts the rows that were read, and tells which transactions are open.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg
import pytest

from guard.ports.store import Store
from guard.store.sql.engine import open_store
from outbox_relay.networks import networks_of
from outbox_relay.reaching import opener
from outbox_relay.relay import Relay
from outbox_relay.sinks.base import Outgoing, Permanent, Result
from tests.contract.given_outbox import staged
from tests.contract.plans import do
from tests.integration.relaying import (
    OK,
    SOON,
    Liar,
    declared,
    delivered,
    relay_of,
    running,
    stage,
    stand,
    until,
)
from tests.integration.sinks.webhook_receivers import OK as OVER_HTTP
from tests.integration.sinks.webhook_receivers import Visit, receiver
from twiceshy_contract.destinations import LogDestination, WebhookDestination

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("backend", ["postgresql"], indirect=True)]
SOAK: Final = int(os.environ.get("SOAK", "0"))
DELIVERED: Final = SOAK or 2_000
POISONED: Final = 5 * SOAK or 5_000
HELD: Final = 8


_AT_ONE_MOMENT: Final = "UPDATE outbox SET due_at = (SELECT min(due_at) FROM outbox)"


@pytest.mark.parametrize("change", ["SELECT", _AT_ONE_MOMENT], ids=["due one after another", "due at one moment"])
async def test_an_old_snapshot_does_not_let_a_relay_read_again_and_again_what_it_has_delivered(
    database_url: str, change: str
) -> None:
    async with opened(database_url) as store:
        there = await declared(store, settings=LogDestination(concurrency=HELD))
        for number in range(DELIVERED // 100):
            await staged(store, there, 100, number=number)
    await do(database_url, change)
    reader = await asyncpg.connect(database_url)
    try:
        async with reader.transaction(isolation="repeatable_read"):
            await reader.fetch("SELECT FROM outbox")
            before = await read_so_far(database_url, besides=1)
            async with opened(database_url) as store:
                sink = Liar()
                await relay_of(store.relay, sink).run_once()
            read = await read_so_far(database_url, besides=1) - before
    finally:
        await reader.close()
    everything_each_time = DELIVERED**2 // (2 * HELD)
    assert len(set(sink.bodies)) == len(sink.bodies) == DELIVERED
    assert read < everything_each_time // 3


async def test_behind_a_message_that_cannot_be_delivered_a_lane_of_any_length_is_no_work_for_others(
    database_url: str,
) -> None:
    async with opened(database_url) as store:
        there = await declared(store)
        await stage(store, there, ["poison"], lane="poisoned")
        await lengthen(database_url, "poisoned", POISONED)
        for lane in "abcde":
            await stage(store, there, [f"{lane}{number:02}" for number in range(20)], lane=lane)
    before = await read_so_far(database_url)

    def answer(outgoing: Outgoing) -> Result:
        return Permanent(why="no such thing") if outgoing.lane == "poisoned" else OK

    async with opened(database_url) as store:
        sink = Liar(answer)
        await relay_of(store.relay, sink).run_once()
        found, (worst, *_) = await delivered(store), await stand(store, "dead")
    read = await read_so_far(database_url) - before
    assert found == sorted(body for body in sink.bodies if body != "poison")
    assert found == [f"{lane}{number:02}" for lane in "abcde" for number in range(20)]
    assert worst == ("poison", "dead", 1, "no such thing")
    assert read < 5_000, "no claim walks along the lane, however long it is"


async def test_while_a_slow_receiver_holds_all_sends_no_transaction_is_open(store: Store, database_url: str) -> None:
    held, may_go = asyncio.Event(), asyncio.Event()

    async def hold(visit: Visit) -> None:
        if len(there.requests) == HELD:
            held.set()
        await may_go.wait()
        await visit.say(OVER_HTTP)

    async with receiver(hold) as there:
        settings = WebhookDestination(url=there.url(), concurrency=HELD, timeout_seconds=60)
        await stage(store, await declared(store, settings=settings), [f"{number:02}" for number in range(12)])
        relay = Relay(store.relay, opener(networks_of("127.0.0.1/32"), {}), SOON)
        observer = await asyncpg.connect(database_url)
        try:
            async with running(relay):
                await asyncio.wait_for(held.wait(), 30)
                since = await observer.fetchval("SELECT clock_timestamp()")
                await until(lambda: none_is_open(observer, since))
                assert len(there.requests) == HELD
                may_go.set()
                await until(lambda: are_delivered(store, 12))
        finally:
            await observer.close()


async def none_is_open(observer: asyncpg.Connection, since: object) -> bool:
    """Say whether all transactions have ended that were open at some time; one that a send held would stay."""
    open_still = await observer.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend' AND xact_start <= $1",
        since,
    )
    idle = await observer.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
    )
    return (open_still, idle) == (0, 0)


async def are_delivered(store: Store, count: int) -> bool:
    return len(await delivered(store)) == count


async def lengthen(url: str, lane: str, count: int) -> None:
    """Let so many more messages wait in a lane, copies of the one that is there."""
    copied = "epoch, tenant, destination_id, destination, content_type, headers, body, staged_at, state, attempts"
    await do(
        url,
        f"INSERT INTO outbox (message, {copied}, lane, in_lane, due_at) SELECT gen_random_uuid(), {copied}, lane, "
        f"in_lane, staged_at FROM outbox, generate_series(1, {count}) WHERE lane = '{lane}'",
    )


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """Open a store, whose sessions tell what they have read when they end."""
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


async def read_so_far(url: str, besides: int = 0) -> int:
    """Return how many rows of the queue were read, in whatever order, once all other sessions have ended."""
    connection = await asyncpg.connect(url)

    async def are_gone() -> bool:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND backend_type = $1"
        return bool(await connection.fetchval(others, "client backend") == 1 + besides)

    try:
        await until(are_gone)
        by_index = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'outbox'"
        by_scan = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'outbox'"
        return int(await connection.fetchval(by_index)) + int(await connection.fetchval(by_scan))
    finally:
        await connection.close()
