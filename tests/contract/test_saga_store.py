"""What every store must do with sagas and their steps."""

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, Instant, TenantId
from guard.core.sagas import Mark, Saga, SagaStep
from guard.ports.sagas import Enlisted, NewStep, SagaFilter
from guard.ports.search import RunFilter
from guard.ports.steps import Replace
from guard.ports.store import Store
from tests.contract.given import TENANT, finish, insert, key, look, one, opened
from twiceshy_contract.policies import Compensation
from twiceshy_contract.sagas import StepState

RELEASE = Compensation(tool="release", arguments={"hold": "${result.id}"})
OTHER = TenantId(2)


def new(number: int = 1, run: str = "booking-42") -> NewStep:
    return NewStep(key=key(number), run=run, tool="hold", compensation=RELEASE)


async def open_saga(store: Store, name: str = "trip-7", deadline: Duration | None = None) -> UUID:
    return (await store.sagas.open(TENANT, name, "booking-42", deadline)).id


async def enlisted(store: Store, name: str = "trip-7", number: int = 1) -> Enlisted:
    found = await store.sagas.enlist(TENANT, name, new(number))
    assert found is not None
    return found


async def steps(store: Store, name: str = "trip-7") -> tuple[SagaStep, ...]:
    record = await store.sagas.read(TENANT, name)
    assert record is not None
    return record.steps


def mark(number: int, state: StepState, seen: StepState = "enlisted", note: str | None = None) -> Mark:
    return Mark(key=key(number), seen=seen, state=state, note=note)


async def test_a_saga_is_made_running_and_found_again_as_it_was_first_opened(store: Store) -> None:
    saga = await store.sagas.open(TENANT, "trip-7", "booking-42", Duration(60 * SECOND))
    assert (saga.tenant, saga.name, saga.run, saga.state, saga.reason) == (1, "trip-7", "booking-42", "running", None)
    assert saga.deadline == saga.started_at + 60 * SECOND
    assert (saga.failed_at, saga.ended_at) == (None, None)
    assert await store.sagas.open(TENANT, "trip-7", "another", None) == saga
    assert (await store.sagas.open(OTHER, "trip-7", "booking-42", None)).id != saga.id
    record = await store.sagas.read(TENANT, "trip-7")
    assert record is not None
    assert (record.saga, record.steps) == (saga, ())
    assert record.at >= saga.started_at
    assert await store.sagas.read(TENANT, "nobody") is None


async def test_steps_are_enlisted_once_in_their_order_with_what_takes_them_back(store: Store) -> None:
    await open_saga(store)
    assert (await enlisted(store, number=2)).became == "enlisted"
    assert (await enlisted(store, number=1)).became == "enlisted"
    assert (await enlisted(store, number=2)).is_known
    assert await store.sagas.enlist(TENANT, "nobody", new()) is None
    first, second = await steps(store)
    assert (first.key, first.number, first.tool, first.state) == (key(2), 1, "hold", "enlisted")
    assert (first.compensation, first.round, first.compensation_key, first.note) == (RELEASE, 1, None, None)
    assert (second.key, second.number) == (key(1), 2)
    plain = NewStep(key=key(3), run="booking-42", tool="say", compensation=None)
    assert await store.sagas.enlist(TENANT, "trip-7", plain) is not None
    assert (await steps(store))[2].compensation is None


async def test_a_step_of_another_run_is_not_enlisted(store: Store) -> None:
    await open_saga(store)
    found = await store.sagas.enlist(TENANT, "trip-7", new(run="another"))
    assert found is not None
    assert (found.became, found.is_known) == ("of_another_run", False)
    assert await steps(store) == ()


async def test_a_saga_that_ended_enlists_nothing_more_and_knows_its_steps(store: Store) -> None:
    await open_saga(store)
    await enlisted(store)
    await store.sagas.complete(TENANT, "trip-7")
    assert (await enlisted(store)).became == "over"
    assert (await enlisted(store)).is_known
    other = await enlisted(store, number=2)
    assert (other.became, other.is_known, other.saga.state) == ("over", False, "completed")
    assert len(await steps(store)) == 1


