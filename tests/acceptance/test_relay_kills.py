"""Relays and databases are killed while messages are delivered: none is lost, no lane is out of order.

What arrives twice carries the same identity, and is no more than what was under way. `SOAK=10000` is the full figure.
"""

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

import pytest

from guard.ports.store import Store
from guard.store.sql.engine import open_store
from guard.store.sql.schema import migrate
from tests.acceptance.relays import RelayProcess, check_arrivals, receiving, staged, while_killed
from tests.integration.relaying import delivered, until
from tests.servers import PostgresServer
from tests.service import ServiceProcess

pytestmark = pytest.mark.anyio
COUNT: Final = int(os.environ.get("SOAK", "1000")) // 40 * 40
KILLS: Final = 2 if COUNT <= 1000 else 10
UNDER_WAY: Final = 16 + 100
"""What a destination has in flight, and what a relay settles at once."""


async def all_settled(store: Store) -> None:
    """Wait until nothing is left to be done."""

    async def is_settled() -> bool:
        backlogs = await store.relay.backlogs()
        return all(backlog.pending + backlog.in_flight == 0 for backlog in backlogs.values())

    await until(is_settled, 60)


async def counted(store: Store) -> tuple[int, int]:
    """Return how many messages wait for a person."""
    backlogs = (await store.relay.backlogs()).values()
    return sum(each.dead for each in backlogs), sum(each.unknown + each.parked for each in backlogs)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_two_relays_that_are_killed_in_turn_lose_nothing(store: Store, database_url: str, tmp_path: Path) -> None:
    async with receiving() as receiver:
        await staged(store, receiver, COUNT)
        relays = [RelayProcess(database_url, tmp_path).start() for _ in range(2)]

        def kill() -> None:
            relays[0].end()
            relays.append(relays.pop(0).start())

        try:
            await while_killed(receiver, COUNT, kill, KILLS)
            await all_settled(store)
            for relay in relays:  # the last one may have come to nothing more, and be starting still
                await asyncio.to_thread(relay.first_line)
            assert [await asyncio.to_thread(relay.end, signal.SIGTERM) for relay in relays] == [0, 0]
        finally:
            for relay in relays:
                relay.end()
    check_arrivals(receiver, COUNT)
    assert receiver.duplicates <= KILLS * UNDER_WAY
    assert await counted(store) == (0, 0)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
async def test_a_service_that_relays_and_is_killed_loses_nothing(store: Store, database_url: str) -> None:
    async with receiving() as receiver:
        await staged(store, receiver, COUNT)
        service = ServiceProcess(database_url, options=("--with-relay", "--allow", "127.0.0.1/32"))

        def kill() -> None:
            service.kill()
            service.start()

        with service:
            await while_killed(receiver, COUNT, kill, KILLS)
            await all_settled(store)
            assert await asyncio.to_thread(service.stop) == -signal.SIGTERM
    check_arrivals(receiver, COUNT)
    assert receiver.duplicates <= KILLS * UNDER_WAY
    assert await counted(store) == (0, 0)


async def test_a_database_that_is_killed_under_two_relays_loses_nothing(
    own_postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = own_postgres_server.url()
    await migrate(url)
    store = await open_store(url)

    def kill() -> None:
        own_postgres_server.kill()
        own_postgres_server.start()

    try:
        async with receiving() as receiver:
            await staged(store, receiver, COUNT)
            with RelayProcess(url, tmp_path), RelayProcess(url, tmp_path):
                await while_killed(receiver, COUNT, kill, KILLS)
                await all_settled(store)
        check_arrivals(receiver, COUNT)
        assert await counted(store) == (0, 0)
    finally:
        await store.close()


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_relays_whose_clocks_are_ten_minutes_wrong_steal_nothing_and_sign_by_the_databases_time(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    (tmp_path / "behind").mkdir()
    async with receiving() as receiver:
        await staged(store, receiver, 80)
        with (
            RelayProcess(database_url, tmp_path, ahead=600),
            RelayProcess(database_url, tmp_path / "behind", ahead=-600),
        ):
            await receiver.wait_for(80)
            await all_settled(store)
    check_arrivals(receiver, 80)
    assert receiver.duplicates == 0
    assert receiver.astray < 120
    assert len(await delivered(store)) == 80
