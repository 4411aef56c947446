"""Which error each problem of a begin is, and with which word of a call it is overruled."""

from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    FakeClock,
    ScriptedService,
    answered,
    committed,
    executes,
    failed,
    payer,
    problem,
)
from twiceshy import (
    ApprovalExpired,
    AttemptsExhausted,
    EffectError,
    ForkSuspended,
    Guard,
    GuardError,
    HoldLost,
    LoopLimitReached,
    OutcomeInDoubt,
    PolicyDenied,
    RecordExpired,
    ResourceHeld,
    RunFinished,
    RunSuspended,
    SagaOver,
    SiblingInDoubt,
)

Serve = Callable[..., tuple[Guard, ScriptedService]]


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("approval-expired", 409, ApprovalExpired),
        ("attempts-exhausted", 409, AttemptsExhausted),
        ("expired", 410, RecordExpired),
        ("forbidden", 403, PolicyDenied),
        ("hold-lost", 409, HoldLost),
        ("loop-limit", 409, LoopLimitReached),
        ("resource-held", 409, ResourceHeld),
        ("run-finished", 409, RunFinished),
        ("saga-over", 409, SagaOver),
        ("sibling-in-doubt", 409, SiblingInDoubt),
    ],
)
def test_each_problem_has_an_error_of_its_own_that_names_the_effect(
    serve: Serve, code: str, status: int, kind: type[EffectError]
) -> None:
    guard, _ = serve(problem(code, status, key="ab" * 32))
    with guard.run("booking-42"), pytest.raises(kind, match=f"pay did not run: The service says {code}") as caught:
        payer(guard, [])(7)
    assert type(caught.value) is kind
    assert (caught.value.key, caught.value.effect.tool, caught.value.effect.run) == ("ab" * 32, "pay", "booking-42")


def test_a_call_that_may_not_run_live_suspends_a_fork_past_every_except_exception(serve: Serve) -> None:
    guard, _ = serve(problem("run-suspended"))
    with guard.run("fork-1"), pytest.raises(ForkSuspended) as caught:
        payer(guard, [])(7)
    assert not isinstance(caught.value, Exception)


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("approval-expired", "pay.with_key(reopen=True)(...)"),
        ("attempts-exhausted", "pay.with_key(reopen=True)(...)"),
        ("sibling-in-doubt", "pay.with_key(distinct=True)(...)"),
    ],
)
def test_a_problem_that_a_word_overrules_says_how_that_is_written(serve: Serve, code: str, word: str) -> None:
    guard, _ = serve(problem(code))
    with guard.run("booking-42"), pytest.raises(GuardError) as caught:
        payer(guard, [])(7)
    assert word in str(caught.value)


def test_a_held_resource_is_waited_for_while_the_service_says_when(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(problem("resource-held", retry_after_seconds=4.0), executes(), committed())
    with guard.run("booking-42"):
        assert payer(guard, [])(7) == 14
    assert clock.sleeps == [4.0]
    assert service.paths == ["effects", "effects", "commit"]


def test_a_resource_that_is_held_for_longer_than_the_call_waits_is_refused_at_once(
    serve: Serve, clock: FakeClock
) -> None:
    guard, _ = serve(problem("resource-held", retry_after_seconds=4.0))
    with guard.run("booking-42"), pytest.raises(ResourceHeld):
        payer(guard, [], wait_seconds=3)(7)
    assert clock.sleeps == []


def test_what_a_person_set_in_the_registry_for_doubt_wins_over_the_code(serve: Serve) -> None:
    guard, service = serve(problem("outcome-in-doubt"), problem("outcome-in-doubt"))
    service.declaration = answered(200, {"declaration": {"class": "side_effect", "on_doubt": "tell"}})
    pay = payer(guard, [], on_doubt="suspend")
    with guard.run("booking-42"):
        for _ in range(2):
            with pytest.raises(OutcomeInDoubt):
                pay(7)


def test_what_a_person_set_for_doubt_counts_for_the_doubt_that_the_tool_itself_leaves(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))
    service.declaration = answered(200, {"declaration": {"class": "side_effect", "on_doubt": "tell"}})

    @guard.tool
    def pay() -> None:
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(OutcomeInDoubt):
        pay()


def test_without_a_word_of_the_registry_the_code_says_what_doubt_means(serve: Serve) -> None:
    guard, service = serve(problem("outcome-in-doubt"))
    service.declaration = answered(200, {"declaration": {"class": "side_effect", "on_doubt": None}})
    with guard.run("booking-42"), pytest.raises(RunSuspended):
        payer(guard, [])(7)


def test_distinct_and_the_person_for_whom_the_agent_acts_are_sent(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), executes(), committed())

    @guard.tool
    def pay(amount: int) -> int:
        return amount * 2

    with guard.run("booking-42", requester="alice"):
        assert pay.with_key(distinct=True)(7) == 14
    with guard.run("booking-43"):
        assert pay(7) == 14
    first, second = service.bodies("/v1/effects")
    assert (first["distinct"], first["requester"]) == (True, "alice")
    assert "distinct" not in second
    assert "requester" not in second


def test_a_person_whose_name_cannot_be_taken_is_refused_before_anything_begins(serve: Serve) -> None:
    guard, service = serve()
    with pytest.raises(GuardError, match="requester"):
        guard.run("booking-42", requester="\n")
    assert service.requests == []
