"""Sagas as an agent writes them: `with guard.saga(...)`, against a real service."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.integration.saga_tools import BACK, BOOKED, Trip, notes, state
from tests.service import ServiceProcess
from twiceshy import (
    EffectRef,
    GuardUnavailable,
    NotApplied,
    Rejected,
    RunSuspended,
    SagaOver,
    SagaReport,
    SetupError,
)

MakeTrip = Callable[..., Trip]
HOLD = EffectRef(tool="hold")


@pytest.fixture
def make_trip(service: ServiceProcess) -> Iterator[MakeTrip]:
    """Make trips whose guards are closed with the test."""
    trips: list[Trip] = []

    def make(*, has_refund: bool = True) -> Trip:
        trips.append(Trip(service.url, has_refund=has_refund))
        return trips[-1]

    yield make
    for trip in trips:
        trip.guard.close()


def test_a_block_that_ends_well_completes_its_saga_and_is_answered_from_the_record_then(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()
    trip.book(run)
    assert (trip.did, state(service, run)) == (BOOKED, "completed")
    trip.book(run)
    assert trip.did == BOOKED
    with pytest.raises(ValueError, match="afterwards") as raised, trip.guard.saga(run):
        raise ValueError("afterwards")
    assert f"twiceshy: saga {run} is not taken back: Saga {run!r} is completed" in notes(raised.value)


def test_a_step_that_is_refused_for_good_takes_back_what_was_done(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()
    trip.breaks["confirm"] = Rejected("full")
    with pytest.raises(Rejected, match="full") as raised:
        trip.book(run)
    assert trip.did == [*BOOKED, *BACK]
    assert f"twiceshy: saga {run} is compensated: taken back with refund, release." in notes(raised.value)
    assert service.ask("GET", f"/v1/sagas/{run}").body["reason"] == "Rejected: full"
    with pytest.raises(SagaOver, match=rf"Saga {run} is compensated. It failed before \(Rejected: full\)"):
        trip.book(run)
    assert trip.did == [*BOOKED, *BACK]


def test_an_exception_of_the_agents_own_fails_the_saga_too(make_trip: MakeTrip, run: str) -> None:
    trip = make_trip()
    with pytest.raises(ExceptionGroup):
        trip.break_off(run, ExceptionGroup("two", [GuardUnavailable(effect=HOLD), KeyError("room")]))
    assert trip.did == ["hold 12", BACK[1]]


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), asyncio.CancelledError(), SystemExit(1), GuardUnavailable(effect=HOLD)]
)
def test_what_is_no_failure_leaves_the_saga_running_and_the_block_goes_on_later(
    service: ServiceProcess, run: str, make_trip: MakeTrip, error: BaseException
) -> None:
    trip = make_trip()
    with pytest.raises(type(error)):
        trip.break_off(run, error)
    assert (trip.did, state(service, run)) == (["hold 12"], "running")
    trip.book(run)
    assert (trip.did, state(service, run)) == (BOOKED, "completed")


def test_doubt_suspends_the_block_and_forward_recovery_goes_on_at_the_step_that_failed(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()
    trip.breaks["pay"] = TimeoutError()
    with pytest.raises(RunSuspended) as raised:
        trip.book(run)
    assert state(service, run) == "running"
    trip.settle(service.ask, raised.value.key, "applied", result={"id": "pay-9900"})
    trip.breaks["confirm"] = Rejected("full")
    with pytest.raises(Rejected):
        trip.book(run)
    assert trip.did == [*BOOKED, *BACK]


def test_forward_recovery_takes_nothing_back(service: ServiceProcess, run: str, make_trip: MakeTrip) -> None:
    trip = make_trip()
    with pytest.raises(ValueError, match="a defect"):
        trip.break_off(run, ValueError("a defect"), on_failure="forward")
    assert (trip.did, state(service, run)) == (["hold 12"], "running")
    trip.book(run)
    assert trip.did == BOOKED


def test_a_compensation_that_was_not_applied_is_tried_again(run: str, make_trip: MakeTrip) -> None:
    trip = make_trip()
    trip.breaks = {"confirm": Rejected("full"), "refund": NotApplied("busy")}
    with pytest.raises(Rejected):
        trip.book(run)
    assert trip.did == [*BOOKED, BACK[0], *BACK]


def test_a_compensation_that_is_refused_leaves_the_saga_stuck_and_says_so(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()
    trip.breaks = {"confirm": Rejected("full"), "refund": Rejected("closed")}
    with pytest.raises(Rejected, match="full") as raised:
        trip.book(run)
    assert trip.did == [*BOOKED, BACK[0]]
    assert "is not taken back yet: its compensation was refused: Rejected: closed" in notes(raised.value)
    assert state(service, run) == "stuck"
    with pytest.raises(SagaOver, match="is not taken back yet"):
        trip.book(run)
    service.ask("POST", f"/v1/sagas/{run}/resume", {"by": "ann", "reason": "the account is open again"})
    with pytest.raises(SagaOver, match="is compensated: taken back with refund, release"):
        trip.book(run)
    assert trip.did == [*BOOKED, BACK[0], *BACK]


def test_doubt_of_a_compensation_is_waited_for_no_longer_than_the_block_says(run: str, make_trip: MakeTrip) -> None:
    trip = make_trip()
    trip.breaks = {"confirm": Rejected("full"), "refund": TimeoutError()}
    with pytest.raises(Rejected, match="full") as raised:
        trip.book(run, wait_seconds=0.1)
    assert "is not taken back yet: its compensation may or may not have happened" in notes(raised.value)


def test_a_worker_that_has_the_tools_goes_on_where_an_agent_could_not(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip(has_refund=False)
    trip.breaks["confirm"] = Rejected("full")
    with pytest.raises(Rejected) as raised:
        trip.book(run)
    assert "is not taken back yet: this process has no tool refund; a process that has it goes on" in notes(
        raised.value
    )
    worker = make_trip()
    reports = {report.saga: report for report in worker.guard.recover_sagas()}
    assert reports[run].taken_back == ("refund", "release")
    assert (worker.did, state(service, run)) == (BACK, "compensated")
    assert run not in [report.saga for report in worker.guard.recover_sagas()]


def test_workers_that_recover_one_saga_at_once_take_each_step_back_once(run: str, make_trip: MakeTrip) -> None:
    sagas = [f"{run}-{number}" for number in range(4)]
    for saga in sagas:
        agent = make_trip(has_refund=False)
        agent.breaks["confirm"] = Rejected("full")
        with pytest.raises(Rejected):
            agent.book(saga)
    workers = [make_trip() for _ in range(3)]
    threads = [threading.Thread(target=worker.guard.recover_sagas) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    did = [action for worker in workers for action in worker.did]
    assert sorted(did) == sorted(BACK * len(sagas))


def test_a_deadline_that_passes_within_the_block_ends_it(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()

    def overrun(saga: str, *steps: Callable[[], object]) -> None:
        with trip.guard.saga(saga, deadline_seconds=0.5):
            trip.hold("12")
            while state(service, saga) == "running":
                pass
            for step in steps:
                step()

    with pytest.raises(SagaOver, match="confirm did not run") as raised:
        overrun(run, lambda: trip.confirm("12"))
    assert trip.did == ["hold 12", BACK[1]]
    assert "is compensated: taken back with release" in notes(raised.value)
    with pytest.raises(SagaOver, match=r"It failed before \(its deadline has passed\)"):
        overrun(f"{run}-2")


def test_calls_of_a_run_that_is_entered_within_a_saga_are_not_its_steps(
    service: ServiceProcess, run: str, make_trip: MakeTrip
) -> None:
    trip = make_trip()

    def block() -> None:
        with trip.guard.run(run), trip.guard.saga(f"saga-{run}"):
            trip.hold("12")
            with trip.guard.run(f"{run}-other"):
                trip.pay(1)
            trip.pay(2)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        block()
    assert trip.did == ["hold 12", "pay 1", "pay 2", "refund pay-2", BACK[1]]
    steps = service.ask("GET", f"/v1/sagas/saga-{run}").body["steps"]
    assert [(step["tool"], step["state"]) for step in steps] == [("hold", "compensated"), ("pay", "compensated")]
    with trip.guard.run(run):
        trip.confirm("12")
    assert trip.did[-1] == "confirm 12"


def test_a_saga_is_set_up_with_words_that_it_knows(make_trip: MakeTrip) -> None:
    guard = make_trip().guard
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("a/b", {}, "The saga's name 'a/b' cannot be taken"),
        ("a", {"on_failure": "compensat"}, "on_failure is 'compensat'; did you mean compensate?"),
        ("a", {"deadline_seconds": -1}, "deadline_seconds is -1"),
        ("a", {"wait_seconds": "long"}, "wait_seconds is 'long'"),
    ]
    for name, said, message in wrong:
        with pytest.raises(SetupError, match=message.replace("?", r"\?")):
            guard.saga(name, **said)


def test_a_report_says_in_one_line_what_became_of_a_saga() -> None:
    half = SagaReport(saga="s", state="compensating", taken_back=("refund",), left="it is being executed")
    assert str(half) == "saga s is not taken back yet (taken back with refund so far): it is being executed"
    whole = SagaReport(saga="s", state="compensated", uncompensated=("say (ab)",))
    assert str(whole) == "saga s is compensated: say (ab) cannot be taken back"
