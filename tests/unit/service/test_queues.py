"""What waits for a lane: bounded, fair between tenants, reports before begins."""

import pytest

from guard.core.effects import TenantId
from guard.service.queues import MOST_STARTS, MOST_WAITING, STALE_SECONDS, Overloaded, Queues

ANN, BOB = TenantId(1), TenantId(2)
LIMIT = 512


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_of_one_tenant_costs_another_no_more_than_its_place() -> None:
    queues: Queues[str] = Queues()
    for number in range(MOST_STARTS):
        queues.start(ANN, f"ann {number}")
    queues.start(BOB, "bob")
    batch = queues.take(LIMIT)
    assert len(batch) == LIMIT
    assert "bob" in batch
    assert [one for one in batch if one != "bob"] == [f"ann {number}" for number in range(LIMIT - 1)]
    assert len(queues) == MOST_STARTS + 1 - LIMIT


def test_of_many_tenants_those_without_a_turn_come_first_in_the_next_batch() -> None:
    queues: Queues[int] = Queues()
    for tenant in range(5):
        queues.start(TenantId(tenant), tenant)
    assert queues.take(2) == [0, 1]
    queues.start(TenantId(0), 0)
    assert queues.take(4) == [2, 3, 4, 0]
    assert len(queues) == 0


def test_reports_come_before_begins_and_what_goes_on_before_both() -> None:
    queues: Queues[str] = Queues()
    queues.start(ANN, "begin")
    queues.report(ANN, "commit")
    queues.report(None, "sweep")
    queues.go_on(["first", "second"])
    assert queues.take(3) == ["first", "second", "commit"]
    assert queues.take(LIMIT) == ["sweep", "begin"]


def test_beyond_the_bound_begins_are_put_off_and_reports_are_not() -> None:
    queues: Queues[int] = Queues()
    for number in range(MOST_STARTS):
        queues.start(ANN, number)
    with pytest.raises(Overloaded) as refused:
        queues.start(ANN, -1)
    assert refused.value.retry_after > 0
    queues.start(BOB, -2)
    for number in range(MOST_WAITING):
        queues.report(ANN, number)
    with pytest.raises(Overloaded):
        queues.report(ANN, -1)
    assert len(queues) == MOST_STARTS + 1 + MOST_WAITING


def test_while_a_transaction_hangs_begins_are_put_off() -> None:
    clock = Clock()
    queues: Queues[str] = Queues(clock)
    queues.begun()
    queues.start(ANN, "soon")
    clock.now += STALE_SECONDS + 1
    with pytest.raises(Overloaded):
        queues.start(ANN, "late")
    queues.report(ANN, "commit")
    queues.done()
    queues.start(ANN, "again")
    assert queues.take(LIMIT) == ["commit", "soon", "again"]


def transaction(queues: Queues[int], clock: Clock, seconds: float) -> None:
    queues.begun()
    clock.now += seconds
    queues.done()


def test_who_is_put_off_hears_how_long_the_queue_will_take() -> None:
    clock = Clock()
    queues: Queues[int] = Queues(clock)
    transaction(queues, clock, 0.4)
    queues.begun()
    for number in range(MOST_STARTS):
        queues.start(ANN, number)
    with pytest.raises(Overloaded) as refused:
        queues.start(ANN, -1)
    assert refused.value.retry_after == pytest.approx(0.4 * MOST_STARTS / LIMIT + 0.4)


def test_behind_slow_transactions_a_begin_is_put_off_that_would_wait_longer_than_its_caller() -> None:
    clock = Clock()
    queues: Queues[int] = Queues(clock)
    transaction(queues, clock, 2.0)
    queues.begun()
    for number in range(3 * LIMIT):
        queues.start(ANN, number)
    with pytest.raises(Overloaded):
        queues.start(ANN, -1)
    queues.report(ANN, -2)
    clock.now += 0.1
    queues.done()
    queues.begun()
    queues.start(ANN, -3)


def test_after_one_transaction_that_hung_the_first_begins_are_taken_again() -> None:
    clock = Clock()
    queues: Queues[int] = Queues(clock)
    transaction(queues, clock, 60.0)
    queues.begun()
    queues.start(ANN, 1)
    assert queues.take(LIMIT) == [1]


def test_the_longer_a_transaction_hangs_the_later_who_is_put_off_asks_again() -> None:
    clock = Clock()
    queues: Queues[int] = Queues(clock)
    assert queues.retry_after == 1.0
    queues.begun()
    clock.now += 3
    assert queues.retry_after == 3.0
    clock.now += 60
    assert queues.retry_after == 5.0
