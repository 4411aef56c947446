"""A relay that runs: it is woken, it drains, it keeps its leases, and it loses no result when its store is away."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest

from guard.core.effects import seconds
from guard.ports.store import Store
from outbox_relay.relay import Relay
from outbox_relay.settings import RelaySettings
from outbox_relay.sinks.base import Delivered, Outgoing, Result, Unknown
from tests.integration.relay_weather import Weather
from tests.integration.relaying import (
    OK,
    SOON,
    TENANT,
    Liar,
    declared,
    delivered,
    in_turn,
    relay_of,
    running,
    stage,
    stand,
    until,
)
from twiceshy_contract.destinations import LogDestination

pytestmark = pytest.mark.anyio
DEAF = msgspec.structs.replace(SOON, shortest_poll=600, longest_poll=600)


class Slow(Liar):
    """Answers once it is told to."""

    def __init__(self, capability: str = "sends_blindly") -> None:
        self.let_go: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        super().__init__(
            lambda _: asyncio.shield(self.let_go), "deduplicates" if capability == "deduplicates" else "sends_blindly"
        )


def count_of(store: Store, count: int) -> Callable[[], Awaitable[bool]]:
    """Return what says whether so many were delivered."""

    async def holds() -> bool:
        return len(await delivered(store)) == count

    return holds


async def test_what_is_staged_is_sent_as_soon_as_the_bell_rings(store: Store) -> None:
    there = await declared(store)
    sink = Liar()
    async with running(relay_of(store.relay, sink, settings=DEAF)):
        await stage(store, there, ["first"])
        await store.relay.ring()
        await asyncio.wait_for(sink.came.wait(), 5)
    assert await delivered(store) == ["first"]


async def test_what_is_staged_is_sent_where_no_bell_rings_at_all(store: Store) -> None:
    there = await declared(store)
    sink = Liar()
    async with running(relay_of(store.relay, sink)):
        await stage(store, there, ["first"])
        await asyncio.wait_for(sink.came.wait(), 10)
    assert await delivered(store) == ["first"]


async def test_a_destination_that_is_declared_while_the_relay_runs_is_sent_to(store: Store) -> None:
    sink = Liar()
    async with running(relay_of(store.relay, sink)):
        there = await declared(store)
        await stage(store, there, ["first"])
        await asyncio.wait_for(sink.came.wait(), 10)


async def test_a_relay_that_is_stopped_ends_what_is_under_way_and_begins_nothing_more(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    await stage(store, there, ["a", "b"], lane="one")
    await stage(store, there, ["c"])
    sink = Slow()
    relay = relay_of(store.relay, sink)
    task = asyncio.create_task(relay.run())
    await sink.came.wait()
    relay.stop()
    sink.let_go.set_result(OK)
    await asyncio.wait_for(task, 10)
    assert len(sink.sent) == 1
    assert sink.is_closed
    assert len(await delivered(store)) == 1
    assert {(state, tries) for _, state, tries, _ in await stand(store)} == {("pending", 0)}


async def test_what_does_not_end_in_time_leaves_doubt_and_the_relay_stops(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a", "b"], lane="one")
    sink = Slow()
    relay = relay_of(store.relay, sink, settings=RelaySettings(drain_seconds=0.1))
    task = asyncio.create_task(relay.run())
    await sink.came.wait()
    relay.stop()
    await asyncio.wait_for(task, 10)
    assert await stand(store) == [
        ("a", "unknown", 1, "the relay stopped before an answer came"),
        ("b", "pending", 0, None),
    ]


async def test_a_send_that_outlives_its_lease_many_times_keeps_it(store: Store) -> None:
    there = await declared(store, settings=LogDestination(timeout_seconds=0.5))
    await stage(store, there, list("ab"), lane="one")
    now = (await store.describe()).now
    sink = Slow()
    relay = relay_of(store.relay, sink, settings=msgspec.structs.replace(SOON, overrun_seconds=60))
    async with running(relay):
        await sink.came.wait()

        async def is_later() -> bool:
            return (await store.describe()).now > now + seconds(1.6)

        await until(is_later)
        assert (await store.relay.reap(10)).again + (await store.relay.reap(10)).unknown == 0
        sink.let_go.set_result(OK)
        await until(count_of(store, 2))
    assert relay.measures.fenced_so_far == 0


async def test_a_result_that_comes_when_its_message_was_taken_back_is_counted_and_not_written(store: Store) -> None:
    there = await declared(store, settings=LogDestination(timeout_seconds=0.1))
    await stage(store, there, ["a"])
    weather, sink = Weather(store.relay), Slow()
    weather.keeps = False
    relay = Relay(weather, lambda *_: sink, msgspec.structs.replace(DEAF, overrun_seconds=60, refresh_seconds=60))
    async with running(relay):
        await sink.came.wait()

        async def is_taken_back() -> bool:
            await store.relay.reap(10)
            return (await stand(store))[0][1] == "unknown"

        await until(is_taken_back)
        sink.let_go.set_result(OK)

        async def is_counted() -> bool:
            return relay.measures.fenced_so_far == 1

        await until(is_counted)
    assert [state for _, state, _, _ in await stand(store)] == ["unknown"]


async def test_results_are_kept_while_the_store_is_away_and_nothing_more_is_begun(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=2))
    await stage(store, there, [f"{number}" for number in range(6)])
    weather, sink = Weather(store.relay), Slow()
    relay = Relay(weather, lambda *_: sink, SOON)
    async with running(relay):
        await sink.came.wait()
        weather.is_away = True
        sink.let_go.set_result(OK)
        weather.was_away.clear()
        await weather.was_away.wait()
        assert len(sink.sent) == 2
        weather.is_away = False
        await until(count_of(store, 6))
    assert len(sink.sent) == 6
    assert relay.measures.fenced_so_far == 0


async def test_a_result_whose_writing_nobody_heard_of_is_not_written_twice_and_is_no_fenced_one(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    await stage(store, there, ["a"])
    weather, sink = Weather(store.relay), Liar()
    weather.loses_answers = 1
    relay = Relay(weather, lambda *_: sink, SOON)
    async with running(relay):
        await until(count_of(store, 1))

        async def is_heard() -> bool:
            return len(weather.turns) > 2

        await until(is_heard)
    assert sink.bodies == ["a"]
    assert relay.measures.fenced_so_far == 0


async def test_a_result_that_cannot_be_written_is_written_plainly_and_strands_no_other(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abc"))
    weather = Weather(store.relay)
    weather.refuses = "poison"
    sink = Liar(lambda outgoing: Delivered(receipt="poison") if outgoing.body == b"b" else OK)
    await Relay(weather, lambda *_: sink, SOON).run_once()
    assert await delivered(store) == ["a", "b", "c"]
    assert len(sink.sent) == 3


async def test_a_lane_whose_store_goes_away_between_two_messages_goes_on_where_it_was(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abc"), lane="one")
    weather = Weather(store.relay)

    def answer(outgoing: Outgoing) -> Result:
        weather.is_away = outgoing.body == b"a"
        return OK

    sink = Liar(answer)
    async with running(Relay(weather, lambda *_: sink, SOON)):
        await weather.was_away.wait()
        weather.is_away = False
        await until(count_of(store, 3))
    assert sink.bodies == ["a", "b", "c"]


async def test_a_destination_that_is_paused_while_its_lane_is_sent_stops_after_what_is_under_way(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abc"), lane="one")
    sink = Slow()
    async with running(relay_of(store.relay, sink)):
        await sink.came.wait()
        await store.destinations.put(TENANT, "there", "paused", "stop")

        async def is_given_back() -> bool:
            return [state for _, state, *_ in await stand(store)] == ["sending", "pending", "pending"]

        await until(is_given_back)
        sink.let_go.set_result(OK)
        await until(count_of(store, 1))
    assert sink.bodies == ["a"]


async def test_two_relays_send_each_message_once_and_every_lane_in_order(store: Store) -> None:
    there = await declared(store)
    lanes = [f"lane-{number}" for number in range(8)]
    for lane in lanes:
        await stage(store, there, [f"{lane}/{number:02}" for number in range(10)], lane=lane)
    came: list[str] = []

    async def answer(outgoing: Outgoing) -> Result:
        came.append(outgoing.body.decode())
        await asyncio.sleep(0)
        return OK

    async with running(relay_of(store.relay, Liar(answer))), running(relay_of(store.relay, Liar(answer))):
        await until(count_of(store, 80), 20)
    assert len(came) == 80
    for lane in lanes:
        assert [body for body in came if body.startswith(f"{lane}/")] == [f"{lane}/{number:02}" for number in range(10)]


async def test_doubt_that_is_sent_again_is_the_same_message_and_what_the_receiver_had_is_counted(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a"])
    sink = Liar(in_turn(Unknown(why="reset"), Delivered(receipt="7", is_duplicate=True)), "deduplicates")
    relay = relay_of(store.relay, sink)
    await relay.run_once()
    assert (relay.measures.count_of("there", "unknown"), relay.measures.count_of("there", "duplicate")) == (1, 1)
    text = relay.measures.text().decode()
    assert 'twiceshy_relay_tries_total{destination="there",result="duplicate"} 1.0' in text
    assert 'twiceshy_relay_duplicates_suspected_total{destination="there"} 1.0' in text
    assert 'twiceshy_relay_breaker{destination="there"} 0.0' in text
