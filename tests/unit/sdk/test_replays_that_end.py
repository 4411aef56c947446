"""Nothing acts in a replay from beside the run, and nothing that it leaves behind acts later."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.unit.sdk.call_logs import head
from tests.unit.sdk.replays import RUN, recorded, unsent
from twiceshy import Recording, ReplayStopped, replay
from twiceshy._payloads import digest_of
from twiceshy_contract.events import Delivery, Event, Intent

guard = unsent()
happened: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    happened.clear()


@guard.tool(scope="tenant")
def close(what: str) -> str:
    """Act on the world."""
    happened.append(what)
    return what


@guard.tool(effect="read")
def read(what: str) -> str:
    """Look at the world."""
    happened.append(what)
    return what


def closed() -> str:
    return close.with_key(business_key="order-7")("order-7")


def look(at: int) -> int:
    return at


def looked(number: int) -> int:
    with guard.run(RUN) as run:
        return run.custom("look", look, number)


@pytest.fixture
def recording() -> Recording:
    return recorded(lambda: looked(1))[1]


def in_a_pool(call: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def in_a_thread(call: Callable[[], object]) -> object:
    thread = threading.Thread(target=call, name="beside")
    thread.start()
    thread.join()
    return None


def on_a_loop(call: Callable[[], object]) -> object:
    async def there() -> object:
        return await asyncio.get_running_loop().run_in_executor(None, call)

    return asyncio.run(there())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("beside", [in_a_pool, in_a_thread, on_a_loop])
@pytest.mark.parametrize("call", [closed, lambda: read("GB")])
def test_what_a_thread_asks_for_without_the_run_never_runs(
    beside: Callable[[Callable[[], object]], object], call: Callable[[], object], recording: Recording
) -> None:
    def agent() -> int:
        try:
            beside(call)
        except Exception:  # noqa: BLE001 - as an agent goes another way round
            happened.append("went another way")
        return looked(1)

    replayed = replay(recording, agent)
    assert happened == []
    assert not replayed.is_same


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_generator_that_ends_with_the_code_acts_on_nothing(recording: Recording) -> None:
    def agent() -> int:
        def lines() -> Iterator[int]:
            try:
                yield 1
            finally:
                closed()

        kept = lines()
        next(kept)
        return looked(2)

    replayed = replay(recording, agent)
    assert not replayed.is_same
    del replayed
    assert happened == []


def test_a_thread_that_outlives_the_replay_is_refused_and_named(
    recording: Recording, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, is_over = threading.Event(), threading.Event()
    heard: list[BaseException] = []

    def later() -> None:
        go_on.wait(10)
        try:
            closed()
        except BaseException as error:  # noqa: BLE001 - whatever it is told
            heard.append(error)
        is_over.set()

    def agent() -> int:
        threading.Thread(target=later, name="left-behind").start()
        return looked(1)

    assert replay(recording, agent).value == 1
    assert "left-behind" in caplog.text
    go_on.set()
    assert is_over.wait(10)
    assert (happened, [isinstance(error, ReplayStopped) for error in heard]) == ([], [True])


def test_what_the_record_leaves_out_is_in_neither_the_log_nor_the_report_of_a_replay() -> None:
    @guard.tool(effect="read", name="pay_by_card")
    def pay(card: dict[str, str], amount: int) -> str:
        return "paid"

    def agent(amount: int) -> str:
        with guard.run(RUN):
            return pay({"number": "SECRET4111"}, amount)

    masked: dict[str, Any] = {"card": {"number": "[redacted]"}, "amount": 5}
    events: list[Event] = [
        Intent(seq=1, at=0, kind="tool_call", name="pay_by_card", digest=digest_of(masked), arguments=masked),
        Delivery(seq=2, at=0, intent=1, outcome="result", value="paid"),
    ]
    recording = Recording.from_events(head(RUN, events=2), events, {})
    same, other = replay(recording, lambda: agent(5)), replay(recording, lambda: agent(6))
    assert (same.is_same, other.is_same) == (True, False)
    for replayed in (same, other):
        log = replayed.log
        kept = [log.arguments(event) for event in log.events if isinstance(event, Intent)]
        assert "SECRET4111" not in f"{replayed.report()} {kept}"


def test_an_error_comes_back_with_its_notes() -> None:
    def fails() -> None:
        error = ValueError("no")
        error.add_note("look at the account")
        raise error

    def agent() -> list[str]:
        with guard.run(RUN) as run:
            try:
                run.custom("fails", fails)
            except ValueError as error:
                return error.__notes__
        return []

    value, recording = recorded(agent)
    assert replay(recording, agent).value == value == ["look at the account"]
