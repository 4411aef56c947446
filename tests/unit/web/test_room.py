"""Room for requests and for their bodies: begins are put off first, small bodies last, and all is given back."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from guard.service.measures import Measures
from guard.service.queues import Overloaded
from guard.service.use_cases import UseCases
from guard.web.room import MOST_BEGINS, MOST_BYTES, MOST_REQUESTS, SMALL_BYTES, Held, Room


def service(waiting: int = 0) -> UseCases:
    return cast("UseCases", SimpleNamespace(waiting=waiting, retry_after=3.0, measures=Measures()))


def test_beyond_the_room_for_begins_reports_are_taken_still_and_at_last_are_not() -> None:
    room, use_cases = Room(), service()
    for _ in range(MOST_BEGINS):
        room.enter(use_cases, begins=True)
    with pytest.raises(Overloaded, match=r"4,096 requests") as refused:
        room.enter(use_cases, begins=True)
    assert refused.value.retry_after == 3.0
    for _ in range(MOST_REQUESTS - MOST_BEGINS):
        room.enter(use_cases, begins=False)
    with pytest.raises(Overloaded):
        room.enter(use_cases, begins=False)
    for _ in range(MOST_REQUESTS - MOST_BEGINS + 1):
        room.leave()
    room.enter(use_cases, begins=True)


def test_begins_that_wait_for_another_take_no_room() -> None:
    room, use_cases = Room(), service(waiting=2 * MOST_BEGINS)
    for _ in range(3 * MOST_BEGINS):
        room.enter(use_cases, begins=True)
    with pytest.raises(Overloaded):
        room.enter(use_cases, begins=True)


def test_of_a_body_what_has_come_takes_room_and_a_small_one_finds_some_where_large_ones_do_not() -> None:
    room, use_cases = Room(), service()
    slow = Held(room, use_cases)
    slow.take(MOST_BYTES)
    large, small = Held(room, use_cases), Held(room, use_cases)
    small.take(SMALL_BYTES)
    with pytest.raises(Overloaded):
        large.take(SMALL_BYTES + 1)
    with pytest.raises(Overloaded):
        small.take(1)
    small.give_back()
    large.give_back()
    slow.take(0)
    assert room.bytes == MOST_BYTES
    slow.give_back()
    assert room.bytes == 0
    Held(room, use_cases).take(MOST_BYTES)


def test_small_bodies_are_bounded_too() -> None:
    room, use_cases = Room(), service()
    for _ in range(2 * MOST_BYTES // SMALL_BYTES):
        Held(room, use_cases).take(SMALL_BYTES)
    with pytest.raises(Overloaded):
        Held(room, use_cases).take(1)


async def test_what_the_framework_reads_takes_room_too_and_a_client_that_goes_takes_none() -> None:
    room, use_cases = Room(), service()
    messages: Iterator[dict[str, object]] = iter(
        [
            {"type": "http.request", "body": b"12345", "more_body": True},
            {"type": "http.request", "body": b"678", "more_body": True},
            {"type": "http.disconnect"},
        ]
    )

    async def receive() -> Any:
        return next(messages)

    held = Held(room, use_cases)
    watched = held.watching(receive)
    assert (await watched())["type"] == "http.request"
    assert room.bytes == 5
    await watched()
    assert room.bytes == 8
    assert (await watched())["type"] == "http.disconnect"
    held.give_back()
    assert room.bytes == 0
