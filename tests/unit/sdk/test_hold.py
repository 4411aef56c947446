"""`guard.hold`: a claim for the time of a block, blocking and async, over a real service in this process."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from uuid import uuid4

import pytest

from tests.unit.sdk.scripted import ScriptedService
from twiceshy import Guard, GuardUnavailable, HoldLost, RequestRefused, ResourceHeld, ToolArgumentError
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
    with pytest.raises(RequestRefused, match="was placed with other words"):
        guard.hold("room-1", TWO, timedelta(hours=1), holder="ann", id=known).place()


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
    with pytest.raises(RequestRefused, match="lie after the start"):
        guard.hold("room-1", TWO, TWO).place()


def test_no_answer_is_no_hold_and_a_release_without_one_is_left_to_the_clock(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard(transport=Silence(), unavailable_seconds=0, spool=None)
    with pytest.raises(GuardUnavailable, match="Nobody knows whether the hold of room-1 stands"):
        guard.hold("room-1", TWO, HALF_AN_HOUR).place()
    guard.hold("room-1", TWO, HALF_AN_HOUR).__exit__(None, None, None)
    assert "runs out by itself" in caplog.text
