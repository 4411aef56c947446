"""`guard.hold`: a claim for the time of a block, blocking and async, over a real service in this process."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest

from tests.unit.sdk.scripted import ScriptedService
from twiceshy import Guard, GuardUnavailable, HoldLost, RequestRefused, ResourceHeld, SetupError, ToolArgumentError
from twiceshy._transports.base import NoReply, Reply, Request

TWO = datetime(2026, 10, 12, 14, tzinfo=UTC)
HALF_AN_HOUR = timedelta(minutes=30)


class Silence(ScriptedService):
    """A service that never answers."""

    def send(self, request: Request) -> Reply | NoReply:
        """Say nothing."""
        return NoReply(reason="nobody is there")


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with Guard(f"sqlite:///{tmp_path / 'guard.db'}", spool=None) as guard:
        yield guard


def test_a_block_holds_the_resource_and_gives_it_back(guard: Guard) -> None:
    with guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann"):
        with pytest.raises(
            ResourceHeld, match=r"The hold of room-1 is not placed: ann holds 'room-1' from 2026-10-12T14"
        ):
            guard.hold("room-1", TWO, TWO + HALF_AN_HOUR).place()
        with guard.hold("room-1", TWO + HALF_AN_HOUR, HALF_AN_HOUR):
            pass
    with guard.hold("room-1", TWO, HALF_AN_HOUR):
        pass


def test_what_is_committed_stays_when_the_block_is_left(guard: Guard) -> None:
    with guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann") as hold:
        hold.renew()
        hold.commit()
    assert hold.is_committed
    with pytest.raises(ResourceHeld, match="ann has booked"), guard.hold("room-1", TWO, HALF_AN_HOUR, priority=9):
        raise AssertionError
    hold.release()
    assert not hold.is_committed
    guard.hold("room-1", TWO, HALF_AN_HOUR).place()


def test_an_error_in_the_block_gives_the_resource_back_and_is_the_callers(guard: Guard) -> None:
    with pytest.raises(ZeroDivisionError), guard.hold("room-1", TWO, HALF_AN_HOUR):
        raise ZeroDivisionError
    guard.hold("room-1", TWO, HALF_AN_HOUR).place()


def test_a_higher_priority_takes_over_and_the_loser_hears_by_whom(guard: Guard) -> None:
    low = guard.hold("room-1", TWO, HALF_AN_HOUR, holder="intern")
    with low, guard.hold("room-1", TWO, HALF_AN_HOUR, holder="director", priority=5):
        with pytest.raises(HoldLost, match=r"is not committed: .* was taken over by director with priority 5"):
            low.commit()
        with pytest.raises(HoldLost, match="is not renewed"):
            low.renew()
    assert not low.is_committed


def test_the_same_id_goes_on_with_the_same_hold(guard: Guard) -> None:
    known = uuid4()
    first = guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann", id=known)
    first.place()
    again = guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann", id=known)
    again.place()
    again.commit()
    with pytest.raises(RequestRefused, match=r"placed before by ann; .* differs from that at /end\.") as caught:
        guard.hold("room-1", TWO, timedelta(hours=1), holder="ann", id=known).place()
    assert caught.value.code == "hold-differs"


def test_a_block_that_goes_on_with_a_committed_hold_leaves_it_committed(guard: Guard) -> None:
    known = uuid4()
    with guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann", id=known) as first:
        first.commit()
    with guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann", id=known) as again:
        assert again.is_committed
        again.renew()
        assert again.is_committed
    with pytest.raises(ResourceHeld, match="ann has booked"):
        guard.hold("room-1", TWO, HALF_AN_HOUR).place()


def test_another_process_goes_on_with_the_hold_of_its_run(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    with guard.run("trip-7"):
        first = guard.hold("room-1", TWO, HALF_AN_HOUR)
        first.place()
    monkeypatch.setattr(os, "getpid", lambda: 4_194_305)
    with guard.run("trip-7"):
        again = guard.hold("room-1", TWO, HALF_AN_HOUR, id=first.id)
        again.place()
        again.commit()
    with pytest.raises(ResourceHeld, match="trip-7 has booked"):
        guard.hold("room-1", TWO, HALF_AN_HOUR).place()


def test_outside_of_runs_an_id_needs_a_holder(guard: Guard) -> None:
    with pytest.raises(ToolArgumentError, match=r"Say holder='\.\.\.', the same each time") as caught:
        guard.hold("room-1", TWO, HALF_AN_HOUR, id=uuid4())
    assert caught.value.path == "/holder"


def test_on_the_day_that_loses_an_hour_two_hours_are_two_hours(guard: Guard) -> None:
    start = datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    guard.hold("room-1", start, timedelta(hours=2), holder="ann").place()
    with pytest.raises(ResourceHeld, match="from 2026-03-29T00:30:00Z to 2026-03-29T02:30:00Z"):
        guard.hold("room-1", datetime(2026, 3, 29, 2, tzinfo=UTC), HALF_AN_HOUR).place()
    guard.hold("room-1", datetime(2026, 3, 29, 2, 30, tzinfo=UTC), HALF_AN_HOUR).place()


def test_the_hour_that_comes_twice_has_a_length(guard: Guard) -> None:
    start = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    guard.hold("room-1", start, start.replace(minute=0, fold=1)).place()
    with pytest.raises(ResourceHeld, match="from 2026-10-25T00:30:00Z to 2026-10-25T01:00:00Z"):
        guard.hold("room-1", datetime(2026, 10, 25, 0, tzinfo=UTC), timedelta(hours=2)).place()


def test_a_hold_names_the_run_around_it_and_its_time_zone_is_no_matter(guard: Guard) -> None:
    east = datetime(2026, 10, 12, 16, tzinfo=timezone(timedelta(hours=2)))
    with guard.run("trip-7"), guard.hold("room-1", east, HALF_AN_HOUR), pytest.raises(ResourceHeld) as caught:
        guard.hold("room-1", TWO, HALF_AN_HOUR).place()
    assert caught.value.effect.run == "trip-7"


async def test_a_block_of_a_coroutine_does_the_same(guard: Guard) -> None:
    async with guard.hold("room-1", TWO, HALF_AN_HOUR, holder="ann") as hold:
        with pytest.raises(ResourceHeld):
            await guard.hold("room-1", TWO, HALF_AN_HOUR).place_async()
        await hold.renew_async()
        await hold.commit_async()
    with pytest.raises(ResourceHeld, match="has booked"):
        async with guard.hold("room-1", TWO, HALF_AN_HOUR):
            raise AssertionError
    await hold.release_async()
    async with guard.hold("room-1", TWO, HALF_AN_HOUR):
        pass
    await guard.close_async()


def test_a_block_that_may_wait_gets_what_runs_out(guard: Guard) -> None:
    guard.hold("room-1", TWO, HALF_AN_HOUR, hold_seconds=1).place()
    with guard.hold("room-1", TWO, HALF_AN_HOUR, wait_seconds=20):
        pass


@pytest.mark.parametrize(
    ("start", "end", "words", "path"),
    [
        (TWO, TWO, "does not lie after start", "/end"),
        (TWO, timedelta(0), "does not lie after start", "/end"),
        (TWO, timedelta(minutes=-1), "does not lie after start", "/end"),
        (datetime.max.replace(tzinfo=UTC), timedelta(1), "years 1 to 9999", "/end"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=2))), timedelta(1), "years 1 to 9999", "/start"),
    ],
)
def test_an_interval_that_is_none_is_refused_before_anything_is_sent(
    guard: Guard, start: datetime, end: datetime | timedelta, words: str, path: str
) -> None:
    with pytest.raises(ToolArgumentError, match=words) as caught:
        guard.hold("room-1", start, end)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("start", "end", "path"),
    [
        (datetime(2026, 10, 12, 14), HALF_AN_HOUR, "/start"),  # noqa: DTZ001 - that is what is refused
        (TWO, datetime(2026, 10, 12, 15), "/end"),  # noqa: DTZ001 - that is what is refused
    ],
)
def test_a_time_without_its_zone_is_refused_before_anything_is_sent(
    guard: Guard, start: datetime, end: datetime, path: str
) -> None:
    with pytest.raises(ToolArgumentError, match="give a datetime with its time zone") as caught:
        guard.hold("room-1", start, end)
    assert caught.value.path == path


def test_what_the_service_would_refuse_is_refused_here(guard: Guard) -> None:
    with pytest.raises(ToolArgumentError, match="priority"):
        guard.hold("room-1", TWO, HALF_AN_HOUR, priority=1001)
    with pytest.raises(ToolArgumentError, match="holder"):
        guard.hold("room-1", TWO, HALF_AN_HOUR, holder="")
    with pytest.raises(ToolArgumentError, match="lone surrogate"):
        guard.hold("room-\ud800", TWO, HALF_AN_HOUR)


def test_a_word_that_is_no_option_is_refused_with_the_nearest(guard: Guard) -> None:
    misspelt: Any = {"prioritty": 3}
    with pytest.raises(SetupError, match=r"There is no option prioritty; did you mean priority\? The options are"):
        guard.hold("room-1", TWO, HALF_AN_HOUR, **misspelt)


def test_no_answer_is_no_hold_and_a_release_without_one_is_left_to_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard(transport=Silence(), unavailable_seconds=0, spool=None)
    with pytest.raises(GuardUnavailable, match="Nobody knows whether the hold of room-1 stands"):
        guard.hold("room-1", TWO, HALF_AN_HOUR).place()
    guard.hold("room-1", TWO, HALF_AN_HOUR).__exit__(None, None, None)
    assert "runs out by itself" in caplog.text
