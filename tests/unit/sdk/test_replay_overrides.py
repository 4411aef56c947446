"""Which outcome a call of a replay gets, and what becomes of a run when one of them is another."""

import asyncio
from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN, recorded
from tests.unit.sdk.shop_agents import (
    agent,
    agent_async,
    charge,
    charge_async,
    guard,
    look_up,
    look_up_async,
    recording_of,
)
from twiceshy import Bisected, Override, RecordedError, Rejected, ReplayIncomplete, SetupError, bisect, bisect_async
from twiceshy._replay import replay, replay_async

PATIENCE = 0.05


class TestMatching:
    """Which outcome a call gets."""

    def test_identical_calls_are_answered_in_their_order(self) -> None:
        log = Writing(RUN)
        for state in ("pending", "pending", "done"):
            log.tool("look_up", {"order": "a"}, {"state": state})

        def polling() -> list[str]:
            with guard.run(RUN):
                return [look_up("a")["state"] for _ in range(3)]

        assert replay(log.recording(), polling).value == ["pending", "pending", "done"]
        assert replay(log.recording(), polling, mode="retest").value == ["pending", "pending", "done"]

    @pytest.mark.parametrize("mode", ["full", "retest"])
    async def test_parallel_calls_get_their_own_outcomes(self, mode: Any) -> None:
        log = Writing(RUN)
        first = log.asked("tool_call", "look_up_async", {"order": "a"})
        second = log.asked("tool_call", "look_up_async", {"order": "b"})
        log.gave(second, {"price": 7})
        log.gave(first, {"price": 5})
        done: list[str] = []

        async def noted(order: str) -> int:
            price = (await look_up_async(order))["price"]
            done.append(order)
            return int(price)

        async def both() -> list[int]:
            async with guard.run(RUN):
                return list(await asyncio.gather(noted("a"), noted("b")))

        again = await replay_async(log.recording(), both, mode=mode)
        assert (again.value, done, again.is_same) == ([5, 7], ["b", "a"], True)

    def test_recorded_errors_are_raised_with_their_type(self) -> None:
        log = Writing(RUN)
        log.failed(log.asked("tool_call", "look_up", {"order": "a"}), "builtins.LookupError", "no order a")
        log.failed(log.asked("tool_call", "look_up", {"order": "b"}), "shop.Gone", "sold out")
        log.failed(
            log.asked("tool_call", "charge", {"order": "a", "amount": 5}), "twiceshy.Rejected", "the card is stolen"
        )

        def careless() -> list[str]:
            heard = []
            with guard.run(RUN):
                for call in (lambda: look_up("a"), lambda: look_up("b"), lambda: charge("a", 5)):
                    try:
                        call()
                    except (LookupError, RecordedError, Rejected) as error:
                        heard.append(f"{type(error).__name__}: {error}")
            return heard

        assert replay(log.recording(), careless).value[:2] == ["LookupError: no order a", "RecordedError: sold out"]

    def test_a_run_that_was_killed_is_replayed_to_its_end_and_says_so(self) -> None:
        log = Writing(RUN)
        log.tool("look_up", {"order": "a"}, {"price": 5})
        log.asked("tool_call", "charge", {"order": "a", "amount": 5})

        def killed() -> str:
            with guard.run(RUN):
                return charge("a", int(look_up("a")["price"]))

        again = replay(log.recording(), killed)
        assert again.incomplete is not None
        assert (again.incomplete.seq, again.exit_code, again.differences) == (3, 3, ())
        assert "charge was called at event 3, and no outcome of it reached the code" in again.report()
        with pytest.raises(ReplayIncomplete) as raised:
            again.require_same()
        assert (raised.value.seq, again.to_json()["incomplete"]) == (3, 3)

    async def test_a_killed_run_goes_on_to_the_last_outcome_that_it_had(self) -> None:
        log = Writing(RUN)
        lost = log.asked("tool_call", "charge_async", {"order": "a", "amount": 5})
        log.tool("look_up_async", {"order": "a"}, {"price": 5})
        log.asked("tool_call", "look_up_async", {"order": "b"})
        seen: list[Any] = []

        async def looking() -> None:
            seen.append(await look_up_async("a"))
            await look_up_async("b")

        async def both() -> None:
            async with guard.run(RUN):
                await asyncio.gather(charge_async("a", 5), looking())

        again = await replay_async(log.recording(), both)
        assert again.incomplete is not None
        assert (seen, again.incomplete.seq in (lost, 4), len(again.events)) == ([{"price": 5}], True, 4)

    def test_the_input_is_given_to_an_agent_that_asks_for_it(self) -> None:
        from twiceshy_contract.runs import RunAbout

        log = Writing(RUN, about=RunAbout(input={"order": "a"}))
        log.tool("look_up", {"order": "a"}, {"price": 5})

        def of_input(given: dict[str, str]) -> int:
            with guard.run(RUN) as run:
                assert run.input == given
                return int(look_up(given["order"])["price"])

        assert replay(log.recording(), of_input).value == 5

    def test_a_fact_that_says_otherwise_is_a_note_and_no_divergence(self) -> None:
        log = Writing(RUN, facts={"outcome": "wrong"})
        log.tool("look_up", {"order": "a"}, {"price": 5})

        def judged() -> str:
            with guard.run(RUN):
                look_up("a")
            return "low risk"

        again = replay(log.recording(), judged)
        assert (again.is_same, again.exit_code, again.require_same()) == (True, 0, again)
        (note,) = again.divergences
        assert (note.class_, note.is_note) == ("outcome", True)
        assert note.message == "The code came to 'low risk'; the run's fact `outcome` says 'wrong'."
        assert "Note after the end of the record: outcome" in again.report()

    def test_code_that_fails_where_the_run_was_finished_is_told(self) -> None:
        log = Writing(RUN)
        log.tool("look_up", {"order": "a"}, {"price": 5})

        def failing() -> None:
            with guard.run(RUN):
                look_up("a")
                raise ValueError("no price")

        (found,) = replay(log.recording(), failing).differences
        assert found.class_ == "outcome"
        assert found.message == "The code raised ValueError: no price; the run was finished when it was recorded."

    @pytest.mark.parametrize(("options", "source"), [({}, "recorded"), ({"overrides": [2]}, "override")])
    def test_an_answer_says_whether_it_is_of_the_record(self, options: dict[str, Any], source: str) -> None:
        if options:
            options = {"overrides": [Override(seq=2, result={"price": 6})]}

        def answered() -> str:
            with guard.run(RUN):
                return look_up.answer("a").source

        assert replay(recording_of(), answered, **options).value == source

    def test_a_result_that_was_not_kept_is_said_to_be_what_the_call_returned(self) -> None:
        def odd() -> None:
            with guard.run(RUN) as run:
                run.custom("compute", lambda: 1 + 2j)

        _, recording = recorded(odd)
        again = replay(recording, odd)
        assert again.incomplete is not None
        said = str(again.incomplete)
        assert "compute is in the recording, but what it returned (builtins.complex) was not kept: it " in said
        assert ("None" in said, "happened" in said) == (False, False)


