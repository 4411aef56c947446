"""Tries within one call: what is tried again, how long it waits, and where it ends."""

from collections.abc import Callable
from typing import Unpack

import pytest

from tests.unit.sdk.scripted import (
    FakeClock,
    ScriptedService,
    about,
    answered,
    attempts,
    committed,
    executes,
    failed,
    problem,
    replays,
)
from twiceshy import (
    AttemptsExhausted,
    Guard,
    GuardUnavailable,
    NotApplied,
    Rejected,
    RetryLater,
    RunSuspended,
    ToolOptions,
    current_effect,
)
from twiceshy._transports.base import NoReply, Reply

Serve = Callable[..., tuple[Guard, ScriptedService]]


def busy(guard: Guard, tries: list[str], times: int, **options: Unpack[ToolOptions]) -> Callable[[], int]:
    """Put a tool behind the guard that is not applied the first times."""

    @guard.tool(**options)
    def pay() -> int:
        tries.append(str(current_effect().attempt))
        if len(tries) <= times:
            raise NotApplied(f"the bank is busy ({len(tries)})")
        return 14

    return pay


def pending(seconds: float) -> Reply:
    return failed("pending", retry_after_seconds=seconds)


def test_what_was_not_applied_is_tried_again_in_the_same_call_when_the_service_says(
    serve: Serve, clock: FakeClock
) -> None:
    guard, service = serve(executes(), pending(4.0), executes(), pending(7.5), executes(), committed())
    tries: list[str] = []
    with guard.run("booking-42"):
        assert busy(guard, tries, 2)() == 14
    assert clock.sleeps == [4.0, 7.5]
    assert [str(attempt) for attempt in attempts(service)] == tries
    assert len(set(tries)) == 3
    assert service.paths == ["effects", "fail", "effects", "fail", "effects", "commit"]


def test_a_wait_that_would_pass_the_deadline_is_not_begun(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), pending(6.0), executes(), pending(4.5))
    tries: list[str] = []
    with guard.run("booking-42"), pytest.raises(NotApplied, match=r"busy \(2\)") as caught:
        busy(guard, tries, 9, deadline_seconds=10)()
    assert clock.sleeps == [6.0]
    assert service.paths == ["effects", "fail", "effects", "fail"]
    assert [note.split(".")[0] for note in caught.value.__notes__] == [
        "twiceshy: nothing was applied; the same call will try again not before 4",
        "twiceshy: it was tried 2 times",
    ]


def test_the_deadline_counts_from_the_call_and_the_tools_own_time_with_it(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(), pending(1.0))

    @guard.tool(deadline_seconds=10)
    def pay() -> None:
        clock.now += 9.5
        raise NotApplied

    with guard.run("booking-42"), pytest.raises(NotApplied):
        pay()
    assert clock.sleeps == []


def test_a_deadline_of_zero_never_tries_again(serve: Serve, clock: FakeClock) -> None:
    guard, _ = serve(executes(), pending(0.0))
    with guard.run("booking-42"), pytest.raises(NotApplied):
        busy(guard, [], 1, deadline_seconds=0)()
    assert clock.sleeps == []


def test_exhausted_attempts_end_it_with_the_tools_own_error(serve: Serve) -> None:
    guard, _ = serve(executes(), pending(1.0), problem("attempts-exhausted"))
    with guard.run("booking-42"), pytest.raises(NotApplied, match=r"busy \(1\)") as caught:
        busy(guard, [], 9)()
    assert [note for note in caught.value.__notes__ if "will try again" in note] == []
    assert "pay.with_key(reopen=True)" in caught.value.__notes__[0]


def test_a_retry_time_that_moved_beyond_the_deadline_ends_it_with_the_tools_own_error(serve: Serve) -> None:
    guard, _ = serve(executes(), pending(1.0), problem("retry-later", retry_after_seconds=80.0))
    with guard.run("booking-42"), pytest.raises(NotApplied) as caught:
        busy(guard, [], 9)()
    assert "retry-later" in caught.value.__notes__[0]