@pytest.mark.parametrize(
    ("state", "became"),
    [
        ("enlisted", "of_another"),
        ("uncompensated", "of_another"),
        ("compensated", "taken_back"),
        ("skipped", "enlisted"),
        ("passed_over", "enlisted"),
    ],
)
async def test_an_effect_is_the_step_of_one_saga_until_that_lets_go_of_it(
    store: Store, state: StepState, became: str
) -> None:
    saga = await open_saga(store)
    await enlisted(store)
    await store.sagas.fail(TENANT, "trip-7", "full")
    await store.sagas.mark(saga, [mark(1, state)], "compensating")
    await open_saga(store, "trip-8")
    assert (await enlisted(store, "trip-8")).became == became
    assert len(await steps(store, "trip-8")) == (1 if became == "enlisted" else 0)
    if became == "enlisted":
        assert await steps(store) == ()
        (taken,) = await steps(store, "trip-8")
        assert (taken.state, taken.number, taken.round) == ("enlisted", 1, 1)


async def test_two_sagas_that_enlist_one_effect_at_once_do_not_both_have_it(store: Store) -> None:
    await open_saga(store, "trip-7")
    await open_saga(store, "trip-8")
    both = await asyncio.gather(enlisted(store, "trip-7"), enlisted(store, "trip-8"))
    assert sorted(found.became for found in both) == ["enlisted", "of_another"]
    assert len(await steps(store, "trip-7")) + len(await steps(store, "trip-8")) == 1


async def test_a_saga_fails_once_and_is_completed_once(store: Store) -> None:
    await open_saga(store)
    failed = await store.sagas.fail(TENANT, "trip-7", "full")
    assert failed is not None
    assert (failed.state, failed.reason, failed.ended_at) == ("compensating", "full", None)
    assert failed.failed_at is not None
    assert await store.sagas.fail(TENANT, "trip-7", "otherwise") == failed
    assert await store.sagas.complete(TENANT, "trip-7") == failed
    await open_saga(store, "trip-8")
    completed = await store.sagas.complete(TENANT, "trip-8")
    assert isinstance(completed, Saga)
    assert (completed.state, completed.failed_at, completed.ended_at is None) == ("completed", None, False)
    assert await store.sagas.fail(TENANT, "trip-8", "late") == completed
    assert await store.sagas.fail(TENANT, "nobody", "full") is None
    assert await store.sagas.complete(OTHER, "trip-7") is None


async def test_every_write_finds_a_saga_failed_whose_deadline_has_passed(store: Store) -> None:
    for name in ("a", "b", "c"):
        await open_saga(store, name, Duration(1))
    await open_saga(store, "long", Duration(60 * SECOND))
    assert await store.sagas.restless(10) == [(TENANT, "a"), (TENANT, "b"), (TENANT, "c")]
    assert await store.sagas.restless(1) == [(TENANT, "a")]
    completed = await store.sagas.complete(TENANT, "a")
    assert isinstance(completed, Saga)
    assert (completed.state, completed.reason) == ("compensating", "its deadline has passed")
    assert (await enlisted(store, "b")).became == "over"
    failed = await store.sagas.fail(TENANT, "c", "full")
    assert failed is not None
    assert (failed.state, failed.reason) == ("compensating", "its deadline has passed")
    assert await store.sagas.restless(10) == []


async def test_marks_are_written_where_steps_stand_as_they_were_seen(store: Store) -> None:
    saga = await open_saga(store)
    for number in (1, 2):
        await enlisted(store, number=number)
    await store.sagas.fail(TENANT, "trip-7", "full")
    await store.sagas.mark(saga, [mark(1, "skipped", note="not done")], "compensating")
    await store.sagas.mark(saga, [mark(1, "compensated"), mark(2, "compensated", seen="skipped")], "compensating")
    assert [(step.state, step.note) for step in await steps(store)] == [("skipped", "not done"), ("enlisted", None)]


async def test_a_saga_is_compensated_only_when_no_step_is_enlisted_any_more(store: Store) -> None:
    saga = await open_saga(store)
    await enlisted(store)
    await store.sagas.fail(TENANT, "trip-7", "full")
    assert (await store.sagas.mark(saga, [], "compensated")).state == "compensating"
    assert (await store.sagas.mark(saga, [], "stuck")).state == "stuck"
    ended = await store.sagas.mark(saga, [mark(1, "passed_over")], "compensated")
    assert (ended.state, ended.ended_at is None) == ("compensated", False)
    assert await store.sagas.mark(saga, [], "compensated") == ended
    again = await store.sagas.mark(saga, [mark(1, "enlisted", seen="passed_over")], "compensating")
    assert (again.state, again.ended_at, again.reason) == ("compensating", None, "full")


