"""Which resource a call claims, and for when."""

import pytest

from guard.core.effects import SECOND
from guard.core.resources import span_of
from twiceshy_contract.policies import ResourceRule
from twiceshy_contract.refusals import JsonValue, Refusal

TWO = 1_791_813_600 * SECOND
"""2026-10-12T14:00:00Z."""
BY_END = ResourceRule(name="room-${arguments.room}", start="/start", end="/slots/0/end")
BY_MINUTES = ResourceRule(name="calendar", start="/start", minutes="/minutes")
CALL: dict[str, JsonValue] = {
    "room": 7,
    "start": "2026-10-12T14:00:00Z",
    "slots": [{"end": "2026-10-12T16:30:00+02:00"}],
    "minutes": 30,
}


def known(**changed: JsonValue) -> dict[str, JsonValue]:
    return {"arguments": CALL | changed}


def refused(rule: ResourceRule, **changed: JsonValue) -> tuple[str, str]:
    with pytest.raises(Refusal) as caught:
        span_of(rule, known(**changed))
    return caught.value.path, caught.value.reason


def test_name_and_interval_are_read_from_the_arguments() -> None:
    span = span_of(BY_END, known())
    assert (span.resource, span.start, span.end) == ("room-7", TWO, TWO + 1800 * SECOND)
    span = span_of(BY_MINUTES, known())
    assert (span.resource, span.start, span.end) == ("calendar", TWO, TWO + 1800 * SECOND)


def test_a_tagged_date_time_and_any_time_zone_are_the_same_moment() -> None:
    assert span_of(BY_MINUTES, known(start={"$dt": "2026-10-12T16:00:00+02:00"})).start == TWO
    assert span_of(BY_MINUTES, known(minutes=0.5)).end == TWO + 30 * SECOND


@pytest.mark.parametrize(
    ("changed", "path", "reason"),
    [
        ({"start": "2026-10-12T14:00:00"}, "/arguments/start", "names no instant"),
        ({"start": 14}, "/arguments/start", "a date-time is a string"),
        ({"start": "soon"}, "/arguments/start", "not an ISO 8601 date-time"),
        ({"minutes": 0}, "/arguments/minutes", "does not lie after the start"),
        ({"minutes": -5}, "/arguments/minutes", "does not lie after the start"),
        ({"minutes": True}, "/arguments/minutes", "no number of minutes"),
        ({"minutes": "30"}, "/arguments/minutes", "no number of minutes"),
        ({"minutes": float("inf")}, "/arguments/minutes", "no number of minutes"),
        ({"minutes": 10**12}, "/arguments/minutes", "after the year 9999"),
        ({"minutes": None}, "/arguments/minutes", "no number of minutes"),
    ],
)
def test_what_is_no_interval_is_refused_with_its_place(changed: dict[str, JsonValue], path: str, reason: str) -> None:
    where, why = refused(BY_MINUTES, **changed)
    assert where == path
    assert reason in why


@pytest.mark.parametrize("slots", [[], {}, "x", [{"stop": 1}]])
def test_an_argument_that_is_missing_is_named(slots: JsonValue) -> None:
    assert refused(BY_END, slots=slots)[0] == "/arguments/slots/0/end"


def test_a_name_is_whole_and_can_be_written() -> None:
    assert "a part of the name" in refused(BY_END, room=None)[1]
    assert "control characters" in refused(BY_END, room="a\n")[1]
    assert "too long" in refused(BY_END, room="x" * 600)[1]