def test_a_moment_too_early_is_waited_for_even_by_a_tool_that_waits_for_nobody(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(executes(), pending(1.0), problem("retry-later", retry_after_seconds=0.2), executes(),
                           committed())  # fmt: skip
    with guard.run("booking-42"):
        assert busy(guard, [], 1, wait_seconds=0)() == 14
    assert clock.sleeps == [1.0, 0.2]
    assert len(set(attempts(service))) == 3


def test_somebody_elses_success_is_the_answer(serve: Serve) -> None:
    guard, _ = serve(executes(), pending(1.0), replays(28))
    tries: list[str] = []
    with guard.run("booking-42"):
        assert busy(guard, tries, 9)() == 28
    assert len(tries) == 1


def test_a_final_answer_ends_it(serve: Serve) -> None:
    guard, service = serve(executes(), pending(1.0), executes(), failed("failed"))
    said = iter([NotApplied("busy"), Rejected("no money")])

    @guard.tool
    def pay() -> None:
        raise next(said)

    with guard.run("booking-42"), pytest.raises(Rejected, match="no money"):
        pay()
    assert [body["kind"] for body in service.bodies("/fail")] == ["not_applied", "rejected"]


def test_a_later_try_in_doubt_suspends_the_run(serve: Serve) -> None:
    guard, _ = serve(executes(), pending(1.0), executes(), failed("in_doubt"))
    said = iter([NotApplied("busy"), TimeoutError()])

    @guard.tool
    def pay() -> None:
        raise next(said)

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert isinstance(caught.value.__cause__, TimeoutError)


def test_what_keeps_the_next_try_from_beginning_shows_what_the_tool_had_raised(serve: Serve) -> None:
    guard, service = serve(executes(), pending(1.0), *[NoReply(reason="connection refused")] * 100)
    with guard.run("booking-42"), pytest.raises(GuardUnavailable) as caught:
        busy(guard, [], 9)()
    assert isinstance(caught.value.__cause__, NotApplied)
    assert service.paths[-1] == "release"


def test_reopening_is_meant_once(serve: Serve) -> None:
    guard, service = serve(executes(), pending(1.0), executes(), committed())
    tries: list[str] = []

    @guard.tool
    def pay() -> int:
        tries.append("pay")
        if len(tries) == 1:
            raise NotApplied
        return 14

    with guard.run("booking-42"):
        assert pay.with_key(reopen=True)() == 14
    assert [body.get("reopen", False) for body in service.bodies("/v1/effects")] == [True, False]


def test_an_idempotent_tool_is_tried_again_after_anything_that_proves_nothing(serve: Serve) -> None:
    guard, service = serve(executes(), pending(1.0), executes(), committed())
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})
    tries: list[str] = []

    @guard.tool(effect="idempotent")
    def switch_on() -> int:
        tries.append("on")
        if len(tries) == 1:
            raise TimeoutError
        return 1

    with guard.run("booking-42"):
        assert switch_on() == 1
    assert service.bodies("/fail")[0]["kind"] == "unknown"


def test_a_report_that_the_service_cannot_take_is_sent_once_more_without_its_data(serve: Serve) -> None:
    guard, service = serve(executes(), problem("too-large", 413), answered(200, about(state="failed")))

    @guard.tool
    def pay() -> None:
        raise Rejected("no money", data={"missing": 5})

    with guard.run("booking-42"), pytest.raises(Rejected) as caught:
        pay()
    first, second = service.bodies("/fail")
    assert first["error"] == {"type": "Rejected", "message": "no money", "data": {"missing": 5}}
    assert second["error"] == {"type": "Rejected", "message": "no money"}
    assert caught.value.data == {"missing": 5}


def test_the_errors_of_a_begin_are_still_its_own(serve: Serve) -> None:
    guard, _ = serve(problem("attempts-exhausted"), problem("retry-later", retry_after_seconds=80.0))
    with guard.run("booking-42"):
        with pytest.raises(AttemptsExhausted):
            busy(guard, [], 9)()
        with pytest.raises(RetryLater):
            busy(guard, [], 9)()
