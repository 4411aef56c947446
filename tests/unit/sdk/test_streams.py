"""A model's stream passes through piece by piece and is one outcome in the record, however it ends."""

import gc
from collections.abc import Callable, Iterator
from typing import Any, Self

import msgspec
import pytest

from tests.unit.sdk.recording import LogService, deliveries, recorded
from twiceshy import Guard, RecordedError, Recording, RecordMismatch
from twiceshy._replay import replay
from twiceshy_contract.runs import RunView


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def guard(service: LogService) -> Iterator[Guard]:
    with recorded(service) as guard:
        yield guard


class Piece(msgspec.Struct):
    """What a client library makes of a chunk."""

    text: str


class Client:
    """A stream as client libraries have them."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = iter(pieces)
        self.response = "200 OK"
        self.closed = 0

    def __iter__(self) -> Iterator[Piece]:
        return map(Piece, self.pieces)

    def close(self) -> None:
        """Count."""
        self.closed += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def words(*, prompt: str) -> Iterator[str]:
    yield from prompt.split()


def of(service: LogService, run: str = "r1") -> list[tuple[str, Any, list[Any]]]:
    """Of each stream its outcome, its end and its pieces, without their times."""
    found: list[tuple[str, Any, list[Any]]] = []
    for delivery in deliveries(service, run):
        value = delivery.value
        if isinstance(value, dict) and "stream" in value:
            stream = value["stream"]
            times = [chunk[0] for chunk in stream["chunks"]]
            assert times == sorted(times)
            found.append((delivery.outcome, stream["end"], [chunk[1:] for chunk in stream["chunks"]]))
    return found


def recording(service: LogService, run: str = "r1") -> Recording:
    events = service.events[run]
    head = RunView(
        run=run, id="0", state="open", effects=0, started_at="2026-01-01T00:00:00Z", ended_at=None, events=len(events)
    )
    return Recording.from_events(head, events, service.blobs)


def test_the_first_piece_is_there_before_the_second_is_made(service: LogService, guard: Guard) -> None:
    made: list[int] = []

    def count() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    with guard.run("r1") as run:
        stream = run.llm(count)
        assert made == []
        assert next(stream) == 0
        assert made == [0]
        assert list(stream) == [1, 2]
    assert of(service) == [("result", "complete", [[0], [1], [2]])]


def test_a_stream_is_replayed_piece_by_piece(service: LogService, guard: Guard) -> None:
    def agent(ask: Callable[..., Any] = words) -> list[str]:
        with guard.run("r1") as run:
            return [f"<{word}>" for word in run.llm(ask, prompt="one two three")]

    assert agent() == ["<one>", "<two>", "<three>"]

    def never(*, prompt: str) -> Iterator[str]:
        raise AssertionError("a replay asks no model")

    never.__qualname__ = "words"
    replayed = replay(recording(service), lambda: agent(never))
    assert replayed.value == ["<one>", "<two>", "<three>"]
    assert replayed.is_same


def test_pieces_have_their_types_again_in_a_replay(service: LogService, guard: Guard) -> None:
    def ask() -> Client:
        return Client("a", "b")

    def agent() -> list[Piece]:
        with guard.run("r1") as run:
            return list(run.llm(ask))

    assert agent() == [Piece("a"), Piece("b")]
    kind = f"{__name__}.Piece"
    assert of(service) == [("result", "complete", [[{"text": "a"}, kind], [{"text": "b"}, kind]])]
    assert replay(recording(service), agent).value == [Piece("a"), Piece("b")]


def test_what_else_a_stream_has_stays_in_reach(guard: Guard) -> None:
    client = Client("a")
    with guard.run("r1") as run:
        with run.llm(lambda: client) as stream:
            assert stream.response == "200 OK"
            assert next(iter(stream)) == Piece("a")
        assert client.closed == 1


def test_a_consumer_that_stops_is_recorded_as_such(service: LogService, guard: Guard) -> None:
    def agent() -> str:
        with guard.run("r1") as run:
            for word in run.llm(words, prompt="one two three"):
                if word == "two":
                    break
            run.now()
            return word

    assert agent() == "two"
    assert of(service) == [("result", "stopped", [["one"], ["two"]])]
    replayed = replay(recording(service), agent)
    assert (replayed.value, replayed.is_same) == ("two", True)


def test_a_consumer_that_stops_at_the_end_of_the_block_is_recorded(service: LogService, guard: Guard) -> None:
    with guard.run("r1") as run:
        next(iter(run.llm(words, prompt="one two")))
    assert of(service) == [("result", "stopped", [["one"]])]


def test_reading_on_where_the_record_stopped_is_told(service: LogService, guard: Guard) -> None:
    def agent(most: int) -> list[str]:
        with guard.run("r1") as run:
            read = [word for word, _ in zip(run.llm(words, prompt="one two three"), range(most), strict=False)]
            run.now()
            return read

    agent(1)
    replayed = replay(recording(service), lambda: agent(5))
    assert isinstance(replayed.error, RecordMismatch)
    assert "reads its stream further than it did when it was recorded" in str(replayed.error)


def test_a_stream_that_breaks_is_recorded_as_cut_and_breaks_again(service: LogService, guard: Guard) -> None:
    def ask() -> Iterator[str]:
        yield "one"
        raise ConnectionError("reset by peer")

    def agent() -> tuple[list[str], str]:
        read: list[str] = []
        with guard.run("r1") as run:
            try:
                read.extend(run.llm(ask))
            except ConnectionError as error:
                return read, str(error)
        return read, ""

    assert agent() == (["one"], "reset by peer")
    assert of(service) == [("error", "cut", [["one"]])]
    replayed = replay(recording(service), agent)
    assert (replayed.value, replayed.is_same) == ((["one"], "reset by peer"), True)


def test_an_interrupted_stream_has_no_outcome(service: LogService, guard: Guard) -> None:
    def ask() -> Iterator[str]:
        yield "one"
        raise KeyboardInterrupt

    def agent() -> list[str]:
        with guard.run("r1") as run:
            return list(run.llm(ask))

    with pytest.raises(KeyboardInterrupt):
        agent()
    assert service.kinds("r1") == [f"1 llm_call {ask.__qualname__}"]


def test_a_stream_that_an_interruption_leaves_has_no_outcome(service: LogService, guard: Guard) -> None:
    def agent() -> None:
        with guard.run("r1") as run:
            for _ in run.llm(words, prompt="one two"):
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent()
    gc.collect()
    assert service.kinds("r1") == ["1 llm_call words"]


def test_a_piece_that_cannot_be_written_is_kept_opaque(service: LogService, guard: Guard) -> None:
    def ask() -> Iterator[object]:
        yield "one"
        yield object()

    with guard.run("r1") as run:
        assert len(list(run.llm(ask))) == 2
    ((_, _, pieces),) = of(service)
    assert pieces[1][0]["$opaque"]["type"] == "builtins.object"


def test_a_plain_answer_is_no_stream(service: LogService, guard: Guard) -> None:
    def ask(*, prompt: str) -> dict[str, list[str]]:
        return {"choices": [prompt]}

    with guard.run("r1") as run:
        assert run.llm(ask, prompt="hello") == {"choices": ["hello"]}
    (delivery,) = deliveries(service, "r1")
    assert delivery.value == {"choices": ["hello"]}


def test_an_error_of_an_unknown_type_is_raised_as_recorded(service: LogService, guard: Guard) -> None:
    def agent() -> str:
        class Local(Exception):
            pass

        def ask() -> Iterator[str]:
            yield "one"
            raise Local("gone")

        ask.__qualname__ = "ask"
        with guard.run("r1") as run:
            try:
                list(run.llm(ask))
            except Exception as error:  # noqa: BLE001 - its type is the question
                return type(error).__name__
        return ""

    assert agent() == "Local"
    assert replay(recording(service), agent).value == RecordedError.__name__
