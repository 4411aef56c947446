"""What every store must do with runs."""

import pytest

from guard.core.effects import SECOND, Instant, TenantId
from guard.ports.search import RunFilter
from guard.ports.store import Store
from guard.store.sql.runs import run_id
from tests.contract.given import TENANT, opened
from twiceshy_contract.runs import RunState


async def test_a_run_is_made_open_by_its_name_and_found_again(store: Store) -> None:
    run = await opened(store, "booking-42")
    assert (run.tenant, run.name, run.state, run.effects, run.ended_at) == (1, "booking-42", "open", 0, None)
    assert run.id.version == 7
    assert int.from_bytes(run.id.bytes[:6], "big") == run.started_at // 1000
    assert await opened(store, "booking-42") == run
    assert await store.runs.get(TENANT, "booking-42") == run


async def test_runs_are_answered_in_the_order_of_their_names_which_may_repeat(store: Store) -> None:
    known = await opened(store, "b")
    runs = await store.runs.open(TENANT, ["c", "b", "a", "c"])
    assert [run.name for run in runs] == ["c", "b", "a", "c"]
    assert runs[1] == known
    assert runs[0] == runs[3]
    assert await store.runs.open(TENANT, []) == []


async def test_a_name_belongs_to_its_tenant(store: Store) -> None:
    run = await opened(store)
    (other,) = await store.runs.open(TenantId(2), [run.name])
    assert other.id != run.id
    assert await store.runs.get(TenantId(3), run.name) is None


async def test_a_run_ends_once(store: Store) -> None:
    run = await opened(store)
    ended = await store.runs.end(TENANT, run.name, "failed")
    assert ended is not None
    assert (ended.id, ended.state, ended.started_at) == (run.id, "failed", run.started_at)
    assert ended.ended_at is not None
    assert run.started_at <= ended.ended_at < run.started_at + 60 * SECOND
    assert await store.runs.end(TENANT, run.name, "finished") == ended
    assert await opened(store) == ended
    assert await store.runs.end(TENANT, "nobody", "finished") is None


async def test_pages_show_the_newest_runs_first(store: Store) -> None:
    for name in ("a", "b", "c", "d"):
        await opened(store, name)
    await store.runs.end(TENANT, "b", "finished")
    assert await _paged(store, None, 50) == [["d", "c", "b", "a"]]
    assert await _paged(store, None, 4) == [["d", "c", "b", "a"]]
    assert await _paged(store, None, 3) == [["d", "c", "b"], ["a"]]
    assert await _paged(store, "open", 2) == [["d", "c"], ["a"]]
    assert await _paged(store, "finished", 2) == [["b"]]
    assert await store.runs.page(TenantId(2), RunFilter(limit=10)) == ([], None)


async def _paged(store: Store, state: RunState | None, limit: int) -> list[list[str]]:
    pages: list[list[str]] = []
    after: str | None = None
    while not pages or after is not None:
        runs, after = await store.runs.page(TENANT, RunFilter(state=state, limit=limit, after=after))
        pages.append([run.name for run in runs])
    return pages


@pytest.mark.parametrize("cursor", ["", "cw", "é", "booking-42"])
async def test_a_foreign_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor"):
        await store.runs.page(TENANT, RunFilter(after=cursor))


def test_a_run_id_is_a_uuid_of_its_moment_and_sorts_by_it() -> None:
    made = run_id(Instant(1_700_000_000_123_456), 0x3FFF_FFFF_FFFF_FFFF)
    assert str(made) == "018bcfe5-687b-774b-bfff-ffffffffffff"
    assert run_id(Instant(1_700_000_000_123_457), 0) > made
