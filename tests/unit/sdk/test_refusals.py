"""What the caller hears when a call may not run."""

from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    ScriptedService,
    payer,
    problem,
)
from twiceshy import (
    ArgumentsChanged,
    AttemptsExhausted,
    Guard,
    KeyUsedByAnotherTool,
    OutcomeInDoubt,
    RequestRefused,
    RunFinished,
    RunSuspended,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("attempts-exhausted", 409, AttemptsExhausted),
        ("key-used-by-another-tool", 422, KeyUsedByAnotherTool),
        ("run-finished", 409, RunFinished),
        ("unauthorized", 401, RequestRefused),
        ("too-large", 413, RequestRefused),
        ("a-code-of-the-future", 403, RequestRefused),
    ],
)
def test_a_refusal_is_raised_as_what_it_is(serve: Serve, code: str, status: int, kind: type[Exception]) -> None:
    guard, _ = serve(problem(code, status))
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"), pytest.raises(kind, match=f"The service says {code}"):
        pay(7)
    assert calls == []


def test_changed_arguments_are_named(serve: Serve) -> None:
    guard, _ = serve(problem("arguments-changed", 422, key=KEY, paths=["/amount"]))
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(ArgumentsChanged, match="arguments-changed") as caught:
        pay(7)
    assert caught.value.paths == ("/amount",)


def test_a_refused_request_says_where(serve: Serve) -> None:
    errors = [{"path": "/arguments/amount", "message": "too odd"}]
    guard, _ = serve(problem("invalid-request", 400, errors=errors))
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(RequestRefused, match="At /arguments/amount: too odd") as caught:
        pay(7)
    assert caught.value.errors == (("/arguments/amount", "too odd"),)


def test_doubt_suspends_the_run_past_except_exception(serve: Serve) -> None:
    guard, _ = serve(problem("outcome-in-doubt", key=KEY))
    calls: list[int] = []
    pay = payer(guard, calls)

    def agent() -> None:
        try:
            pay(7)
        except Exception:  # noqa: BLE001 - what an agent's loop does
            pay(8)

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        agent()
    assert calls == []
    assert caught.value.key == KEY
    assert f"twiceshy effects resolve {KEY} --as applied" in "".join(caught.value.__notes__)


def test_doubt_can_be_told_as_an_error(serve: Serve) -> None:
    guard, _ = serve(problem("outcome-in-doubt", key=KEY))
    pay = payer(guard, [], on_doubt="tell")
    with guard.run("booking-42"), pytest.raises(OutcomeInDoubt):
        pay(7)
