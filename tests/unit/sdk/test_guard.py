"""Settings, runs and the public face."""

import asyncio
import inspect
import pickle
import re
import threading
import traceback
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import twiceshy
from tests.unit.sdk.scripted import ScriptedService, answered, committed, executes, problem
from twiceshy import (
    EffectRef,
    Guard,
    GuardError,
    GuardUnavailable,
    NoEffect,
    NoRun,
    OutcomeNotDelivered,
    Rejected,
    RequestRefused,
    RunSuspended,
    SetupError,
    ToolArgumentError,
    _guard,
    exceptions,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
ERRORS: dict[str, type[BaseException]] = {
    name: value
    for name, value in vars(exceptions).items()
    if inspect.isclass(value)
    and issubclass(value, BaseException)
    and name in exceptions.__all__
    and not name.startswith("_")
}
RUN = {"run": "booking-42", "id": "x", "state": "finished"}


def test_everything_public_is_listed_in_order() -> None:
    assert twiceshy.__all__ == sorted(twiceshy.__all__)
    public = {
        name for name, value in vars(twiceshy).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(twiceshy.__all__)
    assert set(ERRORS) | {"EffectRef"} <= set(twiceshy.__all__)


def test_every_error_is_in_the_drawing_under_its_base() -> None:
    drawing = (exceptions.__doc__ or "").splitlines()
    at = {re.sub(r"^[ │├└─]*", "", line).split(" ")[0]: number for number, line in enumerate(drawing)}
    for name, error in ERRORS.items():
        base = error.__bases__[0].__name__
        if base in ERRORS:
            assert at[base] < at[name]
        else:
            assert drawing[at[name]].startswith(f"    {name}")


@pytest.mark.parametrize("error", [GuardError, SetupError, NoRun, NoEffect, RunSuspended])
def test_an_errors_docstring_is_its_default_message(error: Callable[..., BaseException]) -> None:
    made = error(effect=EffectRef(tool="pay")) if error is RunSuspended else error()
    assert str(made) == inspect.cleandoc(error.__doc__ or "")


def test_a_traceback_names_an_error_by_the_door() -> None:
    assert {error.__module__ for error in (*ERRORS.values(), EffectRef)} == {"twiceshy.exceptions"}
    shown = traceback.format_exception_only(
        twiceshy.ApprovalAwaited("a person must decide", effect=EffectRef(tool="pay"))
    )
    assert shown == ["twiceshy.exceptions.ApprovalAwaited: a person must decide\n"]


def test_an_error_survives_pickling() -> None:
    effect = EffectRef(tool="pay", key="0f" * 32, attempt=UUID(int=1), fence=1)
    for error in (
        RunSuspended("stop", effect=effect),
        OutcomeNotDelivered("lost", effect=effect, result=[1], has_result=True),
        Rejected("no", data={"a": 1}, type="Declined"),
        ToolArgumentError("bad", path="/a"),
    ):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made two lines above
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_without_a_service_the_guard_is_embedded_over_a_file_of_this_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TWICESHY_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    assert Guard().url == f"sqlite:///{tmp_path}/twiceshy.db"
    assert Guard("sqlite:///a/b%20c.db").url == f"sqlite:///{tmp_path}/a/b%20c.db"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8700",
        "http://",
        "http://a:99999",
        "http://u:p@a",
        "http://a?b",
        "mysql://u:p@a/b",
        "postgresql://u:p@a:b/c",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro",
        "sqlite:a.db",
    ],
)
def test_what_is_no_service_url_is_refused(url: str) -> None:
    with pytest.raises(SetupError, match="is not a service URL") as caught:
        Guard(url)
    assert "u:p" not in str(caught.value)


def test_a_path_in_the_place_of_a_url_is_shown_as_it_was_said() -> None:
    with pytest.raises(SetupError, match=r"'/Home/Me/Guard\.DB' is not a service URL"):
        Guard("/Home/Me/Guard.DB")


def test_a_password_is_not_shown() -> None:
    assert Guard("postgresql://u:secret@h:5432/d?sslmode=require").url == "postgresql://u@h:5432/d"


def test_a_variable_that_is_no_setting_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_TOKNES", "a")
    with pytest.raises(SetupError) as caught:
        Guard("http://elsewhere:1")
    assert str(caught.value) == (
        "TWICESHY_TOKNES is not a setting; did you mean TWICESHY_TOKENS? Unset it or correct it."
    )


