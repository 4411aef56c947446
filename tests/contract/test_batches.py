"""Batches of steps: answered each in its place, applied once."""

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import (
    AttemptToken,
    Effect,
    Evidence,
    Instant,
    Life,
)
from guard.ports.steps import Found, Look, Replace, Step, Written
from guard.ports.store import StatementFailed, Store
from tests.contract.given import (
    FIRST,
    SECOND_TOKEN,
    finish,
    in_doubt,
    insert,
    intent,
    key,
    nothing,
    opened,
    written,
)


async def test_a_batch_answers_each_step_in_its_place(store: Store) -> None:
    run = await opened(store)
    two = (await written(store, insert(2, run))).effect
    three = (await written(store, insert(3, run))).effect
    answers = await store.effects.apply(
        0,
        [
            Look(key=key(9)),
            finish(9),
            Replace(seen=1, effect=in_doubt(three, Instant(1))),
            insert(9, run),
            finish(2),
            Look(key=key(8)),
            insert(3, run, SECOND_TOKEN),
            Replace(seen=5, effect=two),
        ],
    )
    kinds = [Found, Written, Written, Written, Written, Found, Found, Found]
    assert [type(answer) for answer in answers] == kinds
    states = [getattr(getattr(a, "effect", None), "life", Life(state="pending")).state for a in answers]
    assert states == [
        "succeeded",
        "succeeded",
        "in_doubt",
        "executing",
        "succeeded",
        "pending",
        "executing",
        "succeeded",
    ]
    assert len({answer.at for answer in answers}) == 1


async def test_of_two_inserts_of_one_key_in_a_batch_the_first_wins(store: Store) -> None:
    one_, two = await store.effects.apply(0, [insert(1, token=SECOND_TOKEN), insert(1, token=FIRST)])
    assert isinstance(one_, Written)
    assert isinstance(two, Found)
    assert two.effect == one_.effect


async def test_a_batch_repeated_after_a_lost_reply_changes_nothing(store: Store) -> None:
    run = await opened(store)
    began = (await written(store, insert(1, run))).effect
    await written(store, insert(2, run))
    proof = Evidence(at=Instant(1), token=None, kind="success", body=b"{}")
    batch: list[Step] = [
        insert(3, run),
        finish(2),
        Replace(seen=1, effect=in_doubt(began, Instant(1)), evidence=(proof,)),
        Replace(seen=0, effect=Effect(version=0, intent=intent(4, run), life=Life(state="pending"))),
    ]
    first = await store.effects.apply(0, batch)
    assert all(isinstance(answer, Written) for answer in first)
    again = await store.effects.apply(0, batch)
    assert [a.effect for a in again if isinstance(a, Found)] == [a.effect for a in first if isinstance(a, Written)]
    assert await store.effects.evidence(key(1)) == [proof]
    assert (await opened(store)).effects == 4


async def test_a_batch_that_is_refused_does_nothing(store: Store) -> None:
    bad = replace(insert(2), intent=replace(intent(2), occurrence=2**70))
    with pytest.raises(StatementFailed):
        await store.effects.apply(0, [insert(1), bad])
    assert await nothing(store, 1)


async def test_an_empty_batch_answers_nothing(store: Store) -> None:
    assert await store.effects.apply(0, []) == []


async def test_fifty_tasks_begin_one_effect_and_one_wins(store: Store) -> None:
    run = await opened(store)
    tokens = [AttemptToken(UUID(int=number)) for number in range(100, 150)]
    lanes = store.effects.lanes
    calls = (store.effects.apply(at % lanes, [insert(1, run, token)]) for at, token in enumerate(tokens))
    answers = [answer for (answer,) in await asyncio.gather(*calls)]
    (won,) = [answer for answer in answers if isinstance(answer, Written)]
    assert all(answer.effect == won.effect for answer in answers if isinstance(answer, Found))
    assert (await opened(store)).effects == 1
