"""Every begin of a recorded run brings what its log has not acknowledged, and names its writer's epoch."""

import threading
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.recording import SILENCE, LogService, recorded, recorder_of
from tests.unit.sdk.scripted import answered, problem
from twiceshy import Guard, GuardUnavailable, InProgress, NoRun, RecordingDiverged, RunTakenOver
from twiceshy._recorder import Recorder
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.events import Intent


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent in the background."""
    monkeypatch.setattr(Recorder, "_run", lambda _: None)


@pytest.fixture
def guard(service: LogService) -> Any:
    with recorded(service, unavailable_seconds=0.2, deliver_seconds=0.2) as guard:
        yield guard


def begins(service: LogService) -> list[dict[str, Any]]:
    return [msgspec.json.decode(request.body or b"") for request in service.requests if request.path == "/v1/effects"]


def seqs(begin: dict[str, Any]) -> list[int]:
    return [event["seq"] for event in begin.get("events", [])]


def test_a_begin_brings_all_events_up_to_its_intent(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        assert service.kinds("r1")[-1] == f"{len(service.events['r1'])} tool_call pay"
        return amount * 2

    with guard.run("r1") as run:
        run.random()
        assert pay(3) == 6
        run.random()
        assert pay(4) == 8
    assert [seqs(begin) for begin in begins(service)] == [[1, 2, 3], [4, 5, 6, 7]]
    assert [begin["epoch"] for begin in begins(service)] == [1, 1]


def test_a_begin_that_brings_nothing_new_still_names_the_epoch(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount * 2

    def outer() -> int:
        recorder_of(guard).run_once()
        return pay(3)

    with guard.run("r1") as run:
        assert run.custom("outer", outer) == 6
    (begin,) = begins(service)
    assert (begin["epoch"], seqs(begin)) == (1, [])
    assert service.kinds("r1") == ["1 custom outer"]


def test_what_an_effect_inside_of_a_boundary_needs_is_brought_too(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount * 2

    with guard.run("r1") as run:
        run.custom("outer", lambda: pay(3))
    assert seqs(begins(service)[0]) == [1]


def test_values_kept_by_content_go_before_the_begin(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(note: str) -> str:
        return "paid"

    with guard.run("r1"):
        pay("x" * 2000)
    paths = [request.path for request in service.requests if request.method == "POST"]
    assert paths[:3] == ["/v1/runs", "/v1/runs/r1/events", "/v1/effects"]
    assert seqs(begins(service)[0]) == []
    assert len(service.blobs) == 1


def test_many_events_go_before_the_begin(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1") as run:
        for _ in range(150):
            run.random()
        pay(1)
    assert seqs(begins(service)[0]) == []
    assert len(service.events["r1"]) == 301


def test_events_make_no_call_too_large(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(note: str) -> int:
        return len(note)

    with guard.run("r1") as run:
        for _ in range(90):
            run.custom("lookup", str, "y" * 900)
        assert pay("x" * 900_000) == 900_000
    assert len(service.events["r1"]) == 181


def test_a_retry_of_one_attempt_sends_the_same_body(service: LogService, guard: Guard) -> None:
    def silent(request: Request) -> NoReply:
        return SILENCE

    service.answers = [silent]

    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1"):
        pay(1)
    bodies = [request.body for request in service.requests if request.path == "/v1/effects"]
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]


def test_a_begin_that_is_asked_again_has_its_intent_kept_before_whatever_another_thread_writes(
    service: LogService, guard: Guard
) -> None:
    def disturbed(request: Request) -> Reply:
        thread = threading.Thread(target=run.custom, args=("note", str, "x" * 2000))
        thread.start()
        thread.join()
        return problem("retry-later", 409, retry_after_seconds=0.0)

    service.answers = [disturbed]

    @guard.tool(wait_seconds=5)
    def pay(amount: int) -> list[str]:
        return service.kinds("r1")

    with guard.run("r1") as run:
        assert pay(1) == ["1 tool_call pay", "2 custom note", "3 result of 2"]


def test_a_begin_is_not_sent_once_its_log_was_refused_meanwhile(service: LogService, guard: Guard) -> None:
    def refused_meanwhile(request: Request) -> Reply:
        service.take_over("r1")
        recorder_of(guard).run_once()
        return problem("retry-later", 409, retry_after_seconds=0.0)

    service.answers = [refused_meanwhile]

    @guard.tool(wait_seconds=5)
    def pay(amount: int) -> None: ...

    with guard.run("r1"), pytest.raises(RunTakenOver):
        pay(1)
    assert len(begins(service)) == 1


def test_events_are_kept_back_until_the_service_says_that_it_has_them(service: LogService, guard: Guard) -> None:
    def keep_one(request: Request) -> Reply:
        events = msgspec.json.decode(request.body or b"")["events"]
        service.events["r1"].append(msgspec.convert(events[0], Intent))
        return problem("in-progress", next_seq=2)

    service.answers = [problem("in-progress"), keep_one]

    @guard.tool(wait_seconds=0)
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1"):
        for _ in range(2):
            with pytest.raises(InProgress):
                pay(1)
        pay(1)
    assert [seqs(begin) for begin in begins(service)] == [[1], [1, 2, 3], [2, 3, 4, 5]]


def test_who_was_taken_over_begins_nothing_any_more(service: LogService, guard: Guard) -> None:
    ran: list[int] = []

    @guard.tool
    def pay(amount: int) -> None:
        ran.append(amount)

    with guard.run("r1") as run:
        service.take_over("r1")
        with pytest.raises(RunTakenOver, match="pay did not run: The service says run-taken-over") as raised:
            pay(1)
        assert raised.value.effect.run == "r1"
        with pytest.raises(RunTakenOver):
            pay(2)
        with pytest.raises(RunTakenOver):
            run.now()
    assert ran == []
    assert len(begins(service)) == 1


def test_a_tool_that_ran_before_the_takeover_commits(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        service.take_over("r1")
        return amount

    with guard.run("r1"):
        assert pay(1) == 1
    assert "commit" in service.paths


def test_a_log_that_diverged_lets_nothing_begin(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1"):
        service.answers = [problem("recording-diverged")]
        with pytest.raises(RecordingDiverged):
            pay(1)


def test_a_log_that_cannot_be_sent_lets_nothing_begin(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(note: str) -> int:
        return len(note)

    with guard.run("r1"):
        service.declaration = answered(200, {"declaration": {"class": "side_effect"}})
        service.appends = [SILENCE] * 50
        with pytest.raises(GuardUnavailable):
            pay("x" * 2000)
    assert begins(service) == []


def test_a_read_is_recorded_without_a_begin(service: LogService, guard: Guard) -> None:
    @guard.tool(effect="read")
    def look(code: str) -> str:
        return code.lower()

    with guard.run("r1"):
        assert look("GB") == "gb"
        recorder_of(guard).run_once()
    assert begins(service) == []
    assert service.kinds("r1") == ["1 tool_call look", "2 result of 1"]


def test_a_thread_without_the_run_is_told_which_run_is_recorded(service: LogService, guard: Guard) -> None:
    raised: list[NoRun] = []

    @guard.tool
    def pay(amount: int) -> int:
        return amount

    def work() -> None:
        try:
            pay(1)
        except NoRun as error:
            raised.append(error)

    with guard.run("r1"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "The run r1 is recorded here now, and this call would be missing there" in str(raised[0])


@pytest.mark.anyio
async def test_a_thread_of_the_run_is_recorded(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount

    async with guard.run("r1") as run:
        assert await run.to_thread(pay, 3) == 3
        recorder_of(guard).run_once()
    assert service.kinds("r1") == ["1 tool_call pay", "2 result of 1"]


@pytest.mark.anyio
async def test_an_async_tool_brings_its_events(service: LogService, guard: Guard) -> None:
    @guard.tool
    async def pay(amount: int) -> int:
        return amount

    async with guard.run("r1") as run:
        run.uuid4()
        assert await pay(3) == 3
    assert seqs(begins(service)[0]) == [1, 2, 3]


def test_a_run_that_is_not_recorded_begins_as_before(service: LogService) -> None:
    guard = Guard("http://guard.test", transport=service, spool=None)

    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1"):
        pay(1)
    (begin,) = begins(service)
    assert "epoch" not in begin
    assert "events" not in begin
