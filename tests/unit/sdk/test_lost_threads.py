"""A thread that lost the run around it does not call tools past the recording without a word."""

import contextvars
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.sdk.recording import LogService, recorded
from twiceshy import Guard, NoRun


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def guard(service: LogService) -> Iterator[Guard]:
    with recorded(service) as guard:
        yield guard


def in_a_pool(call: Callable[[], Any]) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_read_in_a_thread_without_the_run_is_refused_while_a_run_is_recorded(
    service: LogService, guard: Guard
) -> None:
    @guard.tool(effect="read")
    def look(code: str) -> str:
        return code

    with guard.run("r1"), pytest.raises(NoRun) as refused:
        in_a_pool(lambda: look("GB"))
    assert str(refused.value) == (
        "look did not run: this thread does not see the run around it.\n\n"
        "The run r1 is recorded here now, and this call would be missing there: `await run.to_thread(...)` keeps it, "
        "and in a pool of your own `contextvars.copy_context().run`."
    )
    assert service.kinds("r1") == []
    assert in_a_pool(lambda: look("GB")) == "GB", "no run is recorded any more"


def test_a_call_that_carries_the_context_of_the_run_is_recorded(service: LogService, guard: Guard) -> None:
    @guard.tool(effect="read")
    def look(code: str) -> str:
        return code

    with guard.run("r1"):
        context = contextvars.copy_context()
        assert in_a_pool(lambda: context.run(look, "GB")) == "GB"
    assert service.kinds("r1") == ["1 tool_call look", "2 result of 1"]


def test_a_run_that_is_not_recorded_lets_its_threads_read(guard: Guard) -> None:
    @guard.tool(effect="read")
    def look(code: str) -> str:
        return code

    with guard.run("r1", record=False):
        assert in_a_pool(lambda: look("GB")) == "GB"


def test_a_business_key_in_such_a_thread_is_said_once(guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount

    keyed = pay.with_key(business_key="order-7")
    with guard.run("r1"), caplog.at_level(logging.WARNING, "twiceshy"):
        assert [in_a_pool(lambda: keyed(3)) for _ in range(2)] == [3, 3]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("pay is called in a thread that sees no run around it.\n\nThe run r1 is recorded here now")
