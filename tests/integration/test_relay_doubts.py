"""A relay that did not hear what it was given, or heard it too late: nothing is lost, or sent that must not be.

And one that has many destinations of which few have anything.
"""

import asyncio

import msgspec
import pytest

from guard.ports.store import Store
from outbox_relay.relay import Relay
from outbox_relay.sinks.base import Outgoing, Result
from tests.integration.relay_weather import Weather
from tests.integration.relaying import (
    OK,
    SOON,
    TENANT,
    Liar,
    declared,
    delivered,
    relay_of,
    running,
    stage,
    stand,
    until,
)
from twiceshy_contract.destinations import LogDestination

pytestmark = pytest.mark.anyio


async def test_what_was_claimed_by_a_turn_of_which_nothing_was_heard_is_sent_once(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abc"))
    await stage(store, there, list("de"), lane="one")
    weather, sink = Weather(store.relay), Liar()
    weather.loses_claims = 2
    await Relay(weather, lambda *_: sink, SOON, lambda: 0.0).run_once()
    assert sorted(sink.bodies) == list("abcde")
    assert await delivered(store) == list("abcde")
    assert await stand(store) == []


async def test_what_is_under_way_stays_so_when_a_turn_is_not_heard_of(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=2))
    await stage(store, there, ["a"])
    first: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    weather, sink = Weather(store.relay), Liar(lambda outgoing: first if outgoing.body == b"a" else OK)
    async with running(Relay(weather, lambda *_: sink, SOON, lambda: 0.0)):
        await sink.came.wait()
        weather.loses_claims = 1
        await stage(store, there, ["b"])

        async def is_one_left() -> bool:
            return [state for _, state, *_ in await stand(store)] == ["sending"]

        await until(is_one_left)
        first.set_result(OK)
    assert sink.bodies == ["a", "b"]
    assert await delivered(store) == ["a", "b"]


async def test_what_was_taken_back_before_its_claim_was_heard_of_is_not_sent(store: Store) -> None:
    there = await declared(store, settings=LogDestination(timeout_seconds=0.1))
    (message,) = await stage(store, there, ["a"])
    weather, sink = Weather(store.relay), Liar(capability="deduplicates")

    async def until_cancelled() -> None:
        async def is_taken_back() -> bool:
            await store.relay.reap(10)
            moved = await store.outbox.cancel(TENANT, message, "not wanted")
            return moved is not None and moved.is_done

        weather.delays = None
        await until(is_taken_back)

    weather.delays = until_cancelled
    relay = Relay(weather, lambda *_: sink, msgspec.structs.replace(SOON, refresh_seconds=60), lambda: 0.0)
    await relay.run_once()
    assert sink.sent == []
    assert relay.measures.fenced_so_far == 1
    assert [(body, state) for body, state, *_ in await stand(store, "cancelled")] == [("a", "cancelled")]


async def test_what_was_claimed_ahead_of_a_receiver_that_hangs_can_be_cancelled(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    messages = await stage(store, there, [*(f"quick {number:02}" for number in range(40)), "hangs", "a", "b"])
    is_over: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    hangs = asyncio.Event()

    def answer(outgoing: Outgoing) -> Result | asyncio.Future[Result]:
        if outgoing.body != b"hangs":
            return OK
        hangs.set()
        return is_over

    sink = Liar(answer, "deduplicates")
    async with running(relay_of(store.relay, sink)):
        await hangs.wait()

        async def is_cancelled() -> bool:
            moved = await store.outbox.cancel(TENANT, messages[-1], "not wanted")
            return moved is not None and moved.is_done

        await until(is_cancelled)
        is_over.set_result(OK)

        async def is_sent() -> bool:
            return len(await delivered(store)) == 42

        await until(is_sent)
    assert "b" not in sink.bodies


async def test_of_many_destinations_only_those_are_asked_that_have_something(store: Store) -> None:
    ids = [await declared(store, f"d{number}") for number in range(65)]
    weather, sink = Weather(store.relay), Liar()
    deaf = msgspec.structs.replace(SOON, shortest_poll=600, longest_poll=600)
    async with running(Relay(weather, lambda *_: sink, deaf)):

        async def are_all_asked() -> bool:
            return sum(asks for asks, _ in weather.claims) >= 65

        await until(are_all_asked)
        await stage(store, ids[-1], ["a"], name="d64")
        await store.relay.ring()
        await asyncio.wait_for(sink.came.wait(), 10)
    assert (1, 1) in weather.claims
