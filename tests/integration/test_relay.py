"""A relay over real databases, with sinks that lie: order, doubt, dead messages, and destinations that change."""

import asyncio

import pytest

from guard.core.effects import Duration
from guard.ports.store import Store
from outbox_relay.relay import Relay
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, SinkRefused, Unknown
from tests.integration.relaying import OK, SOON, TENANT, Liar, declared, delivered, in_turn, relay_of, stage, stand
from twiceshy_contract.destinations import Destination, LogDestination

pytestmark = pytest.mark.anyio
BUSY = Retryable(why="503")
LOST = Unknown(why="reset")


async def test_all_that_is_due_is_delivered_once_with_what_its_receiver_said(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, [f"{number:03}" for number in range(120)])
    sink = Liar()
    await relay_of(store.relay, sink).run_once()
    assert sorted(sink.bodies) == [f"{number:03}" for number in range(120)]
    assert await delivered(store) == sorted(sink.bodies)
    assert await stand(store) == []


async def test_a_message_leaves_with_its_identity_its_number_and_its_bytes(store: Store) -> None:
    there = await declared(store)
    (message,) = await stage(store, there, ["hello"], lane="a")
    sink = Liar(in_turn(BUSY))
    await relay_of(store.relay, sink).run_once()
    first, second = sink.sent
    assert (first.identity, first.number, first.body, first.lane) == (f"{message}.1", 1, b"hello", "a")
    assert (second.identity, second.number, second.body, second.destination) == (f"{message}.1", 2, b"hello", "there")


async def test_nothing_of_a_lane_overtakes_a_message_that_failed(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abcde"), lane="one")
    sink = Liar(in_turn(OK, BUSY, BUSY))
    await relay_of(store.relay, sink).run_once()
    assert sink.bodies == ["a", "b", "b", "b", "c", "d", "e"]
    assert await delivered(store) == list("abcde")


async def test_those_behind_a_message_that_failed_spend_no_try(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, list("abc"), lane="one")
    sink = Liar(in_turn(BUSY))
    await relay_of(store.relay, sink, jitter=0.9).run_once()
    assert sink.bodies == ["a"]
    assert await stand(store) == [("a", "pending", 1, "503"), ("b", "pending", 0, None), ("c", "pending", 0, None)]


async def test_lanes_keep_their_orders_whatever_fails_in_them(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=4, attempts=100))
    for lane in "abcdef":
        await stage(store, there, [f"{lane}{number}" for number in range(9)], lane=lane)
    sink = Liar(lambda outgoing: BUSY if (len(sink.sent) + outgoing.number) % 5 == 0 else OK)
    await relay_of(store.relay, sink).run_once()
    for lane in "abcdef":
        came = [body for body in dict.fromkeys(sink.bodies) if body.startswith(lane)]
        assert came == [f"{lane}{number}" for number in range(9)]
    assert len(await delivered(store)) == 54


@pytest.mark.parametrize("policy", ["block", "skip"])
async def test_a_dead_message_blocks_its_lane_or_is_skipped_and_stops_no_other(store: Store, policy: str) -> None:
    there = await declared(store, settings=LogDestination(lanes="block" if policy == "block" else "skip"))
    await stage(store, there, ["a", "b"], lane="poisoned")
    await stage(store, there, ["c", "d"], lane="well")
    sink = Liar(lambda outgoing: Permanent(why="no such thing") if outgoing.body == b"a" else OK)
    await relay_of(store.relay, sink).run_once()
    left = [("a", "dead", 1, "no such thing")]
    assert await stand(store) == ([*left, ("b", "pending", 0, None)] if policy == "block" else left)
    assert await delivered(store) == (["c", "d"] if policy == "block" else ["b", "c", "d"])


async def test_a_message_that_was_tried_often_enough_is_dead(store: Store) -> None:
    there = await declared(store, settings=LogDestination(attempts=3))
    await stage(store, there, ["a"])
    sink = Liar(lambda _: BUSY)
    await relay_of(store.relay, sink).run_once()
    assert len(sink.sent) == 3
    assert await stand(store) == [("a", "dead", 3, "tried 3 times, last: 503")]


