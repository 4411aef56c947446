"""Dispatch: what is sent when, what becomes of sends that never end, and of messages that nobody wants any more."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

import pytest

from guard.core.effects import Duration, Instant, TenantId
from guard.ports.relay import Again, Claimed, Done, Settlement, Stands, Verdict, Way
from outbox_relay.delivery import WAIT, Judged
from outbox_relay.dispatch import Dispatch, Started
from outbox_relay.measures import Measures
from outbox_relay.route import Route
from outbox_relay.sinks.base import Outgoing, Result
from tests.integration.relaying import OK, Answer, Liar
from twiceshy_contract.destinations import LogDestination

pytestmark = pytest.mark.anyio


def claimed(id_: int, lane: str | None = None, verdict: Verdict = "send", *, is_first: bool = True) -> Claimed:
    return Claimed(
        id=id_, message=UUID(int=id_), epoch=1, tenant=TenantId(1), destination=1, name="there", lane=lane, type=None,
        recipient=None, content_type="text/plain", headers=b'{"X-A":"b"}', body=str(id_).encode(), run=None,
        staged_at=Instant(0), attempts=0, is_first=is_first, verdict=verdict,
    )  # fmt: skip


class Desk:
    """A dispatch with one route, and a store that answers starts as it is told."""

    def __init__(
        self,
        answer: Answer = lambda _: OK,
        slots: int = 64,
        concurrency: int = 8,
        measures: Measures | None = None,
    ) -> None:
        self.sink = Liar(answer)
        self.starts: dict[int, Started] = {}
        self.started: list[int] = []
        self.ends = asyncio.get_running_loop().time() + 30
        self.stirred = asyncio.Event()
        self.measures = measures or Measures()
        self.dispatch = Dispatch(self._start, slots, lambda: 0.0, self.measures, self.stirred.set)
        settings = LogDestination(concurrency=concurrency)
        self.route = Route(
            Way(
                id=1,
                tenant=TenantId(1),
                name="there",
                version=1,
                state="active",
                settings=settings,
                breaker="closed",
                is_open=True,
            )
        )
        self.route.open(lambda *_: self.sink, 0)

    async def _start(self, id_: int, length: Duration) -> tuple[Started, float]:
        assert length == Duration(30_000_000)
        self.started.append(id_)
        return self.starts.get(id_, "send"), self.ends

    def launch(self, *messages: Claimed) -> None:
        self.dispatch.launch(messages, {1: self.route}, self.ends)

    async def send(self, *messages: Claimed) -> Sequence[Settlement]:
        """Launch messages, and return what became of them once nothing is under way."""
        self.launch(*messages)
        return await self.settled()

    async def settled(self) -> Sequence[Settlement]:
        while self.route.is_sending:
            self.stirred.clear()
            await self.stirred.wait()
        return self.dispatch.results


def done(id_: int) -> Done:
    return Done(id=id_, over="delivered", receipt="ok")


def back(id_: int) -> Again:
    return Again(id=id_, delay=Duration(0))


def behind(id_: int, lane: str = "a") -> Claimed:
    return claimed(id_, lane, is_first=False)


async def test_a_lane_goes_one_by_one_each_started_after_the_one_before_arrived() -> None:
    desk = Desk(lambda outgoing: _check_started(desk, outgoing))
    assert await desk.send(behind(3), claimed(1, "a"), behind(2)) == [done(1), done(2), done(3)]
    assert desk.started == [2, 3]
    assert desk.sink.sent[0].headers == {"X-A": "b"}


def _check_started(desk: Desk, outgoing: Outgoing) -> Result:
    assert desk.started == list(range(2, int(outgoing.body) + 1))
    return OK


async def test_a_message_whose_effect_was_taken_back_is_withdrawn_and_the_next_goes() -> None:
    desk = Desk()
    settled = await desk.send(claimed(1, "a", "withdrawn"), behind(2))
    assert settled == [Done(id=1, over="withdrawn", note="its effect was taken back", counts=False), done(2)]
    assert desk.sink.bodies == ["2"]


async def test_a_message_whose_effect_may_be_taken_back_waits_and_so_do_those_behind_it() -> None:
    desk = Desk()
    settled = await desk.send(claimed(1, "a", "wait"), behind(2), claimed(3, verdict="wait"))
    assert settled == [
        Again(id=1, delay=WAIT, note="its effect may be taken back"),
        back(2),
        Again(id=3, delay=WAIT, note="its effect may be taken back"),
    ]
    assert desk.sink.sent == []


async def test_one_that_waits_behind_others_is_asked_for_when_its_turn_comes() -> None:
    desk = Desk()
    desk.starts = {2: "withdrawn", 3: "wait"}
    settled = await desk.send(claimed(1, "a"), behind(2), behind(3), behind(4))
    assert [type(each).__name__ for each in settled] == ["Done", "Done", "Again", "Again"]
    assert desk.sink.bodies == ["1"]


async def test_one_that_is_no_longer_ours_ends_its_lane_here_and_is_not_settled() -> None:
    desk = Desk()
    desk.starts = {2: "lost"}
    assert await desk.send(claimed(1, "a"), behind(2), behind(3)) == [done(1), back(3)]
    assert 2 not in desk.dispatch.held


async def test_what_cannot_be_started_is_given_back() -> None:
    desk = Desk()
    desk.starts = {2: "away"}
    assert await desk.send(claimed(1, "a"), behind(2), behind(3)) == [done(1), back(2), back(3)]


async def test_a_lane_that_is_taken_from_the_relay_ends_after_what_is_under_way() -> None:
    desk = Desk(lambda _: _lose(desk))
    assert await desk.send(claimed(1, "a"), behind(2), behind(3)) == [back(2), back(3), done(1)]
    assert desk.sink.bodies == ["1"]


class Broken(Measures):
    """Meters that fail."""

    def tried(self, destination: str, judged: Judged) -> None:
        raise RuntimeError(destination)


def _lose(desk: Desk) -> Result:
    desk.dispatch.lost([3])
    return OK


async def test_a_message_that_comes_again_while_it_is_sent_belongs_to_who_has_it_last() -> None:
    first: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    desk = Desk(lambda _: first if len(desk.sink.sent) == 1 else OK)
    desk.launch(claimed(1))
    await desk.sink.came.wait()
    desk.launch(claimed(1))
    first.set_result(OK)
    assert await desk.settled() == [done(1)]
    assert (len(desk.sink.sent), desk.measures.fenced_so_far) == (2, 1)


async def test_what_waits_to_be_sent_and_is_no_longer_ours_is_not_sent() -> None:
    first: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    desk = Desk(lambda _: first if len(desk.sink.sent) == 1 else OK, concurrency=1)
    desk.launch(claimed(1), claimed(2), claimed(3))
    await desk.sink.came.wait()
    desk.dispatch.lost([2])
    first.set_result(OK)
    assert await desk.settled() == [done(1), done(3)]
    assert desk.sink.bodies == ["1", "3"]


async def test_what_waits_to_be_sent_and_comes_again_is_sent_once() -> None:
    first: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    desk = Desk(lambda _: first if len(desk.sink.sent) == 1 else OK, concurrency=1)
    desk.launch(claimed(1), claimed(2, "a"), behind(3))
    await desk.sink.came.wait()
    desk.launch(claimed(2, "a"), behind(3))
    first.set_result(OK)
    assert await desk.settled() == [done(1), done(2), done(3)]
    assert desk.sink.bodies == ["1", "2", "3"]


async def test_a_message_that_cannot_be_judged_is_left_to_its_lease_and_frees_its_slot() -> None:
    desk = Desk(measures=Broken())
    assert await desk.send(claimed(1), claimed(2)) == []
    assert desk.dispatch.held == {}


async def test_a_sink_that_swallows_its_end_holds_up_nobody() -> None:
    async def stubborn() -> Result:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
        return OK

    ended = asyncio.Event()
    desk = Desk(lambda outgoing: stubborn() if outgoing.body == b"1" else OK, concurrency=1)
    desk.launch(claimed(1), claimed(2))
    await desk.sink.came.wait()
    desk.dispatch.end_overdue(asyncio.get_running_loop().time() + 17, 1, [desk.route])
    assert await desk.settled() == [
        Stands(id=1, state="unknown", note="no answer within 16 seconds", tried="unknown"),
        done(2),
    ]
    assert ended.is_set()


async def test_no_more_is_under_way_at_all_destinations_together_than_there_are_slots() -> None:
    under_way = [0, 0]

    async def answer() -> Result:
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(0)
        under_way[0] -= 1
        return OK

    desk = Desk(lambda _: answer(), slots=3)
    settled = await desk.send(*(claimed(number) for number in range(20)))
    assert len(settled) == 20
    assert under_way == [0, 3]


async def test_what_is_ended_for_all_leaves_doubt_where_it_was_sent() -> None:
    never: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    desk = Desk(lambda _: never, concurrency=1)
    desk.launch(claimed(1, "a"), behind(2))
    await desk.sink.came.wait()
    await desk.dispatch.end_all([desk.route])
    assert await desk.settled() == [
        Stands(id=1, state="unknown", note="the relay stopped before an answer came", tried="unknown", blocks=True),
        back(2),
    ]
