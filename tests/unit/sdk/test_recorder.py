"""Runs are recorded: opened once, sent in the background, held while nobody answers, and never lost without a word."""

import logging
import threading
from pathlib import Path

import msgspec
import pytest

from tests.unit.sdk.recording import SILENCE, LogService, deliveries, recorded, recorder_of
from tests.unit.sdk.scripted import problem
from twiceshy import (
    GuardUnavailable,
    RequestRefused,
    RunFinished,
    ToolArgumentError,
)
from twiceshy._recorder import Recorder
from twiceshy._recording_lines import line_decoder
from twiceshy._transports.base import Reply, Request


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent in the background: the test calls run_once."""
    monkeypatch.setattr(Recorder, "_run", lambda _: None)


def lookup(code: str) -> dict[str, str]:
    return {"code": code}


def test_a_recorded_run_is_opened_and_its_events_are_at_the_service_when_the_block_is_left(service: LogService) -> None:
    with recorded(service) as guard:
        with guard.run("r1") as run:
            assert run.custom("lookup", lookup, "GB") == {"code": "GB"}
            run.now()
        assert service.kinds("r1") == ["1 custom lookup", "2 result of 1", "3 time now", "4 result of 3"]
    assert [(asked.run, asked.record) for asked in service.opened] == [("r1", True)]


def test_a_run_that_is_entered_again_goes_on_with_its_log(service: LogService) -> None:
    with recorded(service) as guard:
        for _ in range(2):
            with guard.run("r1") as run:
                run.uuid4()
    assert service.kinds("r1") == ["1 uuid uuid4", "2 result of 1", "3 uuid uuid4", "4 result of 3"]
    assert service.epochs["r1"] == 2


def test_blocks_of_one_run_share_its_log_and_the_last_one_out_sends_it(service: LogService) -> None:
    with recorded(service) as guard, guard.run("r1") as outer:
        with guard.run("r1") as inner:
            inner.random()
        outer.random()
    assert len(service.opened) == 1
    assert service.kinds("r1") == ["1 random random", "2 result of 1", "3 random random", "4 result of 3"]


def test_threads_that_enter_one_run_at_once_open_it_once(service: LogService) -> None:
    ready = threading.Barrier(4)
    with recorded(service) as guard:

        def work() -> None:
            ready.wait()
            with guard.run("r1") as run:
                run.custom("lookup", lookup, "GB")
                ready.wait()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(service.opened) == 1
    assert len(service.events["r1"]) == 8


@pytest.mark.anyio
async def test_it_works_the_same_on_an_event_loop(service: LogService) -> None:
    async def ask(code: str) -> str:
        return code.lower()

    with recorded(service) as guard:
        async with guard.run("r1") as run:
            assert await run.gather(run.custom("ask", ask, "GB"), run.custom("ask", ask, "FR")) == ["gb", "fr"]
    assert service.kinds("r1") == ["1 custom ask", "2 result of 1", "3 custom ask", "4 result of 3"]


def test_events_go_out_soon_without_the_block_being_left(service: LogService) -> None:
    kept = threading.Event()

    def keep(request: Request) -> Reply:
        reply = service.keep(request)
        kept.set()
        return reply

    service.appends = [keep]
    with recorded(service) as guard, guard.run("r1") as run:
        run.random()
        assert kept.wait(5)
        assert service.kinds("r1") == ["1 random random", "2 result of 1"]


@pytest.mark.usefixtures("by_hand")
def test_large_values_go_by_their_content_and_once(service: LogService) -> None:
    text = "a long text " * 200
    with recorded(service) as guard, guard.run("r1") as run:
        run.custom("lookup", lookup, text)
        run.custom("lookup", lookup, text)
        recorder_of(guard).run_once()
        appended = [msgspec.json.decode(request.body or b"") for request in service.requests[1:]]
    (only,) = appended
    assert len(only["events"]) == 4
    assert sorted(only["blobs"].values()) == sorted([f'"{text}"', f'{{"code":"{text}"}}'])


def test_a_conversation_that_sends_itself_again_costs_its_increments(service: LogService) -> None:
    messages: list[dict[str, str]] = []

    def model(*, messages: list[dict[str, str]]) -> dict[str, str]:
        return {"role": "assistant", "content": f"answer {len(messages)} " * 500}

    raw = 0
    with recorded(service) as guard, guard.run("r1") as run:
        for turn in range(100):
            messages.append({"role": "user", "content": f"question {turn} " * 500})
            raw += len(msgspec.json.encode(messages))
            messages.append(run.llm(model, messages=messages))
    assert sum(len(request.body or b"") for request in service.requests) < raw / 25


@pytest.mark.usefixtures("by_hand")
def test_no_request_has_more_events_than_the_service_takes(service: LogService) -> None:
    with recorded(service) as guard, guard.run("r1") as run:
        for _ in range(1100):
            run.random()
        recorder_of(guard).run_once()
        sizes = [len(msgspec.json.decode(request.body or b"")["events"]) for request in service.requests[1:]]
    assert sizes == [1000, 1000, 200]


@pytest.mark.usefixtures("by_hand")
def test_values_that_do_not_fit_into_one_request_go_before_their_event(service: LogService) -> None:
    parts = {f"part_{number}": chr(97 + number) * 5_000_000 for number in range(5)}

    def take(**parts: str) -> int:
        return len(parts)

    with recorded(service) as guard, guard.run("r1") as run:
        assert run.custom("take", take, **parts) == 5
        recorder_of(guard).run_once()
        bodies = [msgspec.json.decode(request.body or b"") for request in service.requests[1:]]
        assert max(len(request.body or b"") for request in service.requests) < 16 * 2**20
    assert [(len(body["events"]), len(body["blobs"])) for body in bodies] == [(0, 1), (0, 1), (1, 3), (1, 0)]
    assert service.kinds("r1") == ["1 custom take", "2 result of 1"]


def test_an_argument_that_is_too_large_fails_before_the_call(service: LogService) -> None:
    calls: list[str] = []

    def note(*, code: str) -> None:
        calls.append(code)

    with recorded(service) as guard, guard.run("r1") as run:
        with pytest.raises(ToolArgumentError, match=r"lookup: the argument at /code cannot be recorded") as raised:
            run.custom("lookup", note, code="x" * (8 * 2**20))
        assert raised.value.path == "/code"
        run.random()
    assert calls == []
    assert service.kinds("r1") == ["1 random random", "2 result of 1"]


def test_an_argument_that_cannot_be_written_fails_before_the_call_with_its_path(service: LogService) -> None:
    def take(*, code: list[object]) -> int:
        return len(code)

    with (
        recorded(service) as guard,
        guard.run("r1") as run,
        pytest.raises(ToolArgumentError, match="lookup: the argument at /code/1/handle") as raised,
    ):
        run.custom("lookup", take, code=[1, {"handle": object()}])
    assert raised.value.path == "/code/1/handle"
    assert service.kinds("r1") == []


def test_a_result_that_cannot_be_written_reaches_the_code_and_is_kept_opaque(service: LogService) -> None:
    made = object()
    with recorded(service) as guard, guard.run("r1") as run:
        assert run.custom("make", lambda: made) is made
    (delivery,) = deliveries(service, "r1")
    assert isinstance(delivery.value, dict)
    assert delivery.value["$opaque"]["type"] == "builtins.object"


def test_while_the_service_is_away_events_are_held_and_sent_when_it_is_back(
    service: LogService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "twiceshy")
    with recorded(service) as guard:
        with guard.run("r1") as run:
            service.appends = [SILENCE, problem("unavailable", 503), SILENCE]
            run.random()
        assert service.kinds("r1") == ["1 random random", "2 result of 1"]
    said = [record.message for record in caplog.records]
    assert said == [
        "What runs record is held here, because http://guard.test does not take it: connection refused.",
        "What runs record is taken again by http://guard.test.",
    ]


def test_what_a_run_leaves_unsent_is_written_to_a_file_that_can_be_read(
    service: LogService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recorded(service, spool=tmp_path, deliver_seconds=0.2) as guard, guard.run("a/b".replace("/", "-")) as run:
        service.is_away = True
        run.custom("lookup", lookup, "x" * 2000)
    (file,) = (tmp_path / "recordings").iterdir()
    lines = [line_decoder.decode(line) for line in file.read_bytes().splitlines()]
    assert [line.members for line in lines] == [2, 2, 2, 2, 2, 1]
    told = caplog.records[-1].message
    kept = f"They are kept in {file}; `twiceshy runs import` appends them."
    assert told == f"Events 1 to 2 of run a-b were not taken by http://guard.test. {kept}"


def test_without_a_spool_it_is_said_that_events_are_lost(service: LogService, caplog: pytest.LogCaptureFixture) -> None:
    with recorded(service, deliver_seconds=0.1) as guard, guard.run("r1") as run:
        service.is_away = True
        run.random()
    assert "They are lost, because this guard has no spool." in caplog.records[-1].message


def test_a_service_that_is_silent_lets_no_recorded_run_begin(service: LogService) -> None:
    service.is_away = True
    with recorded(service, unavailable_seconds=0.1) as guard:
        with pytest.raises(GuardUnavailable, match="The run r1 is not entered, because it cannot be recorded"):
            guard.run("r1").__enter__()
        service.is_away = False
        with guard.run("r1") as run:
            run.random()
    assert len(service.events["r1"]) == 2


def test_a_run_that_is_finished_is_not_recorded(monkeypatch: pytest.MonkeyPatch, service: LogService) -> None:
    monkeypatch.setattr(service, "_open", lambda _: problem("run-finished"))
    with recorded(service) as guard, pytest.raises(RunFinished, match="Record under another name"):
        guard.run("r1").__enter__()


def test_a_refused_opening_says_why(monkeypatch: pytest.MonkeyPatch, service: LogService) -> None:
    monkeypatch.setattr(service, "_open", lambda _: problem("name-taken"))
    with recorded(service) as guard, pytest.raises(RequestRefused, match="The service says name-taken"):
        guard.run("r1").__enter__()