async def test_what_may_have_arrived_waits_for_a_person_where_the_receiver_cannot_tell(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a", "b"], lane="one")
    sink = Liar(lambda _: LOST)
    await relay_of(store.relay, sink).run_once()
    assert sink.bodies == ["a"]
    assert await stand(store) == [("a", "unknown", 1, "reset"), ("b", "pending", 0, None)]


@pytest.mark.parametrize("is_told", [False, True], ids=["it tells them apart", "told to send at least once"])
async def test_what_may_have_arrived_is_sent_again_with_the_same_identity_and_is_counted(
    store: Store,
    is_told: bool,  # noqa: FBT001
) -> None:
    there = await declared(store, settings=LogDestination(at_least_once=is_told))
    await stage(store, there, ["a"])
    sink = Liar(in_turn(LOST), "sends_blindly" if is_told else "deduplicates")
    relay = relay_of(store.relay, sink)
    await relay.run_once()
    first, second = sink.sent
    assert (first.identity, first.body) == (second.identity, second.body)
    assert relay.measures.suspected_so_far == 1
    assert await delivered(store) == ["a"]


async def test_a_sink_that_breaks_its_promise_leaves_doubt_and_stops_nobody_else(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a", "b"])

    def answer(outgoing: Outgoing) -> Result:
        if outgoing.body == b"a":
            raise RuntimeError("a bug")
        return OK

    await relay_of(store.relay, Liar(answer)).run_once()
    assert await stand(store) == [("a", "unknown", 1, "the sink failed: RuntimeError('a bug')")]
    assert await delivered(store) == ["b"]


async def test_a_sink_that_never_answers_is_given_up_and_leaves_doubt(store: Store) -> None:
    there = await declared(store, settings=LogDestination(timeout_seconds=0.1))
    await stage(store, there, ["a", "b"], lane="one")
    never: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    await relay_of(store.relay, Liar(lambda _: never)).run_once()
    assert await stand(store) == [("a", "unknown", 1, "no answer within 0.15 seconds"), ("b", "pending", 0, None)]


async def test_a_slow_destination_stops_no_other(store: Store) -> None:
    slow_id, fast_id = await declared(store, "slow"), await declared(store, "swift")
    await stage(store, slow_id, ["slow"], name="slow")
    await stage(store, fast_id, [f"{number:02}" for number in range(50)], name="swift")
    is_over: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    def answer(outgoing: Outgoing) -> Result:
        if len(swift.sent) == 50:
            is_over.set_result(OK)
        return OK

    slow, swift = Liar(lambda _: is_over), Liar(answer)
    await relay_of(store.relay, slow, swift).run_once()
    assert len(await delivered(store)) == 51


async def test_no_more_is_under_way_at_a_destination_than_it_allows(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=3))
    await stage(store, there, [f"{number:02}" for number in range(30)])
    now: list[int] = [0, 0]

    async def answer(_: Outgoing) -> Result:
        now[0] += 1
        now[1] = max(now)
        await asyncio.sleep(0.001)
        now[0] -= 1
        return OK

    await relay_of(store.relay, Liar(answer, "deduplicates")).run_once()
    assert now == [0, 3]
    assert len(await delivered(store)) == 30


async def test_a_destination_that_cannot_be_opened_keeps_its_messages_and_says_why(store: Store) -> None:
    there, elsewhere = await declared(store, "closed"), await declared(store, "open")
    await stage(store, there, ["a"], name="closed")
    await stage(store, elsewhere, ["b"], name="open")

    def opened(name: str, settings: Destination) -> Liar:
        if name == "closed":
            raise SinkRefused("The secret is not set.")
        return Liar()

    await Relay(store.relay, opened, SOON).run_once()
    assert await stand(store) == [("a", "pending", 0, None)]
    assert await delivered(store) == ["b"]
    record = await store.destinations.get(TENANT, "closed")
    assert record is not None
    assert (record.place.state, record.note) == ("active", "The secret is not set.")


async def test_a_destination_that_is_gone_is_disabled_and_keeps_what_waits(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    await stage(store, there, ["a", "b"])
    sink = Liar(lambda _: Permanent(why="410", is_gone=True))
    await relay_of(store.relay, sink).run_once()
    assert sink.bodies == ["a"]
    assert await stand(store) == [("a", "dead", 1, "410"), ("b", "pending", 0, None)]
    record = await store.destinations.get(TENANT, "there")
    assert record is not None
    assert record.place.state == "disabled"


async def test_a_destination_that_asks_to_be_left_alone_is_and_the_rest_spends_no_try(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    await stage(store, there, ["a", "b"])
    sink = Liar(lambda _: Retryable(why="429", retry_after=600, is_throttled=True))
    await relay_of(store.relay, sink).run_once()
    assert sink.bodies == ["a"]
    assert await stand(store) == [("a", "pending", 1, "429"), ("b", "pending", 0, None)]


async def test_nobody_there_opens_the_breaker_and_the_rest_spends_no_try(store: Store) -> None:
    there = await declared(store, settings=LogDestination(concurrency=1))
    await stage(store, there, [f"{number:02}" for number in range(20)])
    sink = Liar(lambda _: Retryable(why="refused", is_unreachable=True))
    await relay_of(store.relay, sink, jitter=0.99).run_once()
    assert len(sink.sent) == 5
    assert [tries for _, _, tries, _ in await stand(store)] == [1] * 5 + [0] * 15
    record = await store.destinations.get(TENANT, "there")
    assert record is not None
    assert record.breaker == "open"


async def test_a_destination_gets_no_more_in_a_second_than_its_rate(store: Store) -> None:
    there = await declared(store, settings=LogDestination(rate_per_second=5))
    await stage(store, there, [f"{number:02}" for number in range(20)])
    sink = Liar()
    await relay_of(store.relay, sink).run_once()
    assert 5 <= len(sink.sent) <= 7
    assert {tries for _, _, tries, _ in await stand(store)} == {0}


async def test_a_paused_destination_gets_nothing_until_it_is_resumed(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a"])
    await store.destinations.put(TENANT, "there", "paused", "for now")
    sink = Liar()
    relay = relay_of(store.relay, sink)
    await relay.run_once()
    assert sink.sent == []
    await store.destinations.put(TENANT, "there", "active", "well again")
    await relay.run_once()
    assert sink.bodies == ["a"]


async def test_a_try_goes_by_the_settings_of_its_moment(store: Store) -> None:
    there = await declared(store)
    await stage(store, there, ["a"])
    old, new = Liar(lambda _: BUSY), Liar()
    relay = relay_of(store.relay, old, new, jitter=0.001)
    old.answer = in_turn(BUSY)
    await relay.run_once()
    assert old.bodies == ["a"]
    await store.destinations.declare(TENANT, "there", LogDestination(path="/elsewhere"))
    await _later(store, Duration(5_000))
    await relay.run_once()
    assert (old.bodies, old.is_closed, new.bodies) == (["a"], True, ["a"])


async def _later(store: Store, passed: Duration) -> None:
    """Wait until the database's clock has moved on."""
    until = (await store.describe()).now + passed
    while (await store.describe()).now < until:  # noqa: ASYNC110  the clock is the database's
        await asyncio.sleep(0.001)


async def test_a_message_that_is_taken_back_right_before_it_is_sent_is_not_sent(store: Store) -> None:
    there = await declared(store)
    first, second, third = await stage(store, there, list("abc"), lane="one")

    async def answer(outgoing: Outgoing) -> Result:
        if outgoing.message == first:
            moved = await store.outbox.cancel(TENANT, second, "not wanted")
            assert moved is not None
            assert moved.is_done
        return Delivered(receipt="ok")

    sink = Liar(answer)
    await relay_of(store.relay, sink).run_once()
    assert [outgoing.message for outgoing in sink.sent] == [first, third]
    assert await stand(store, "cancelled") == [("b", "cancelled", 0, "not wanted")]
