"""Whatever a tool raises is reported, and reaches the caller."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Unpack

import pytest

from tests.unit.sdk.scripted import ScriptedService, committed, executes, failed
from twiceshy import Guard, NotApplied, Rejected, RunSuspended, ToolOptions

Serve = Callable[..., tuple[Guard, ScriptedService]]


class Unspeakable(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("broken")


class Untouchable(Exception):
    """Has members that cannot be read."""

    @property
    def response(self) -> object:
        raise RuntimeError("not now")


@dataclass(frozen=True)
class Frozen(Exception):
    """Takes no notes."""

    code: int


class Undumpable:
    """Data that cannot be written."""

    def model_dump(self, **_: object) -> object:
        raise Unspeakable


class NotNow(NotApplied):
    """Says when in a way that cannot be read."""

    @property
    def retry_after(self) -> Any:
        raise RuntimeError("not now")

    @retry_after.setter
    def retry_after(self, value: Any) -> None: ...


Misspoken: Any = type("Misspoken", (Exception,), {"__str__": lambda _: 5})
"""An exception that is shown as something that is no text."""


def reported(
    serve: Serve, error: BaseException, state: str, **options: Unpack[ToolOptions]
) -> tuple[dict[str, Any], BaseException]:
    """Let a tool raise; return what was reported of it and what the caller saw."""
    guard, service = serve(executes(), failed(state))

    @guard.tool(**options)
    def pay() -> None:
        raise error

    with guard.run("booking-42"), pytest.raises(BaseException) as caught:  # noqa: PT011 - whatever it is
        pay()
    body: dict[str, Any] = service.bodies("/fail")[0]
    return body, caught.value


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (Unspeakable(), "(the message of this Unspeakable cannot be read: its __str__ raised ValueError)"),
        (Misspoken(), "(the message of this Misspoken cannot be read: its __str__ raised TypeError)"),
        (ValueError("\ud800 x"), "? x"),
    ],
)
def test_an_exception_that_cannot_be_shown_is_reported_and_chained(
    serve: Serve, error: Exception, message: str
) -> None:
    body, seen = reported(serve, error, "in_doubt")
    assert body["kind"] == "unknown"
    assert body["error"] == {"type": type(error).__name__, "message": message}
    assert isinstance(seen, RunSuspended)
    assert seen.__cause__ is error


def test_an_exception_with_unreadable_members_is_unknown(serve: Serve) -> None:
    error = Untouchable("oh")
    body, seen = reported(serve, error, "in_doubt", one_request=True)
    assert (body["kind"], body["error"]) == ("unknown", {"type": "Untouchable", "message": "oh"})
    assert seen.__cause__ is error


def test_an_exception_that_takes_no_notes_reaches_the_caller(serve: Serve) -> None:
    error = Frozen(5)
    body, seen = reported(serve, error, "failed", classify=lambda _: "rejected")
    assert body["kind"] == "rejected"
    assert seen is error


@pytest.mark.parametrize(
    ("given", "kept"), [("\ud800", "?"), (5, "Rejected"), (None, "Rejected"), ("", "Rejected"), ("x" * 201, "x" * 200)]
)
def test_a_rejections_odd_type_is_mended_and_the_rejection_stays_one(serve: Serve, given: Any, kept: str) -> None:
    error = Rejected("no", type=given)
    body, seen = reported(serve, error, "failed")
    assert (body["kind"], body["error"]) == ("rejected", {"type": kept, "message": "no"})
    assert seen is error


@pytest.mark.parametrize("data", [Undumpable(), object(), math.nan, {1: 2}, "x" * 2**19])
def test_a_rejections_odd_data_is_left_out_and_the_rejection_stays_one(serve: Serve, data: object) -> None:
    body, seen = reported(serve, Rejected("no", data=data), "failed")
    assert (body["kind"], body["error"]) == ("rejected", {"type": "Rejected", "message": "no"})
    assert isinstance(seen, Rejected)


@pytest.mark.parametrize(
    ("given", "sent"),
    [(3, 3.0), (timedelta(seconds=3), 3.0), (Decimal("1.5"), 1.5), (0, 0.0), (math.inf, 86_400.0), (None, None)],
)
def test_a_duration_says_when_to_try_again(
    serve: Serve, given: Any, sent: float | None, caplog: pytest.LogCaptureFixture
) -> None:
    body, _ = reported(serve, NotApplied("busy", retry_after=given), "pending")
    assert (body["kind"], body.get("retry_after")) == ("not_applied", sent)
    assert caplog.records == []


@pytest.mark.parametrize("given", ["30", -5, timedelta(seconds=-1), math.nan, True, [], Decimal("sNaN")])
def test_what_is_no_duration_is_ignored_with_a_warning(
    serve: Serve, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    body, seen = reported(serve, NotApplied("busy", retry_after=given), "pending")
    assert (body["kind"], body.get("retry_after")) == ("not_applied", None)
    assert isinstance(seen, NotApplied)
    assert ["A retry_after is ignored" in record.getMessage() for record in caplog.records] == [True]


def test_a_retry_after_that_cannot_be_read_or_was_set_later_is_ignored(serve: Serve) -> None:
    body, _ = reported(serve, NotNow("busy"), "pending")
    assert (body["kind"], body.get("retry_after")) == ("not_applied", None)
    late: Any = NotApplied("busy")
    late.retry_after = "soon"
    body, _ = reported(serve, late, "pending")
    assert (body["kind"], body.get("retry_after")) == ("not_applied", None)


def test_a_result_whose_dump_raises_oddly_is_kept_as_opaque(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def pay() -> Undumpable:
        return Undumpable()

    with guard.run("booking-42"):
        pay()
    result: Any = service.bodies("/commit")[0]["result"]
    assert result["$opaque"]["type"] == "tests.unit.sdk.test_odd_exceptions.Undumpable"


def test_an_interruption_of_the_report_keeps_the_tools_own_exception_visible(serve: Serve) -> None:
    def interrupts(_: object) -> Any:
        raise KeyboardInterrupt

    guard, _ = serve(executes(), interrupts)

    @guard.tool
    def pay() -> None:
        raise ValueError("oh")

    with guard.run("booking-42"), pytest.raises(KeyboardInterrupt) as caught:
        pay()
    assert isinstance(caught.value.__context__, ValueError)
