"""What a retest says of calls that are made with other arguments, and go on because something answers them."""

from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import agent, ask, charge, guard, look_up, notify, recording_of
from twiceshy import Divergence, Override
from twiceshy._differences import Difference
from twiceshy._replay import replay

PATIENCE = 0.05
TO_GO_ON = "give a result for it to go on: answers={'look_up': ...}"
CHEAPER = Override(name="look_up", occurrence=2, result={"price": 3})


def stand_in(prompt: str) -> str:
    return "b" if "3" in prompt else "a"


def test_an_answered_call_is_the_recorded_one_with_other_arguments() -> None:
    again = replay(
        recording_of(), agent, mode="retest", llm=stand_in, overrides=[CHEAPER], answers={"charge": "charged b"}
    )
    (found,) = again.differences
    assert isinstance(found, Divergence)
    assert (found.class_, found.seq, again.exit_code) == ("arguments", 7, 1)
    assert found.message == "charge is called with other arguments than at event 7; an answer stands in for it."
    assert found.arguments == (Difference("/order", "a", "b"), Difference("/amount", 5, 3))
    assert "answers" not in found.advice
    assert "retest" not in found.advice
    assert again.report().splitlines()[:4] == [
        "Replay (retest) of run contract-7: 8 events recorded.",
        f"It diverged: {found.message.removesuffix('.')} (/order: 'a' -> 'b', /amount: 5 -> 3).",
        "Something was put in the place of what was recorded: what follows from it did not happen.",
        "It came to 'charged b'.",
    ]


def test_a_stand_in_that_is_asked_otherwise_is_a_note() -> None:
    again = replay(
        recording_of(), agent, mode="retest", llm=stand_in, overrides=[CHEAPER], answers={"charge": "charged b"}
    )
    (note,) = [one for one in again.divergences if one.is_note]
    assert (note.class_, note.seq) == ("arguments", 5)
    assert note.message == "ask was called with other arguments than at event 5, and is answered anew."
    assert note.arguments == (Difference("/prompt", "which of 5 and 7?", "which of 5 and 3?"),)


def test_a_recorded_call_that_is_made_later_keeps_its_own_outcome() -> None:
    def looks_at_another_first() -> list[int]:
        with guard.run(RUN):
            return [look_up(order)["price"] for order in ("c", "a", "b")]

    again = replay(recording_of(), looks_at_another_first, mode="retest", answers={"look_up": {"price": 9}})
    assert again.value == [9, 5, 7]
    assert [(one.class_, one.seq) for one in again.differences] == [("missing", 5), ("missing", 7)]
    assert [(one.class_, one.message) for one in again.divergences if one.is_note] == [
        ("extra", "look_up is not in the record in this way: an answer stands in for it.")
    ]


def test_a_call_of_another_scope_is_no_recorded_one() -> None:
    def elsewhere() -> str:
        with guard.run(RUN) as run:
            look_up("a")
            look_up("b")
            run.llm(ask, prompt="which of 5 and 7?")
            with run.scope("worker"):
                return charge("b", 7)

    again = replay(recording_of(), elsewhere, mode="retest", answers={"charge": "charged b"})
    assert [(one.class_, one.seq) for one in again.differences] == [("missing", 7)]


def test_what_went_on_is_named_too_where_the_code_is_stopped_later() -> None:
    def changed() -> str:
        with guard.run(RUN):
            look_up("c")
            return charge("c", 9)

    again = replay(recording_of(), changed, mode="retest", answers={"look_up": {"price": 9}})
    assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 1), ("arguments", 7)]
    assert "answers={'charge': ...}" in again.differences[1].advice
    assert "retest" not in again.differences[1].advice


def test_an_override_by_name_answers_a_call_with_other_arguments() -> None:
    def changed() -> int:
        with guard.run(RUN):
            return int(look_up("c")["price"])

    again = replay(recording_of(), changed, mode="retest", overrides=[Override(name="look_up", result={"price": 1})])
    assert again.value == 1
    first = again.differences[0]
    assert first.message == "look_up is called with other arguments than at event 1; an override answers it."


def test_an_offline_fork_notes_it_since_nothing_after_the_cut_is_held_to_the_record() -> None:
    changed = Override(seq=6, result="b")
    again = replay(
        recording_of(), agent, mode="fork", at=5, llm=stand_in, overrides=[changed], answers={"charge": "charged b"}
    )
    assert (again.value, again.exit_code) == ("charged b", 0)
    assert [(one.class_, one.seq) for one in again.divergences] == [("arguments", 7)]


def test_a_call_that_returns_nothing_is_the_recorded_one_as_well() -> None:
    log = Writing(RUN)
    log.tool("notify", {"text": "charged a"})

    def notifies() -> None:
        with guard.run(RUN):
            notify("charged b")

    (found,) = replay(log.recording(), notifies, mode="retest").differences
    assert (found.class_, found.arguments) == ("arguments", (Difference("/text", "charged a", "charged b"),))


def test_a_prompt_that_is_asked_live_is_the_recorded_one_with_other_arguments() -> None:
    def asks_live(prompt: str) -> str:
        return "a"

    asks_live.__qualname__ = ask.__qualname__

    def changed() -> str:
        with guard.run(RUN) as run:
            look_up("a")
            look_up("b")
            return charge(run.llm(asks_live, prompt="the cheaper one?"), 5)

    again = replay(recording_of(), changed, mode="retest", on_miss="live")
    assert [(one.class_, one.seq) for one in again.differences] == [("arguments", 5)]
    assert again.differences[0].message == "ask is called with other arguments than at event 5; the model is asked."


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({}, "Look for what the arguments are made of"),
        ({"mode": "retest"}, f"If this follows from the change that you test, {TO_GO_ON}"),
        (
            {"overrides": [Override(seq=2, result={})]},
            f"This may follow from the override. To see what is next, {TO_GO_ON}",
        ),
    ],
)
def test_the_advice_depends_on_what_was_asked(options: Any, advice: str) -> None:
    def other() -> None:
        with guard.run(RUN):
            look_up("a")
            look_up("c")

    (found, *_) = replay(recording_of(), other, patience=PATIENCE, **options).differences
    assert (found.class_, found.seq, found.advice.startswith(advice)) == ("arguments", 3, True)
