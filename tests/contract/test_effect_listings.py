"""What every store must list: overdue leases, pages of effects, evidence."""

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Evidence, Instant
from guard.ports.steps import Replace
from guard.ports.store import EffectFilter, Store
from tests.contract.given import FIRST, TENANT, finish, insert, key, opened, written


async def test_evidence_is_kept_oldest_first(store: Store) -> None:
    began = (await written(store, insert())).effect
    first = Evidence(at=Instant(20), token=FIRST, kind="success", body=b'{"n":1}')
    second = Evidence(at=Instant(10), token=None, kind="found_applied", body=b'{"n":2}')
    await written(store, Replace(seen=1, effect=began, evidence=(first,)))
    await written(store, Replace(seen=2, effect=began, evidence=(second, first)))
    assert await store.effects.evidence(key(1)) == [first, second, first]
    assert await store.effects.evidence(key(2)) == []


async def test_overdue_are_the_executing_whose_lease_ran_out_longest_first(store: Store) -> None:
    at = (await written(store, insert(1))).at
    for number, late in ((2, 10), (3, 30), (4, 20)):
        await _overdue(store, number, Instant(at - late * SECOND))
    await written(store, finish(4))
    await _overdue(store, 5, Instant(at - 5 * SECOND))
    assert await store.effects.overdue(10) == [key(3), key(2), key(5)]
    assert await store.effects.overdue(2) == [key(3), key(2)]


async def _overdue(store: Store, number: int, deadline: Instant) -> None:
    began = (await written(store, insert(number))).effect
    late = replace(began.life.attempts[0], deadline=deadline)
    await written(store, Replace(seen=1, effect=replace(began, life=replace(began.life, attempts=(late,)))))


async def test_pages_show_newest_runs_and_steps_first_then_effects_without_a_run(store: Store) -> None:
    older, newer = await opened(store, "older"), await opened(store, "newer")
    for step in (insert(5, older), insert(2, newer), insert(1, newer), insert(8), insert(3, older), insert(4)):
        await written(store, step)
    await written(store, finish(5))
    order = [1, 2, 3, 5, 4, 8]
    assert await _paged(store, EffectFilter(limit=50)) == [order]
    assert await _paged(store, EffectFilter(limit=4)) == [[1, 2, 3, 5], [4, 8]]
    assert await _paged(store, EffectFilter(limit=1)) == [[number] for number in order]
    assert await _paged(store, EffectFilter(limit=5)) == [[1, 2, 3, 5, 4], [8]]
    assert await _paged(store, EffectFilter(run="older")) == [[3, 5]]
    assert await _paged(store, EffectFilter(run="nobody")) == [[]]
    assert await _paged(store, EffectFilter(state="succeeded")) == [[5]]
    assert await _paged(store, EffectFilter(state="executing", limit=3)) == [[1, 2, 3], [4, 8]]
    assert await _paged(store, EffectFilter(tool="another")) == [[]]


async def _paged(store: Store, chosen: EffectFilter) -> list[list[int]]:
    pages: list[list[int]] = []
    after: str | None = None
    while not pages or after is not None:
        effects, after = await store.effects.page(TENANT, replace(chosen, after=after))
        pages.append([int.from_bytes(effect.intent.key[6:], "big") for effect in effects])
    return pages


@pytest.mark.parametrize("cursor", ["", "zz", "é", "!!!!", "cnJycnJycnJycnJycnJycnI", "AAAA", "a" * 3000])
async def test_a_foreign_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match=r"is not a cursor|cursor of another listing"):
        await store.effects.page(TENANT, EffectFilter(after=cursor))
