"""What becomes of an append, as a function of the log and of what is asked."""

import hashlib

import msgspec
import pytest

from guard.core.recording import (
    Addition,
    Boundary,
    Diverged,
    Expired,
    Gap,
    Log,
    TakenOver,
    Unfounded,
    check_order,
    entered,
    rule,
    written,
)
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.refusals import Refusal

DIGEST = "ab" * 32


def intent(seq: int, name: str = "lookup") -> Intent:
    return Intent(seq=seq, at=5, kind="tool_call", name=name, digest=DIGEST)


def delivery(seq: int, of: int) -> Delivery:
    return Delivery(seq=seq, at=6, intent=of, outcome="result", value=1)


LOG = Log(head=2, epoch=3)
EVENTS = [written(event) for event in (intent(1), delivery(2, 1), intent(3), delivery(4, 3))]
KEPT = {1: EVENTS[0].digest, 2: EVENTS[1].digest}


def test_an_event_is_written_as_json_and_named_by_the_digest_of_that() -> None:
    event = Intent(seq=1, at=5, kind="time", name="now", digest=DIGEST, arguments={"b": 1, "a": [None]})
    text = (
        '{"phase":"intent","seq":1,"at":5,"kind":"time","name":"now","digest":"' + DIGEST + '",'
        '"arguments":{"b":1,"a":[null]}}'
    ).encode()
    assert written(event).body == text
    assert written(event).digest == hashlib.sha256(text).digest()
    assert written(msgspec.json.decode(text, type=Event)).body == text


def test_what_goes_on_from_the_head_is_added() -> None:
    assert rule(LOG, 3, EVENTS[2:], {}) == Addition(events=tuple(EVENTS[2:]))
    assert rule(LOG, 3, EVENTS, KEPT) == Addition(events=tuple(EVENTS[2:]))


def test_what_is_there_already_adds_nothing() -> None:
    assert rule(LOG, 3, EVENTS[:2], KEPT) == Addition(events=())
    assert rule(LOG, 3, [], {}) == Addition(events=())


def test_another_event_of_a_number_diverges_before_anything_is_added() -> None:
    assert rule(LOG, 3, [written(intent(1, "other")), *EVENTS[1:]], KEPT) == Diverged(seq=1)
    assert rule(LOG, 3, EVENTS, {1: KEPT[1]}) == Diverged(seq=2)


def test_what_lies_behind_a_gap_is_not_taken() -> None:
    assert rule(LOG, 3, EVENTS[3:], {}) == Gap(head=2, seq=4)


@pytest.mark.parametrize("epoch", [2, 4])
def test_only_the_present_writer_appends(epoch: int) -> None:
    assert rule(LOG, epoch, EVENTS[2:], {}) == TakenOver(epoch=3)


def test_a_log_that_has_expired_takes_nothing() -> None:
    assert rule(Log(head=2, epoch=3, is_expired=True), 3, EVENTS[2:], {}) == Expired()


def test_events_of_a_request_follow_each_other() -> None:
    check_order([])
    check_order([intent(7), intent(8), delivery(9, 7)])
    for events, at in (
        ([intent(7), intent(9)], 1),
        ([intent(1), intent(2), intent(2)], 2),
        ([intent(2), intent(1)], 1),
    ):
        with pytest.raises(Refusal, match="send them in order and without a gap") as refused:
            check_order(events)
        assert refused.value.steps == ("events", at, "seq")


def test_a_delivery_is_of_the_boundary_of_its_intent() -> None:
    events = [written(event) for event in (intent(3, "pay"), delivery(4, 3), delivery(5, 1))]
    pay, time = Boundary("tool_call", "pay"), Boundary("time", "now")
    assert entered(events, {1: time}, ()) == [pay, pay, time]


@pytest.mark.parametrize(
    ("events", "seq", "reason"),
    [
        ((delivery(3, 2),), 3, "event 2 is no intent of this run before it"),
        ((delivery(3, 4), intent(4)), 3, "event 4 is no intent of this run before it"),
        ((delivery(3, 3),), 3, "event 3 is no intent of this run before it"),
        ((intent(3), delivery(4, 3), delivery(5, 4)), 5, "event 4 is no intent of this run before it"),
        ((delivery(3, 1),), 3, "the outcome of event 1 was delivered before"),
        ((intent(3), delivery(4, 3), delivery(5, 3)), 5, "the outcome of event 3 was delivered before"),
    ],
)
def test_a_delivery_without_an_intent_of_its_own_is_unfounded(events: tuple[Event, ...], seq: int, reason: str) -> None:
    result = entered([written(event) for event in events], {1: Boundary("time", "now")}, {1})
    assert result == Unfounded(seq=seq, reason=reason)