@pytest.mark.parametrize("is_completed", [True, False])
async def test_a_saga_that_did_not_fail_is_never_marked_as_one_that_did(store: Store, *, is_completed: bool) -> None:
    saga = await open_saga(store)
    before = await (store.sagas.complete if is_completed else store.sagas.read)(TENANT, "trip-7")
    state = "completed" if is_completed else "running"
    assert before is not None
    assert (await store.sagas.mark(saga, [], "compensating")).state == state


async def test_the_effect_that_takes_a_step_back_is_written_down_and_a_new_round_forgets_it(store: Store) -> None:
    saga = await open_saga(store)
    await enlisted(store)
    await store.sagas.pursue(saga, key(1), key(9))
    (pursued,) = await steps(store)
    assert pursued.compensation_key == key(9)
    await store.sagas.retry(saga, pursued, "retry by ann")
    await store.sagas.retry(saga, pursued, "retry by bob")
    (again,) = await steps(store)
    assert (again.round, again.compensation_key, again.note) == (2, None, "retry by ann")
    await store.sagas.mark(saga, [mark(1, "skipped")], "compensating")
    await store.sagas.retry(saga, again, "too late")
    assert (await steps(store))[0].round == 2


async def test_proof_of_a_step_that_was_passed_over_makes_its_saga_restless(store: Store) -> None:
    run = await opened(store)
    for number, name in ((1, "trip-7"), (2, "trip-8"), (3, "trip-9")):
        saga = await open_saga(store, name)
        await enlisted(store, name, number)
        await store.sagas.fail(TENANT, name, "full")
        if name != "trip-9":
            await store.sagas.mark(saga, [mark(number, "passed_over")], "compensated")
        await one(store, insert(number, run))
    assert await store.sagas.restless(10) == []
    await one(store, finish(1))
    await one(store, finish(3))
    doubtful = await look(store, 2)
    await one(store, Replace(seen=1, effect=replace(doubtful, life=replace(doubtful.life, state="failed"))))
    assert await store.sagas.restless(10) == [(TENANT, "trip-7")]


async def test_the_unfinished_are_those_that_are_taken_back_or_stuck_oldest_first(store: Store) -> None:
    names = ("running", "completed", "compensating", "stuck", "compensated")
    sagas = {name: await open_saga(store, name) for name in names}
    await store.sagas.complete(TENANT, "completed")
    for name in names[2:]:
        await store.sagas.fail(TENANT, name, "full")
    await store.sagas.mark(sagas["stuck"], [], "stuck")
    await store.sagas.mark(sagas["compensated"], [], "compensated")
    assert [saga.name for saga in await store.sagas.unfinished(10, None)] == ["compensating", "stuck"]
    assert [saga.name for saga in await store.sagas.unfinished(1, None)] == ["compensating"]
    assert [saga.name for saga in await store.sagas.unfinished(10, sagas["compensating"])] == ["stuck"]


async def test_pages_show_the_newest_sagas_first(store: Store) -> None:
    for name in ("a", "b", "c"):
        await open_saga(store, name)
    await store.sagas.open(TENANT, "d", "another", None)
    await store.sagas.fail(TENANT, "b", "full")
    assert await _paged(store, SagaFilter(limit=3)) == [["d", "c", "b"], ["a"]]
    assert await _paged(store, SagaFilter(limit=4)) == [["d", "c", "b", "a"]]
    assert await _paged(store, SagaFilter(state="compensating")) == [["b"]]
    assert await _paged(store, SagaFilter(run="booking-42", limit=2)) == [["c", "b"], ["a"]]
    assert await store.sagas.page(OTHER, SagaFilter()) == ([], None)
    with pytest.raises(ValueError, match="is not a cursor"):
        await store.sagas.page(TENANT, SagaFilter(after="booking-42"))
    await opened(store, "first")
    await opened(store, "second")
    _, of_runs = await store.runs.page(TENANT, RunFilter(limit=1))
    with pytest.raises(ValueError, match="another listing"):
        await store.sagas.page(TENANT, SagaFilter(after=of_runs))


async def _paged(store: Store, chosen: SagaFilter) -> list[list[str]]:
    pages: list[list[str]] = []
    after: str | None = None
    while not pages or after is not None:
        found, after = await store.sagas.page(TENANT, replace(chosen, after=after))
        pages.append([saga.name for saga in found])
    return pages


async def test_a_running_saga_is_not_late_before_its_deadline(store: Store) -> None:
    await open_saga(store, deadline=Duration(3600 * SECOND))
    record = await store.sagas.read(TENANT, "trip-7")
    assert record is not None
    assert not record.saga.is_late(record.at)
    assert record.saga.is_late(Instant(record.at + 3600 * SECOND))
