"""What a replay must have done: checks that fail with the timeline in hand."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.call_logs import Writing
from twiceshy._assertions import Expectation
from twiceshy._recording import Recording
from twiceshy.exceptions import SetupError


class Played(msgspec.Struct, frozen=True):
    """A replay that is over."""

    recording: Recording
    log: Recording
    value: Any = None
    error: BaseException | None = None
    differences: tuple[str, ...] = ()


def contract(code: str = "GB-SCT", found: tuple[str, ...] = (), *, flags: bool = False) -> Recording:
    writing = Writing()
    writing.tool("load", {"contract": 7}, {"text": "…", "code": code})
    writing.tool("lookup", {"jurisdiction": code, "since": {"$dt": "2026-01-01T00:00:00+00:00"}, "o": [1]}, [*found])
    writing.tool("flag" if flags else "file", {"contract": 7, "risk": "high" if flags else "low"})
    return writing.recording()


def played(**more: Any) -> Played:
    return Played(contract(), contract(), **more)


OLD_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
LOOKED = (
    "Called lookup with jurisdiction 'GB-SCT', since 2026-01-01 00:00:00Z, o [1]; it returned nothing (empty list)."
)
HOLDING: list[Callable[[Expectation], Expectation]] = [
    lambda expected: expected.called("lookup").called("load", times=1).called("flag", times=0),
    lambda expected: expected.not_called("flag").before("load", "file").in_order("load", "file"),
    lambda expected: expected.with_arguments("lookup", {"jurisdiction": "GB-SCT", "since": OLD_YEAR}),
    lambda expected: expected.with_arguments("lookup", {"/o/0": 1, "o": [1]}),
    lambda expected: expected.outcome({"risk": "low"}).unchanged(),
]


@pytest.mark.parametrize("check", HOLDING)
def test_a_check_that_holds_returns_the_expectation(check: Callable[[Expectation], Expectation]) -> None:
    expected = Expectation(played(value={"risk": "low"}))
    assert check(expected) is expected


FAILING: list[tuple[Callable[[Expectation], Expectation], str]] = [
    (lambda expected: expected.called("lokup"), "lokup was not called; did you mean lookup?"),
    (lambda expected: expected.called("load", times=2), "load was called once, not twice."),
    (lambda expected: expected.not_called("file"), "file was called, at 5."),
    (lambda expected: expected.before("file", "load"), "file was first called at 5, after load at 1."),
    (lambda expected: expected.before("load", "pay"), "pay was not called."),
    (lambda expected: expected.in_order("file", "load"), "load was not called after file."),
    (
        lambda expected: expected.with_arguments("lookup", {"jurisdiction": "GB", "/o/1": 2, "o": [1]}),
        """No call of lookup had these arguments. The nearest differs at:
   /jurisdiction: 'GB' is expected, and there is 'GB-SCT'
   /o/1: 2 is expected, and there is nothing""",
    ),
    (
        lambda expected: expected.outcome({"risk": "high"}),
        "The agent returned another value than expected.\n   /risk: 'high' is expected, and there is 'low'",
    ),
    (
        lambda expected: expected.outcome(str),
        """The agent returned another value than expected.
   expected: <class 'str'>
   returned: {'risk': 'low'}""",
    ),
    (lambda expected: expected.raised(ValueError), "The agent raised no ValueError: it returned {'risk': 'low'}."),
]  # fmt: skip


@pytest.mark.parametrize(("check", "said"), FAILING)
def test_a_check_that_fails_says_what_is_wrong_and_what_was_called(
    check: Callable[[Expectation], Expectation], said: str
) -> None:
    with pytest.raises(AssertionError, match="^" + re.escape(said)) as failed:
        check(Expectation(played(value={"risk": "low"})))
    assert str(failed.value)[len(said) :].splitlines() == [
        "",
        "Called: load, lookup, file.",
        "All of run contract-7, the same as the recording:",
        "       1  tool_call  1.5 ms",
        "          Called load with contract 7; it returned {text: '…', code: 'GB-SCT'}.",
        "       3  tool_call  1.5 ms  empty",
        f"          {LOOKED}",
        "       5  tool_call  1.5 ms  empty",
        "          Called file with contract 7, risk 'low'; it returned nothing.",
    ]


def test_a_failure_marks_the_first_difference_to_the_recording() -> None:
    with pytest.raises(AssertionError) as failed:
        Expectation(Played(contract(), contract("GB", ("act",), flags=True))).unchanged()
    assert str(failed.value).splitlines() == [
        "The run is not what was recorded.",
        "Called: load, lookup, flag.",
        "What was called in run contract-7, with the first difference to the recording marked >>:",
        ">>     1  tool_call  1.5 ms",
        "          Called load with contract 7; it returned {text: '…', code: 'GB'}.",
        "          outcome /code: 'GB-SCT' was recorded, now it is 'GB'",
        "       3  tool_call  1.5 ms",
        "          Called lookup with jurisdiction 'GB', since 2026-01-01 00:00:00Z, o [1]; it returned ['act'].",
        "          argument /jurisdiction: 'GB-SCT' was recorded, now it is 'GB'",
        "          outcome /0: 'act' is new",
        "       -  missing here; recorded at 5: Called file with contract 7, risk 'low'; it returned nothing.",
        "       5  tool_call  1.5 ms  empty",
        "          Called flag with contract 7, risk 'high'; it returned nothing.",
        "          not in the recording here",
    ]


def test_a_run_that_came_to_something_else_is_not_unchanged() -> None:
    with pytest.raises(AssertionError, match=r"^The run is not what was recorded: it came to low\nCalled: load, "):
        Expectation(played(differences=("it came to low",))).unchanged()


def test_only_the_surroundings_of_a_difference_are_shown_in_a_long_run() -> None:
    writings = [Writing(), Writing()]
    for at, writing in enumerate(writings):
        for n in range(500):
            writing.tool("step", {"n": n}, "other" if (n, at) == (300, 1) else n)
    with pytest.raises(AssertionError) as failed:
        Expectation(Played(writings[0].recording(), writings[1].recording())).called("pay")
    lines = str(failed.value).splitlines()
    assert lines[3] == "          … 294 calls before, the same as recorded"
    assert ">>   601  tool_call  1.5 ms" in lines
    assert lines[-1] == "          … 193 more calls"
    assert len(lines) < 40


def test_an_error_of_the_agent_is_said_with_what_it_explains() -> None:
    expected = Expectation(played(error=ValueError("no funds")))
    assert expected.raised(ValueError, "funds") is expected
    with pytest.raises(AssertionError, match=r"^The agent raised ValueError: no funds, not KeyError with 'x'\."):
        expected.raised(KeyError, "x")
    with pytest.raises(AssertionError, match=r"^The agent did not return 3: it raised ValueError: no funds"):
        expected.outcome(3)
    with pytest.raises(AssertionError, match=r"^pay was not called.\nCalled: .*\nThe agent ended with ValueError"):
        expected.called("pay")


def test_a_recording_is_checked_for_what_it_holds_and_for_nothing_else() -> None:
    recorded = Expectation(contract())
    recorded.called("lookup").with_arguments("file", {"risk": "low"})
    with pytest.raises(AssertionError, match="All of run contract-7, what was recorded:"):
        recorded.called("pay")
    for check in (recorded.unchanged, lambda: recorded.outcome(1), lambda: recorded.raised(ValueError)):
        with pytest.raises(SetupError, match="Replay it first"):
            check()
    with pytest.raises(SetupError, match="No recorded argument can be <object"):
        recorded.with_arguments("file", {"risk": object()})
    with pytest.raises(AssertionError, match="Nothing was called in run contract-7"):
        Expectation(Writing().recording()).called("pay")
