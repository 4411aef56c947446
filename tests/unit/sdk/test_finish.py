"""What the service and the caller hear of a tool that returned or raised."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    ScriptedService,
    committed,
    executes,
    failed,
)
from twiceshy import (
    Guard,
    NotApplied,
    OutcomeInDoubt,
    Rejected,
    RunSuspended,
    SetupError,
    current_effect,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


@dataclass(frozen=True)
class Receipt:
    """A result with a type of its own."""

    total: Decimal


def test_not_applied_is_reported_and_the_exception_goes_on_with_a_note(serve: Serve) -> None:
    guard, service = serve(executes(), failed("pending", retry_after_seconds=4.0))

    @guard.tool(deadline_seconds=0)
    def pay() -> None:
        raise NotApplied("bank is closed", retry_after=4)

    with guard.run("booking-42"), pytest.raises(NotApplied, match="bank is closed") as caught:
        pay()
    body = service.bodies("/fail")[0]
    assert (body["kind"], body["retry_after"]) == ("not_applied", 4.0)
    assert body["error"] == {"type": "NotApplied", "message": "bank is closed"}
    assert "not before 4 seconds" in caught.value.__notes__[0]


def test_rejected_is_reported_with_its_data(serve: Serve) -> None:
    guard, service = serve(executes(), failed("failed"))

    @guard.tool
    def pay() -> None:
        raise Rejected("no money", data={"missing": Decimal("1.50")})

    with guard.run("booking-42"), pytest.raises(Rejected):
        pay()
    body = service.bodies("/fail")[0]
    assert body["kind"] == "rejected"
    assert body["error"] == {"type": "Rejected", "message": "no money", "data": {"missing": {"$dec": "1.50"}}}


def test_an_unclassified_exception_of_a_side_effect_suspends_the_run(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))

    @guard.tool
    def pay() -> None:
        raise TimeoutError("no answer")

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert service.bodies("/fail")[0]["kind"] == "unknown"
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert f"twiceshy effects resolve {KEY}" in caught.value.__notes__[0]


def test_not_applied_beside_an_unresolved_attempt_is_doubt(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"))

    @guard.tool(on_doubt="tell")
    def pay() -> None:
        raise NotApplied

    with guard.run("booking-42"), pytest.raises(OutcomeInDoubt):
        pay()


@pytest.mark.parametrize(
    ("place", "verb", "kind", "raised"),
    [
        ("before", "fail", "not_applied", ValueError),
        ("in", "fail", "unknown", RunSuspended),
        ("after", "commit", None, ValueError),
    ],
)
def test_the_sending_mark_says_what_an_exception_means(
    serve: Serve, place: str, verb: str, kind: str | None, raised: type[BaseException]
) -> None:
    state = {"before": "pending", "in": "in_doubt", "after": "succeeded"}[place]
    guard, service = serve(executes(), failed(state))

    @guard.tool
    def pay() -> None:
        effect = current_effect()
        if place == "before":
            raise ValueError
        with effect.sending():
            if place == "in":
                raise ValueError
        raise ValueError

    with guard.run("booking-42"), pytest.raises(raised):
        pay()
    body = service.bodies(f"/{verb}")[0]
    assert body.get("kind") == kind
    if verb == "commit":
        result = body["result"]
        assert isinstance(result, dict)
        assert result["$opaque"]["reason"] == "the tool raised ValueError after it had sent"


def test_a_result_that_cannot_be_written_is_kept_as_opaque(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def pay() -> Iterator[int]:
        return iter([1])

    with guard.run("booking-42"):
        assert next(pay()) == 1
    result = service.bodies("/commit")[0]["result"]
    assert isinstance(result, dict)
    assert result["$opaque"]["type"] == "builtins.list_iterator"
    assert "ResultNotKept" in caplog.text


def test_a_result_over_a_mebibyte_is_kept_as_its_digest(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def fetch() -> str:
        return "x" * 2**20

    with guard.run("booking-42"):
        assert len(fetch()) == 2**20
    result = service.bodies("/commit")[0]["result"]
    assert isinstance(result, dict)
    assert len(result["$opaque"]["sha256"]) == 64


def test_an_interrupt_is_reported_as_unknown_and_goes_on(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"))

    @guard.tool
    def pay() -> None:
        raise KeyboardInterrupt

    with guard.run("booking-42"), pytest.raises(KeyboardInterrupt):
        pay()
    assert service.bodies("/fail")[0]["kind"] == "unknown"


def test_a_failed_tools_stop_iteration_is_not_mangled(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("failed"))

    @guard.tool(classify=lambda _: "rejected")
    def pay() -> None:
        raise StopIteration

    with guard.run("booking-42"), pytest.raises(StopIteration):
        pay()


def test_a_def_that_returns_a_coroutine_is_refused(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"))

    async def work() -> int:
        return 1

    @guard.tool(on_doubt="tell")
    def pay() -> object:
        return work()

    with guard.run("booking-42"), pytest.raises(OutcomeInDoubt) as caught:
        pay()
    assert isinstance(caught.value.__cause__, SetupError)
    assert "declare it with `async def`. Do not retry" in str(caught.value)


def test_the_first_result_that_would_not_come_back_equal_is_warned_about(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    guard, _ = serve(*[executes(), committed()] * 3)

    @guard.tool
    def bare() -> Any:
        return Receipt(Decimal(1))

    @guard.tool
    def annotated() -> Receipt:
        return Receipt(Decimal(1))

    with guard.run("booking-42"):
        annotated()
        assert caplog.records == []
        bare()
        bare()
    assert [r.getMessage() for r in caplog.records] == [
        "A replay of bare would return a dict where the tool returned a Receipt. Annotate its return type."
    ]
