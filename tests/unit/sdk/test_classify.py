"""What an exception says of the world."""

import errno
import socket
import urllib.error
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from twiceshy import NotApplied, Rejected
from twiceshy._classify import judge
from twiceshy._options import ToolSpec, specify


def pay() -> None:
    """Pay."""


def spec(**options: Any) -> ToolSpec:
    given: Any = {"one_request": True, **options}
    return specify(pay, given)


class HttpError(Exception):
    """An error as HTTP clients raise it."""

    def __init__(self, **members: object) -> None:
        super().__init__("http")
        self.__dict__.update(members)


def caused(cause: BaseException) -> Exception:
    error = RuntimeError("wrapped")
    error.__cause__ = cause
    return error


def beside(context: BaseException) -> Exception:
    error = RuntimeError("raised while another was handled")
    error.__context__ = context
    return error


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "refused")


@pytest.mark.parametrize("status", [400, 404, 405, 410, 413, 415, 422])
def test_these_statuses_are_rejections(status: int) -> None:
    error = HttpError(response=SimpleNamespace(status_code=status))
    assert judge(error, spec(), "not_yet") == "rejected"


@pytest.mark.parametrize("status", [401, 403, 429])
def test_these_statuses_applied_nothing(status: int) -> None:
    assert judge(HttpError(status=status), spec(), "not_yet") == "not_applied"


@pytest.mark.parametrize("status", [402, 408, 409, 418, 423, 425, 500, 502, 503, 504])
def test_these_statuses_leave_it_unknown(status: int) -> None:
    assert judge(HttpError(status_code=status), spec(), "not_yet") == "unknown"
    assert judge(HttpError(status_code=status), spec(effect="idempotent"), "not_yet") == "unknown"


@pytest.mark.parametrize(
    ("error", "judgement"),
    [
        (REFUSED, "not_applied"),
        (socket.gaierror("no such host"), "not_applied"),
        (urllib.error.URLError(REFUSED), "not_applied"),
        (urllib.error.HTTPError("http://x", 404, "gone", Message(), None), "rejected"),
        (caused(REFUSED), "not_applied"),
        (caused(HttpError(code=422)), "rejected"),
        (HttpError(os_error=REFUSED), "not_applied"),
        (beside(REFUSED), "unknown"),
        (TimeoutError(), "unknown"),
        (caused(TimeoutError()), "unknown"),
        (ConnectionResetError(), "unknown"),
        (HttpError(code="404"), "unknown"),
        (HttpError(status=True), "unknown"),
        (ValueError(), "unknown"),
    ],
)
def test_one_request_lets_its_error_be_read(error: Exception, judgement: str) -> None:
    assert judge(error, spec(), "not_yet") == judgement


def test_without_that_promise_nothing_is_inferred() -> None:
    assert judge(REFUSED, spec(one_request=False), "not_yet") == "unknown"
    assert judge(HttpError(status=404), spec(one_request=False), "not_yet") == "unknown"


def test_the_tools_own_word_counts() -> None:
    assert judge(NotApplied(), spec(), "sent") == "not_applied"
    assert judge(Rejected(), spec(), "sending") == "rejected"


def test_the_classify_hook_comes_before_all_else() -> None:
    assert judge(Rejected(), spec(classify=lambda _: "not_applied"), "sent") == "not_applied"
    assert judge(Rejected(), spec(classify=lambda _: None), "not_yet") == "rejected"


def test_a_broken_classify_hook_leaves_it_unknown() -> None:
    assert judge(NotApplied(), spec(classify=lambda _: 1 / 0), "not_yet") == "unknown"
    assert judge(NotApplied(), spec(classify=lambda _: "yes"), "not_yet") == "unknown"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_an_interruption_leaves_it_unknown(error: BaseException) -> None:
    assert judge(error, spec(), "not_yet") == "unknown"
    assert judge(error, spec(), "not_yet") == "unknown"


def test_the_sending_mark_counts_before_the_default() -> None:
    assert judge(ValueError(), spec(), "sending") == "unknown"
    assert judge(ValueError(), spec(), "sent") == "succeeded"
