"""What a run's writer holds of its log: bounded, and whole, whatever was refused meanwhile."""

import threading

import msgspec
import pytest

from tests.unit.sdk.logs import head
from twiceshy import GuardUnavailable, RecordingDiverged, ToolArgumentError
from twiceshy._boundaries import Boundary, Outcome
from twiceshy._log import Log
from twiceshy._payloads import digest_of
from twiceshy._writer import Append, Writer
from twiceshy_contract.problems import Problem
from twiceshy_contract.refusals import JsonValue

LARGE = "y" * 4000


class Waking:
    """Hears when a writer wants to be sent."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.is_woken = threading.Event()

    def __call__(self, writer: Writer, seconds: float) -> None:
        self.seconds.append(seconds)
        self.is_woken.set()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Much is 10 kB here, and more than 20 kB is too much."""
    monkeypatch.setattr("twiceshy._writer._MOST_WAITING_BYTES", 10_000)


@pytest.fixture
def waking() -> Waking:
    return Waking()


@pytest.fixture
def writer(waking: Waking) -> Writer:
    return Writer(head("r1", epoch=1), waking)


def ask(log: Log, text: str) -> int:
    return log.intent(Boundary(kind="custom", name="ask", arguments={"text": text})).seq


def fill(log: Log) -> int:
    """Write until no more is taken; return how many events there are."""
    number = 0

    def ask_on() -> None:
        nonlocal number
        while number < 20:
            ask(log, f"{number}{LARGE}")
            number += 1

    with pytest.raises(GuardUnavailable, match=r"ask did not run: 2\d+ bytes of the log of run 'r1' wait to be taken"):
        ask_on()
    return number


def told(append: Append | None) -> tuple[list[int], list[str]]:
    assert append is not None
    body = msgspec.json.decode(append.body)
    return [event["seq"] for event in body["events"]], [text[1:3] for text in body["blobs"].values()]


def problem(status: int, code: str) -> Problem:
    return Problem(type=f"/problems/{code}", title="t", status=status, detail="The service says no.")


def test_a_call_that_was_refused_for_want_of_room_goes_with_its_values_when_it_is_made_again(writer: Writer) -> None:
    log = Log(writer)
    count = fill(log)
    assert count == 5
    writer.acknowledged(count + 1)
    assert ask(log, f"{count}{LARGE}") == count + 1
    assert told(writer.next_append()) == ([6], ["5y"])


def test_calls_that_are_refused_for_want_of_room_are_not_held(writer: Writer) -> None:
    log = Log(writer)
    fill(log)
    for number in range(5):
        with pytest.raises(GuardUnavailable):
            ask(log, f"again {number} {LARGE}")
    assert writer.kept.pending == {}


def test_a_conversation_goes_on_whole_after_it_was_refused_for_want_of_room(writer: Writer) -> None:
    log = Log(writer)
    count = fill(log)
    said: list[JsonValue] = [f"{number} {'z' * 600}" for number in range(3)]
    talk = Boundary(kind="llm_call", name="m", arguments={"messages": said})
    with pytest.raises(GuardUnavailable):
        log.intent(talk)
    writer.acknowledged(count + 1)
    log.intent(talk)
    seqs, blobs = told(writer.next_append())
    assert (seqs, sorted(blobs)) == ([count + 1], ['"i', "0 ", "1 ", "2 "])


def test_an_outcome_is_taken_however_much_waits(writer: Writer) -> None:
    log = Log(writer)
    entry = log.intent(Boundary(kind="custom", name="ask"))
    count = fill(log)
    log.delivery(entry, Outcome(kind="result", value=LARGE))
    assert writer.last == count + 2


def test_a_call_with_too_large_an_argument_leaves_nothing_behind(writer: Writer) -> None:
    log = Log(writer)
    with pytest.raises(ToolArgumentError):
        log.intent(Boundary(kind="custom", name="ask", arguments={"a": LARGE, "b": "x" * (8 * 2**20)}))
    assert writer.kept.pending == {}
    assert log.intent(Boundary(kind="custom", name="ask", arguments={"a": LARGE})).seq == 1
    assert told(writer.next_append()) == ([1], ["yy"])


def test_who_waits_for_room_goes_on_once_there_is_some(writer: Writer, waking: Waking) -> None:
    log = Log(writer)
    for number in range(3):
        ask(log, f"{number}{LARGE}")
    assert writer.is_full
    waking.is_woken.clear()
    waiting = threading.Thread(target=writer.make_room, args=(30.0,))
    waiting.start()
    assert waking.is_woken.wait(5)
    assert waking.seconds[-1] == 0.0
    writer.acknowledged(3)
    waiting.join(5)
    assert not waiting.is_alive()
    assert not writer.is_full


def test_who_waits_for_room_in_vain_is_told_so(writer: Writer) -> None:
    log = Log(writer)
    for number in range(3):
        ask(log, f"{number}{LARGE}")
    with pytest.raises(GuardUnavailable, match=r"the next call did not run: 1\d+ bytes of the log of run 'r1' wait"):
        writer.make_room(0.01)


def test_what_is_given_up_wakes_who_waits_for_room_and_closes_the_log(writer: Writer, waking: Waking) -> None:
    log = Log(writer)
    for number in range(3):
        ask(log, f"{number}{LARGE}")
    waking.is_woken.clear()
    waiting = threading.Thread(target=writer.make_room, args=(30.0,))
    waiting.start()
    assert waking.is_woken.wait(5)
    assert [item.event.seq for item in writer.take_left()] == [1, 2, 3]
    waiting.join(5)
    assert not waiting.is_alive()
    with pytest.raises(RecordingDiverged, match="Event 1 of run 'r1' and what followed it were given up"):
        ask(log, "more")
    assert not writer.has_waiting


def test_a_log_of_which_nothing_was_given_up_goes_on(writer: Writer) -> None:
    log = Log(writer)
    assert writer.take_left() == []
    assert ask(log, "more") == 1


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "forbidden")])
def test_a_refused_credential_ends_the_log_of_a_fork_and_of_no_other_run(status: int, code: str) -> None:
    fork = Writer(head("f1", epoch=1), Waking(), "fork.1.2")
    ordinary = Writer(head("r1", epoch=1), Waking())
    refusal = problem(status, code)
    assert (fork.hear(refusal), ordinary.hear(refusal)) == (True, False)
    assert (fork.is_refused, ordinary.is_refused) == (True, False)


def test_a_request_takes_no_more_than_a_few_megabytes_of_many_events(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("twiceshy._writer._REQUEST_BYTES", 9_000)
    log = Log(writer)
    for number in range(4):
        ask(log, f"{number}{LARGE}")
    assert told(writer.next_append()) == ([1, 2], ["0y", "1y"])
    writer.acknowledged(3)
    assert told(writer.next_append()) == ([3, 4], ["2y", "3y"])


def test_a_digest_depends_on_no_call_that_came_before_or_beside() -> None:
    def texts(number: int) -> dict[str, JsonValue]:
        return {"messages": [f"{number}-{at}-{'z' * 60}" for at in range(20 + number % 30)]}

    alone = [digest_of(texts(number)) for number in range(60)]
    beside: list[list[str]] = [[] for _ in range(4)]
    ready = threading.Barrier(4)

    def work(mine: list[str]) -> None:
        ready.wait()
        mine.extend(digest_of(texts(number)) for number in range(60))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in beside]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert beside == [alone] * 4