class TestOverrides:
    """One outcome replaced."""

    def test_one_changed_result_keeps_all_else_from_the_record(self) -> None:
        again = replay(recording_of(), agent, overrides=[Override(seq=2, result={"price": 6})], patience=PATIENCE)
        notes = [(one.class_, one.seq) for one in again.divergences if one.is_note]
        assert notes == [("arguments", 5)]
        assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 7)]
        assert again.is_counterfactual

    def test_an_override_of_a_name_counts_its_calls(self) -> None:
        def looking() -> list[int]:
            with guard.run(RUN):
                return [look_up(order)["price"] for order in ("a", "b")]

        overrides = [Override(name="look_up", occurrence=2, result={"price": 1})]
        assert replay(recording_of(), looking, overrides=overrides).value == [5, 1]

    def test_an_override_may_be_an_error(self) -> None:
        def looking() -> str:
            with guard.run(RUN):
                try:
                    look_up("a")
                except ConnectionError as error:
                    return str(error)
            return "no error"

        overrides = [Override(seq=1, error=ConnectionError("down"))]
        assert replay(recording_of(), looking, overrides=overrides).value == "down"

    def test_what_follows_from_an_override_is_counterfactual(self) -> None:
        overrides = [Override(seq=6, result="a")]
        events = replay(recording_of(), agent, overrides=overrides).events
        assert [event.counterfactual for event in events] == [False] * 5 + [True] * 3

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            ({"result": 1}, "names its call by one of both"),
            ({"seq": 1}, "says one of both: result=..., or error=..."),
            ({"seq": 1, "result": 1, "error": ValueError()}, "says one of both"),
            ({"name": "look_up", "occurrence": 0, "result": 1}, "occurrence counts from 1"),
            ({"name": "look_up", "seq": 1, "result": 1}, "names its call by one of both"),
            ({"name": "look_up", "occurrence": True, "result": 1}, "occurrence counts from 1; it is True"),
            ({"name": "look_up", "occurrence": "2", "result": 1}, "occurrence counts from 1; it is '2'"),
            ({"seq": 1, "occurrence": 2, "result": 1}, "occurrence counts the calls of a name"),
            ({"seq": True, "result": 1}, "seq is the number of an event; it is True"),
            ({"seq": "2", "result": 1}, "seq is the number of an event; it is '2'. Say a whole number from 1 on"),
            ({"name": 5, "result": 1}, "name is 5; it is the name of a call"),
        ],
    )
    def test_an_override_that_cannot_be_meant_is_refused(self, said: dict[str, Any], message: str) -> None:
        with pytest.raises(SetupError, match=message):
            Override(**said)

    def test_an_override_of_nothing_is_refused_with_the_nearest_name(self) -> None:
        with pytest.raises(SetupError, match="No call of the recording is named 'look_upp'; did you mean look_up"):
            replay(recording_of(), agent, overrides=[Override(name="look_upp", result=1)])
        with pytest.raises(SetupError, match="has 8 events; there is no event 9"):
            replay(recording_of(), agent, overrides=[Override(seq=9, result=1)])

    @pytest.mark.parametrize("options", [{}, {"mode": "until", "at": 7}])
    def test_an_override_of_a_call_that_is_not_there_is_refused_with_how_many_are(self, options: Any) -> None:
        twice = [Override(name="look_up", occurrence=3, result=1)]
        with pytest.raises(SetupError, match="Override of look_up: the recording has it 2 times, and no call 3 of it"):
            replay(recording_of(), agent, overrides=twice, **options)
        with pytest.raises(SetupError, match="Override of charge: the recording has it once, and no call 5 of it"):
            replay(recording_of(), agent, overrides=[Override(name="charge", occurrence=5, result="")], **options)

    def test_an_override_that_no_call_was_given_is_told_and_changes_no_exit_code(self) -> None:
        used = Override(name="look_up", occurrence=2, result={"price": 7})
        unused = Override(name="look_up", occurrence=3, result={"price": 1})
        again = replay(recording_of(), agent, mode="retest", overrides=[used, unused])
        assert (again.unused_overrides, again.value, again.exit_code) == ((unused,), "charged a", 0)
        assert "Not used: the override of look_up (call 3 of it): {'price': 1}." in again.report().splitlines()
        assert again.to_json()["unused_overrides"] == ["look_up (call 3 of it): {'price': 1}"]

    def test_an_override_that_a_pause_comes_before_is_told_too(self) -> None:
        later = Override(seq=8, result="charged nobody")
        again = replay(recording_of(), agent, mode="until", at=4, overrides=[later])
        assert (again.unused_overrides, again.exit_code) == ((later,), 3)

    def test_of_two_overrides_of_one_call_the_one_that_is_not_taken_is_told(self) -> None:
        by_name, by_seq = Override(name="look_up", result={"price": 5}), Override(seq=1, result={"price": 5})
        again = replay(recording_of(), agent, overrides=[by_seq, by_name])
        assert (again.unused_overrides, again.value) == ((by_seq,), "charged a")

    def candidates(self) -> list[Override]:
        return [
            Override(seq=2, result={"price": 5}),
            Override(name="ask", result="b"),
            Override(seq=8, result="charged nobody"),
        ]

    def test_bisect_says_which_candidate_flips_the_outcome(self) -> None:
        found = bisect(recording_of(), agent, self.candidates(), answers={"charge": "charged b"})
        assert [trial.flips for trial in found.trials] == [False, True, True]
        assert (found.baseline, [trial.outcome for trial in found.trials]) == (
            "charged a",
            ["charged a", "charged b", "charged nobody"],
        )
        assert found.report().splitlines()[0].split() == ["without", "an", "override", "'charged", "a'"]
        assert found.to_json()["trials"][1]["flips"] is True

    def test_bisect_says_which_candidate_was_not_used(self) -> None:
        candidates = [Override(name="look_up", occurrence=3, result={}), Override(seq=8, result="charged nobody")]
        found = bisect(recording_of(), agent, candidates, mode="retest")
        assert isinstance(found, Bisected)
        assert [(trial.is_used, trial.flips) for trial in found.trials] == [(False, False), (True, True)]
        assert found.report().splitlines() == [
            "          without an override         'charged a'",
            "not used  look_up (call 3 of it): {}  'charged a'",
            "flips     event 8: 'charged nobody'   'charged nobody'",
        ]
        assert [trial["used"] for trial in found.to_json()["trials"]] == [False, True]

    async def test_bisect_judges_by_the_outcome_that_is_asked_for(self) -> None:
        candidates = [Override(name="ask_async", result="b"), Override(seq=8, result="charged nobody")]
        found = await bisect_async(
            recording_of(suffix="_async"),
            agent_async,
            candidates,
            answers={"charge_async": "charged b"},
            outcome=lambda replayed: "nobody" in str(replayed.value),
        )
        assert found.flipping == (candidates[1],)
