"""Two runs side by side: aligned by what their calls are, not by where they stand."""

from typing import Any

import pytest

from tests.unit.sdk.call_logs import Writing
from twiceshy._differences import ABSENT, Difference, differences
from twiceshy._recording import Recording
from twiceshy._run_diff import WINDOW, Pair, first_difference, run_diff


def tools(*names: Any) -> Recording:
    writing = Writing()
    for name in names:
        writing.tool(*name) if isinstance(name, tuple) else writing.tool(name)
    return writing.recording()


def shown(pair: Pair) -> tuple[str, str | None, str | None]:
    return (
        pair.verdict,
        None if pair.left is None else pair.left.intent.name,
        None if pair.right is None else pair.right.intent.name,
    )


def test_the_same_calls_with_the_same_outcomes_are_equal() -> None:
    one, other = tools("a", ("b", {"n": 1}, [2])), tools("a", ("b", {"n": 1}, [2]))
    assert [shown(pair) for pair in run_diff(one, other)] == [("equal", "a", "a"), ("equal", "b", "b")]
    assert first_difference(one, other) is None


def test_one_call_more_makes_nothing_else_look_different() -> None:
    pairs = run_diff(tools("a", "b", "c"), tools("a", "x", "b", "c"))
    assert [shown(pair) for pair in pairs] == [
        ("equal", "a", "a"), ("only_right", None, "x"), ("equal", "b", "b"), ("equal", "c", "c"),
    ]  # fmt: skip


def test_other_arguments_and_other_results_are_told_by_their_places() -> None:
    one = tools(("look", {"code": "GB-SCT", "page": 1}, []), ("end", {}, {"risk": "low"}))
    other = tools(("look", {"code": "GB", "page": 1}, ["act"]), ("end", {}, {"risk": "high", "why": "act"}))
    look, end = run_diff(one, other)
    assert (look.verdict, look.arguments) == ("changed", (Difference("/code", "GB-SCT", "GB"),))
    assert look.outcome == (Difference("/0", ABSENT, "act"),)
    assert end.arguments == ()
    assert end.outcome == (Difference("/risk", "low", "high"), Difference("/why", ABSENT, "act"))


def test_another_ending_is_told_by_its_kind() -> None:
    writings = [Writing() for _ in range(3)]
    writings[0].tool("pay", {}, 1)
    writings[1].failed(writings[1].asked("tool_call", "pay"), "Busy", "later")
    writings[2].asked("tool_call", "pay")
    done, failed, opened = (writing.recording() for writing in writings)
    assert [pair.outcome for pair in run_diff(done, failed)] == [(Difference("", "result", "error (Busy: later)"),)]
    assert [pair.outcome for pair in run_diff(opened, done)] == [(Difference("", "no outcome", "result"),)]
    assert first_difference(failed, failed) is None
    assert first_difference(opened, opened) is None


def test_a_call_that_is_made_elsewhere_says_where() -> None:
    pairs = list(run_diff(tools("a", "b", "c", "d"), tools("b", "c", "d", "a")))
    assert [shown(pair) for pair in pairs] == [
        ("only_left", "a", None),
        ("equal", "b", "b"), ("equal", "c", "c"), ("equal", "d", "d"),
        ("only_right", None, "a"),
    ]  # fmt: skip
    assert (pairs[0].moved, pairs[-1].moved) == (7, 1)


def test_what_clocks_and_chance_gave_counts_only_where_it_is_asked_for() -> None:
    writings = [Writing(), Writing()]
    for drawn, writing in enumerate(writings):
        writing.call("random", "random", {}, drawn / 4)
    one, other = (writing.recording() for writing in writings)
    assert [pair.verdict for pair in run_diff(one, other)] == ["equal"]
    (pair,) = run_diff(one, other, exact=True)
    assert pair.outcome == (Difference("", 0.0, 0.25),)


def test_one_side_may_be_empty_or_longer() -> None:
    assert [shown(pair) for pair in run_diff(tools(), tools("a"))] == [("only_right", None, "a")]
    assert [shown(pair) for pair in run_diff(tools("a", "b"), tools("a"))] == [
        ("equal", "a", "a"),
        ("only_left", "b", None),
    ]


@pytest.mark.parametrize("more", [1, WINDOW // 2 - 1])
def test_runs_meet_again_behind_a_stretch_that_only_one_has(more: int) -> None:
    rest = [("step", {"n": n}) for n in range(2 * WINDOW)]
    pairs = list(run_diff(tools(*rest), tools(*(f"x{n}" for n in range(more)), *rest)))
    assert [pair.verdict for pair in pairs] == ["only_right"] * more + ["equal"] * (2 * WINDOW)


def test_every_call_of_either_side_stands_in_the_comparison_once() -> None:
    left = [("step", {"n": n * 7 % 90}) for n in range(700)]
    right = [("step" if n % 3 else "other", {"n": n * 5 % 90}) for n in range(650)]
    pairs = list(run_diff(tools(*left), tools(*right)))
    assert [pair.left.intent.seq for pair in pairs if pair.left] == list(range(1, 1400, 2))
    assert [pair.right.intent.seq for pair in pairs if pair.right] == list(range(1, 1300, 2))


@pytest.mark.parametrize(
    ("left", "right", "found"),
    [
        (1, 1.0, []),
        (1, True, [("", 1, True)]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, [("/a/1/b", 2, 3)]),
        ({"a/b": 1, "c~": 2}, {}, [("/a~1b", 1, ABSENT), ("/c~0", 2, ABSENT)]),
        ([1], [1, 2], [("/1", ABSENT, 2)]),
        ({"$dec": "1"}, {"$dec": "2"}, [("", {"$dec": "1"}, {"$dec": "2"})]),
        ({"a": None}, {"a": {}}, [("/a", None, {})]),
    ],
)
def test_values_differ_at_the_deepest_places_that_tell_it(left: Any, right: Any, found: list[Any]) -> None:
    assert [(each.path, each.left, each.right) for each in differences(left, right)] == found
