"""How often a run began a slot: so many attempts are let in, each is counted once."""

import asyncio
from uuid import uuid4

from guard.core.effects import AttemptToken
from guard.ports.store import Store
from tests.contract.given import opened

SLOT, OTHER = b"\x01" * 32, b"\x02" * 32


def drawn(count: int) -> list[AttemptToken]:
    return [AttemptToken(uuid4()) for _ in range(count)]


async def test_so_many_attempts_are_let_in_and_a_repeated_one_is_not_counted(store: Store) -> None:
    run = (await opened(store)).id
    first, second, third, fourth = drawn(4)
    asked = (first, first, second, first, second, third, fourth, fourth, third, first)
    let_in = [await store.loops.admit(run, SLOT, token, 3) for token in asked]
    assert let_in == [True, True, True, True, True, True, False, False, True, True]


async def test_runs_and_slots_are_counted_apart(store: Store) -> None:
    run, other = (await opened(store)).id, (await opened(store, "other")).id
    tokens = drawn(4)
    asked = ((run, SLOT), (run, OTHER), (other, SLOT), (run, SLOT))
    let_in = [
        await store.loops.admit(where, slot, token, 1) for (where, slot), token in zip(asked, tokens, strict=True)
    ]
    assert let_in == [True, True, True, False]


async def test_a_limit_that_is_raised_makes_room(store: Store) -> None:
    run = (await opened(store)).id
    first, second, third = drawn(3)
    assert await store.loops.admit(run, SLOT, first, 1)
    assert not await store.loops.admit(run, SLOT, second, 1)
    assert await store.loops.admit(run, SLOT, second, 2)
    assert not await store.loops.admit(run, SLOT, third, 1)


async def test_beyond_a_hundred_attempts_the_count_goes_on(store: Store) -> None:
    run = (await opened(store)).id
    tokens = drawn(130)
    assert all([await store.loops.admit(run, SLOT, token, 130) for token in tokens])
    assert await store.loops.admit(run, SLOT, tokens[-100], 130)
    assert not await store.loops.admit(run, SLOT, drawn(1)[0], 130)


async def test_of_many_at_once_exactly_so_many_are_let_in(store: Store) -> None:
    run = (await opened(store)).id
    let_in = await asyncio.gather(*(store.loops.admit(run, SLOT, token, 5) for token in drawn(20)))
    assert sum(let_in) == 5
