"""The modes of a replay: paused in the middle, tested with other prompts, with outcomes overridden, forked offline."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import (
    agent,
    agent_async,
    ask,
    charge,
    guard,
    look_up,
    look_up_async,
    notify,
    recording_of,
)
from twiceshy import Override, Recording, ReplayPaused, SetupError
from twiceshy._replay import replay, replay_async
from twiceshy_contract.events import Delivery

PATIENCE = 0.05


def always_a(prompt: str) -> str:
    return "a"


def always_b(prompt: str) -> str:
    return "b"


class TestUntil:
    """A replay that pauses."""

    def test_pauses_where_a_call_is_made_with_the_agents_names_at_hand(self) -> None:
        again = replay(recording_of(), agent, mode="until", at=7)
        assert again.paused is not None
        assert (again.paused.seq, again.exit_code, again.is_same) == (7, 3, False)
        assert [frame.function for frame in again.paused.locals] == ["agent"]
        assert again.paused.locals[0].locals["prices"] == [5, 7]
        assert again.paused.locals[0].locals["order"] == "a"
        assert [event.seq for event in again.paused.events] == [1, 2, 3, 4, 5, 6, 7]

    def test_pauses_where_an_outcome_is_there_and_has_it(self) -> None:
        again = replay(recording_of(), agent, mode="until", at=6)
        assert again.paused is not None
        assert (again.paused.value, "order" in again.paused.locals[0].locals) == ("a", False)
        assert len(again.paused.events) == 6

    def test_a_pause_is_an_error_to_whoever_wants_all_of_it_the_same(self) -> None:
        again = replay(recording_of(), agent, mode="until", at=6)
        with pytest.raises(ReplayPaused, match="pauses at event 6: the outcome of ask is there") as raised:
            again.require_same()
        assert (raised.value.seq, raised.value.value, raised.value.error) == (6, "a", None)
        assert (again.to_json()["paused"], again.to_json()["stopped"]) == (6, str(raised.value))

    def test_shows_the_tasks_that_wait_beside_it(self) -> None:
        async def one(order: str) -> int:
            mine = order.upper()
            return int((await look_up_async(order))["price"]) + len(mine)

        async def both() -> list[int]:
            async with guard.run(RUN):
                total = 12
                return [*await asyncio.gather(one("a"), one("b")), total]

        again = replay(recording_of(suffix="_async"), both, mode="until", at=3)
        assert again.paused is not None
        seen = {frame.function.rpartition(".")[2]: frame.locals for frame in again.paused.locals}
        assert seen["one"]["order"] in ("a", "b")
        assert seen["both"]["total"] == 12
        assert again.paused.locals[0].locals["mine"] == "B"

    def test_the_report_shows_names_and_what_was_so_far(self) -> None:
        report = replay(recording_of(), agent, mode="until", at=7).report()
        assert "The replay of run contract-7 pauses at event 7: charge is called." in report
        assert "  order = 'a'" in report
        assert "Called look_up with order 'b'; it returned {price: 7}." in report


class TestRetest:
    """Changed code and prompts against a recording."""

    def changed(self) -> str:
        with guard.run(RUN) as run:
            prices = [look_up(order)["price"] for order in ("b", "a")]
            order = run.llm(ask, prompt=f"Name the cheaper one: {sorted(prices)}")
            return charge(order, min(prices))

    def test_a_changed_prompt_is_answered_by_its_position(self) -> None:
        again = replay(recording_of(), self.changed, mode="retest", llm="position")
        assert (again.value, again.is_same) == ("charged a", True)
        assert [one.class_ for one in again.divergences] == ["reordered", "arguments"]

    def test_a_changed_prompt_is_a_miss_where_models_are_recorded(self) -> None:
        again = replay(recording_of(), self.changed, mode="retest")
        assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 5)]

    def test_a_function_stands_in_for_the_model_and_is_given_its_arguments(self) -> None:
        asked = []

        def stand_in(prompt: str) -> str:
            asked.append(prompt)
            return "a"

        again = replay(recording_of(), self.changed, mode="retest", llm=stand_in)
        assert (again.value, asked) == ("charged a", ["Name the cheaper one: [5, 7]"])
        sources = [event.source for event in again.events if isinstance(event, Delivery)]
        assert sources == ["recorded", "recorded", "stand_in", "recorded"]

    async def test_a_function_stands_in_for_an_async_model(self) -> None:
        async def stand_in(prompt: str) -> str:
            await asyncio.sleep(0)
            return "a"

        again = await replay_async(recording_of(suffix="_async"), agent_async, mode="retest", llm=stand_in)
        assert again.value == "charged a"

    def test_a_missed_model_may_go_live_and_a_tool_never_does(self) -> None:
        def really(prompt: str) -> str:
            return "b"

        def changed() -> str:
            with guard.run(RUN) as run:
                look_up("a")
                return charge(run.llm(really, prompt="another"), 7)

        again = replay(recording_of(), changed, mode="retest", on_miss="live")
        first = again.differences[0]
        assert (first.class_, first.message) == ("arguments", "charge is called with other arguments.")
        assert [one.class_ for one in again.divergences if one.is_note] == ["extra"]

    def test_a_missed_tool_is_answered_where_an_answer_is_given(self) -> None:
        def changed() -> str:
            with guard.run(RUN):
                return charge("c", int(look_up("c")["price"]))

        again = replay(
            recording_of(), changed, mode="retest", answers={"look_up": {"price": 9}, "charge": "not really"}
        )
        assert again.value == "not really"
        assert [(one.class_, one.seq) for one in again.differences] == [
            ("arguments", 1),
            ("arguments", 7),
            ("missing", 3),
            ("missing", 5),
        ]

    def test_a_missed_tool_that_returns_none_is_answered_by_none(self) -> None:
        def changed() -> str:
            value = agent()
            with guard.run(RUN):
                notify("charged")
            return value

        again = replay(recording_of(), changed, mode="retest")
        assert (again.value, again.is_same) == ("charged a", True)
        assert [(one.class_, one.is_note) for one in again.divergences] == [("extra", True)]

    def test_a_call_that_is_not_made_any_more_is_told(self) -> None:
        def changed() -> None:
            with guard.run(RUN) as run:
                look_up("a")
                run.llm(ask, prompt="which of 5 and 7?")

        again = replay(recording_of(), changed, mode="retest")
        assert [(one.class_, one.seq) for one in again.differences] == [("missing", 3), ("missing", 7)]

    def test_clocks_and_chance_come_from_the_record_and_then_are_drawn(self) -> None:
        log = Writing(RUN)
        log.call("time", "now", {}, {"$dt": "2026-11-30T10:00:00+00:00"})
        log.call("random", "random", {}, 0.25)
        log.call("uuid", "uuid4", {}, {"$uuid": "0199c0de-0000-4000-8000-000000000001"})
        log.call("sleep", "sleep", {"seconds": 3600.0})

        def drawing() -> list[Any]:
            with guard.run(RUN) as run:
                run.sleep(3600)
                run.sleep(7200)
                return [run.uuid4(), run.random(), run.now(), run.random()]

        again = replay(log.recording(), drawing, mode="retest")
        assert again.value[:3] == [
            UUID("0199c0de-0000-4000-8000-000000000001"),
            0.25,
            datetime(2026, 11, 30, 10, tzinfo=UTC),
        ]
        assert 0 <= again.value[3] < 1
        assert [one.class_ for one in again.divergences if one.is_note and one.class_ == "extra"] == ["extra", "extra"]
        assert again.is_same


class TestForkOffline:
    """A fork from a file."""

    def test_after_the_cut_the_model_is_a_stand_in_and_tools_are_of_the_record(self) -> None:
        again = replay(recording_of(), agent, mode="fork", at=5, llm=always_a)
        assert (again.value, again.is_same) == ("charged a", True)
        assert [event.source for event in again.events if isinstance(event, Delivery)] == [
            "recorded",
            "recorded",
            "stand_in",
            "recorded",
        ]
        assert "The database seen after the cut is today's." in again.report()

    def test_after_the_cut_a_tool_that_is_not_in_the_record_stops_the_code(self) -> None:
        again = replay(recording_of(), agent, mode="fork", at=5, llm=always_b)
        assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 7)]

    def test_an_override_at_the_cut_is_given(self) -> None:
        again = replay(
            recording_of(),
            agent,
            mode="fork",
            at=3,
            llm=always_a,
            overrides=[Override(seq=3, result={"price": 1})],
        )
        assert again.value == "charged a"

    def test_an_override_of_a_model_after_the_cut_is_given(self) -> None:
        overrides = [Override(seq=5, result="a")]
        again = replay(recording_of(), agent, mode="fork", at=3, llm=always_b, overrides=overrides)
        assert (again.value, again.is_counterfactual) == ("charged a", True)

    def test_before_the_cut_the_code_is_held_to_the_record(self) -> None:
        def other() -> None:
            with guard.run(RUN):
                look_up("x")

        again = replay(recording_of(), other, mode="fork", at=5, llm=always_a)
        assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 1)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "ful"}, "mode is 'ful'; did you mean full"),
        ({"mode": "until"}, "at is an event from 1 to 8"),
        ({"at": 3}, "at is for the modes 'until' and 'fork'"),
        ({"llm": "lve"}, "llm is 'lve'; did you mean live"),
        ({"on_miss": "pass"}, "on_miss is 'pass'"),
        ({"patience": 0}, "patience is 0"),
        ({"overrides": ["look_up"]}, "overrides holds 'look_up'"),
        ({"overrides": None}, "overrides is None; give a list of Override"),
        ({"overrides": Override(seq=2, result={})}, r"overrides is Override\(.*\); give a list of Override"),
        ({"children": [1]}, "children holds 1; give the Recordings of child runs"),
        ({"children": None}, "children is None; give a list of the Recordings of child runs"),
        ({"answers": [1]}, r"answers is \[1\]; give results by the names of their tools"),
        ({"patience": float("nan")}, "patience is nan; say a number of seconds above 0"),
        ({"patience": float("inf")}, "patience is inf; say a number of seconds above 0"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(options: Any, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        replay(recording_of(), agent, **options)


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    options: Any = {"overides": []}
    with pytest.raises(TypeError, match="no argument 'overides'; did you mean overrides"):
        replay(recording_of(), agent, **options)


async def test_a_coroutine_is_not_run_where_a_loop_runs_already() -> None:
    with pytest.raises(SetupError, match="await replay_async"):
        replay(recording_of(suffix="_async"), agent_async)


def test_ten_thousand_events_replay() -> None:
    log = Writing(RUN)
    for number in range(5000):
        log.tool("look_up", {"order": str(number)}, {"price": number})

    def long() -> int:
        with guard.run(RUN):
            return sum(look_up(str(number))["price"] for number in range(5000))

    recording: Recording = log.recording()
    again = replay(recording, long)
    assert (again.value, len(again.events), again.is_same) == (12_497_500, 10_000, True)
