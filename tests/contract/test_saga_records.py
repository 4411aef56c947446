"""What every store must read of a saga: what is open of it, what is left, and when it went on last."""

from msgspec.structs import replace

from guard.core.sagas import DoneStep, Mark, Saga
from guard.ports.sagas import Unfinished
from guard.ports.steps import Replace
from guard.ports.store import Store
from tests.contract.given import TENANT, insert, key, look, one, opened
from tests.contract.test_saga_store import enlisted, mark, open_saga, steps
from twiceshy_contract.names import PublicState

_OPEN: tuple[PublicState, ...] = ("executing", "in_doubt", "pending")


async def test_a_saga_with_a_step_under_way_is_not_completed_and_runs_on(store: Store) -> None:
    run = await opened(store)
    await open_saga(store)
    await enlisted(store, number=1)
    await enlisted(store, number=2)
    await one(store, insert(2, run))
    for state in _OPEN:
        seen = await look(store, 2)
        written = replace(seen, life=replace(seen.life, state=state))
        await one(store, Replace(seen=seen.version, effect=written))
        refused = await store.sagas.complete(TENANT, "trip-7")
        assert isinstance(refused, Unfinished)
        assert (refused.key, refused.saga.state) == (key(2), "running")
    seen = await look(store, 2)
    await one(store, Replace(seen=seen.version, effect=replace(seen, life=replace(seen.life, state="failed"))))
    completed = await store.sagas.complete(TENANT, "trip-7")
    assert isinstance(completed, Saga)
    assert completed.state == "completed"
    assert await store.sagas.find(TENANT, "trip-7") == completed
    assert await store.sagas.find(TENANT, "trip-8") is None


async def test_of_a_saga_that_fails_is_read_what_its_next_move_follows_from(store: Store) -> None:
    run = await opened(store)
    saga = await open_saga(store)
    for number in range(1, 8):
        await enlisted(store, number=number)
        if number != 6:
            await one(store, insert(number, run))
    await store.sagas.fail(TENANT, "trip-7", "full")

    def known(number: int, ended: int, step: int = 0) -> Mark:
        return replace(mark(number, "enlisted"), done=DoneStep(ended, step))

    settled = [mark(4, "compensated"), mark(5, "skipped"), mark(6, "passed_over")]
    await store.sagas.mark(saga, [known(1, 9, 4), known(2, 9, 5), known(3, 8, 9), *settled], "compensating")
    await store.sagas.pursue(saga, key(2), key(7))
    left = await store.sagas.read_left(TENANT, "trip-7")
    whole = await store.sagas.read(TENANT, "trip-7")
    assert left is not None
    assert whole is not None
    assert [(step.number, step.done) for step in left.steps] == [(2, DoneStep(9, 5)), (6, None), (7, None)]
    assert sorted(left.effects) == [key(2), key(7)]
    assert [step.number for step in whole.steps] == [1, 2, 3, 4, 5, 6, 7]
    assert sorted(whole.effects) == [key(number) for number in (1, 2, 3, 4, 5, 7)]
    assert (await look(store, 2)) == left.effects[key(2)]
    assert await store.sagas.read_left(TENANT, "trip-8") is None


async def test_a_saga_remembers_when_it_went_on_last(store: Store) -> None:
    saga = await open_saga(store)
    await enlisted(store)
    failed = await store.sagas.fail(TENANT, "trip-7", "full")
    assert failed is not None
    assert failed.changed_at == failed.failed_at
    stuck = await store.sagas.mark(saga, [], "stuck")
    assert stuck.changed_at == failed.changed_at
    (step,) = await steps(store)
    await store.sagas.misfit(saga, step, "there is no hold")
    await store.sagas.misfit(saga, step, "there is no room")
    assert [step.misfit for step in await steps(store)] == ["there is no hold"]
    await store.sagas.offer(saga, key(1), "retry by ann")
    offered = await store.sagas.find(TENANT, "trip-7")
    assert offered is not None
    assert (offered.changed_at or 0) > (failed.changed_at or 0)
    assert [(step.misfit, step.note) for step in await steps(store)] == [(None, "retry by ann")]
    await store.sagas.misfit(saga, step, "there is no hold")
    await store.sagas.pursue(saga, key(1), key(9))
    assert [step.misfit for step in await steps(store)] == [None]
    marked = await store.sagas.mark(saga, [mark(1, "compensated")], "compensated")
    assert (marked.changed_at or 0) > (offered.changed_at or 0)