def test_an_argument_that_there_is_not_is_refused_with_the_nearest() -> None:
    misspelt: dict[str, Any] = {"deliver_second": 3}
    with pytest.raises(TypeError) as caught:
        Guard("http://elsewhere:1", **misspelt)
    assert str(caught.value) == "Guard takes no argument 'deliver_second'; did you mean deliver_seconds?"
    named = set(inspect.signature(Guard).parameters) - {"options"}
    assert named | set(_guard.GuardOptions.__annotations__) == set(_guard._ARGUMENTS)


def test_an_option_that_there_is_not_is_refused_with_the_nearest(serve: Serve) -> None:
    guard, _ = serve()
    misspelt: dict[str, Any] = {"efect": "read", "q": 1}
    with pytest.raises(SetupError, match=r"no option efect; did you mean effect\? There is no option q\. The options"):
        guard.tool(**misspelt)(lambda: None)


def test_url_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_URL", "http://elsewhere:1/")
    assert Guard().url == "http://elsewhere:1"
    monkeypatch.setenv("TWICESHY_TOKEN", "a\nb")
    with pytest.raises(SetupError, match="TWICESHY_TOKEN"):
        Guard()


def test_a_block_leaves_its_run_open(serve: Serve) -> None:
    guard, service = serve()
    with guard.run("booking-42"):
        pass
    assert service.requests == []


def test_a_run_is_finished_when_asked(serve: Serve) -> None:
    guard, service = serve(answered(200, RUN), answered(200, RUN))
    with guard.run("a b?"):
        pass
    guard.run("a b?").finish()
    with guard.run("a b?", finish=True):
        pass
    assert [request.path for request in service.requests] == ["/v1/runs/a%20b%3F/finish"] * 2


async def test_a_run_is_finished_when_asked_in_async_code(serve: Serve) -> None:
    guard, service = serve(answered(200, RUN), answered(200, RUN))
    async with guard.run("booking-42", finish=True) as run:
        pass
    await run.finish_async()
    assert service.paths == ["finish", "finish"]


def test_a_block_that_raises_leaves_its_run_open(serve: Serve) -> None:
    guard, service = serve()
    with pytest.raises(ValueError, match="oh"), guard.run("booking-42", finish=True):
        raise ValueError("oh")
    assert service.requests == []


def test_a_run_without_any_call_is_opened_and_finished(serve: Serve) -> None:
    guard, service = serve(problem("not-found", 404), answered(201, RUN), answered(200, RUN))
    guard.run("booking-42").finish()
    assert service.paths == ["finish", "runs", "finish"]


def test_a_run_that_cannot_be_finished_says_so(serve: Serve) -> None:
    guard, _ = serve(problem("not-possible"), *[NoReply(reason="gone")] * 100)
    with pytest.raises(RequestRefused, match="is not finished"):
        guard.run("booking-42").finish()
    with pytest.raises(GuardUnavailable, match="is not finished"):
        guard.run("booking-42").finish()


@pytest.mark.parametrize("name", ["a/b", ".", ".."])
def test_a_name_that_is_none_is_refused_where_it_is_said(serve: Serve, name: str) -> None:
    guard, service = serve()
    with pytest.raises(SetupError, match=re.escape(repr(name))):
        guard.run(name)
    with pytest.raises(SetupError, match=re.escape(repr(name))):
        guard.tool(name=name)(lambda: None)
    assert service.requests == []


def test_a_run_is_of_its_guard_and_the_innermost_counts(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), executes(), committed())
    other, _ = serve()

    @guard.tool
    def pay(n: int) -> None: ...

    with guard.run("outer"):
        with guard.run("inner"), other.run("foreign"):
            pay(1)
        pay(2)
    assert [body["run"] for body in service.bodies("/v1/effects")] == ["inner", "outer"]
    with other.run("foreign"), pytest.raises(NoRun):
        pay(3)


def test_a_plain_thread_is_refused_and_a_copied_context_is_not(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    errors: list[NoRun] = []

    @guard.tool
    def pay() -> None: ...

    def lost() -> None:
        try:
            pay()
        except NoRun as error:
            errors.append(error)

    with guard.run("booking-42"):
        here = copy_context()
        for thread in (threading.Thread(target=lost), threading.Thread(target=here.run, args=(pay,))):
            thread.start()
            thread.join()
    assert [all(way in str(error) for way in ("guard.run", "business_key", "to_thread")) for error in errors] == [True]
    assert service.paths == ["effects", "commit"]


async def test_to_thread_carries_the_run(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def pay() -> int:
        return 1

    async with guard.run("booking-42"):
        assert await asyncio.to_thread(pay) == 1
    assert service.bodies("/v1/effects")[0]["run"] == "booking-42"


async def test_a_guard_is_a_context_manager_of_both_kinds(serve: Serve) -> None:
    guard, service = serve()
    with guard:
        pass
    async with guard:
        pass
    assert service.closed == 2
