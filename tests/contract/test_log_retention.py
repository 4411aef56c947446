"""A run's log is kept as long as a run's effects; it expires as a whole, and is deleted some events at a time."""

from guard.core.effects import SECOND, Duration, Key
from guard.core.recording import Expired
from guard.core.retention import KEPT_IN_RUN
from guard.ports.search import CallFilter
from guard.ports.store import Store
from guard.service.registry import Registry
from guard.service.retention import Retention
from tests.contract.given import TENANT
from tests.contract.given_logs import append, appended, delivery, intent, log_of, one, recorded, rows

DAY = Duration(86_400 * SECOND)
AGED = f"UPDATE runs SET ended_at = ended_at - {KEPT_IN_RUN}, kept_until = 1 WHERE name = 'booking-42'"
COUNTS = "SELECT (SELECT COUNT(*) FROM events), (SELECT COUNT(*) FROM event_arguments)"


async def test_a_log_expires_at_once_and_is_deleted_some_events_at_a_time(store: Store, database_url: str) -> None:
    other, run = await recorded(store, "other"), await recorded(store)
    arguments = {"a": 1}
    await appended(store, append(other, 1, intent(1, arguments=arguments)))
    await appended(store, append(run, 1, *(intent(seq, arguments=arguments) for seq in range(1, 6)), delivery(6, 1)))
    await store.runs.end(TENANT, run.name, "finished")
    assert await store.retention.expire_of_run(run.id, {}, DAY, 3) == []
    assert await store.retention.empty(run.id, 3) is False
    assert len(await log_of(store, run)) == 6
    await rows(database_url, AGED)
    assert await store.retention.expire_of_run(run.id, {}, DAY, 3) == []
    assert await rows(database_url, COUNTS) == [(7, 6)]
    assert await log_of(store, run) == []
    assert await _found(store) == [(other.name, 1)]
    assert await one(store, append(run, 1, intent(7))) == Expired()
    assert await one(store, append(run, 1, intent(1, arguments=arguments))) == Expired()
    left = []
    while await store.retention.empty(run.id, 3):
        left += await rows(database_url, COUNTS)
    assert left == [(4, 3), (1, 1)]
    assert await rows(database_url, COUNTS) == [(1, 1)]
    assert await log_of(store, other) == [intent(1, arguments=arguments)]


async def test_a_long_log_is_gone_after_as_many_rounds_as_it_takes_without_a_pause(
    store: Store, database_url: str
) -> None:
    forgotten: list[Key] = []
    retention = Retention(store.retention, Registry(store.tools), lambda _tenant, keys: forgotten.extend(keys))
    run = await recorded(store)
    await appended(store, append(run, 1, *(intent(seq, arguments={"a": seq}) for seq in range(1, 1101))))
    await store.runs.end(TENANT, run.name, "finished")
    assert not await retention.run_once()
    assert await rows(database_url, COUNTS) == [(1100, 1100)]
    await rows(database_url, AGED)
    said = [await retention.run_once()]
    assert (await log_of(store, run), await _found(store)) == ([], [])
    while said[-1]:
        said.append(await retention.run_once())
    assert said == [True, True, False]
    assert await rows(database_url, COUNTS) == [(0, 0)]
    assert await store.retention.due_runs(10) == []


async def _found(store: Store) -> list[tuple[str, int]]:
    calls, _ = await store.search.calls(TENANT, CallFilter(name="lookup", limit=500))
    return [(call.run, call.seq) for call in calls]
