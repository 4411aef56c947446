"""A lease and a person's word about the same arguments: whichever comes second knows of the first."""

import asyncio
from collections import Counter
from uuid import UUID

from msgspec.structs import replace

from guard.core.approvals import Ballot, Counted, Edit, NotCounted, Question
from guard.core.effects import Attempt, Effect, Fence, Instant, Key, Life
from guard.ports.approvals import SameAs, Told
from guard.ports.steps import Consent, Found, Overruled, Replace, Written
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract.given import FIRST, LEASE, TENANT, insert, intent, key, one, written

YES = Ballot(person="bob", verdict="approve")
FREE = Consent(edits=0)


async def asked(store: Store, named: Key) -> UUID:
    """Ask about an effect."""
    question = Question(
        key=named,
        round=1,
        tool="refund",
        tool_version=1,
        run="run-1",
        digest=b"asked",
        arguments=b'{"amount":100}',
        summary="refund",
        evidence=b"{}",
        requester=None,
    )
    return (await store.approvals.ask(TENANT, question)).approval.id


async def edited(store: Store, approval: UUID, named: Key, edits: int = 0) -> Told:
    """Approve with other arguments, which name an effect."""
    edit = Edit(b'{"amount":40}', b"less", named)
    told = await store.approvals.decide(TENANT, approval, replace(YES, edit=edit), edits)
    assert told is not None
    return told


def waiting(number: int) -> Replace:
    """Return the step that makes an effect for which a person is asked."""
    return Replace(seen=0, effect=Effect(version=0, intent=intent(number), life=Life(state="pending")))


def granted(made: Written, approval: UUID) -> Replace:
    """Return the step that grants the first lease of an effect that was approved."""
    lease = Attempt(token=FIRST, fence=Fence(1), granted_at=made.at, deadline=Instant(made.at + LEASE))
    life = Life(state="executing", fence=Fence(1), attempts=(lease,), tries=1, epoch_since=made.at)
    effect = replace(made.effect, life=life)
    return Replace(seen=made.effect.version, effect=effect, consent=Consent(approval=approval))


async def test_arguments_that_a_person_gave_to_another_effect_do_not_begin_in_their_own_right(store: Store) -> None:
    await edited(store, await asked(store, key(1)), key(2))
    refused = await one(store, replace(insert(2), consent=FREE))
    assert isinstance(refused, Overruled)
    seen = await one(store, replace(insert(2), consent=Consent(edits=1)))
    assert isinstance(seen, Written)
    again = await one(store, replace(insert(2), consent=FREE))
    assert isinstance(again, Found)
    assert again.effect is not None


async def test_arguments_of_an_effect_that_has_begun_are_not_given_to_another(store: Store) -> None:
    approval = await asked(store, key(1))
    await written(store, replace(insert(2), consent=FREE))
    assert (await edited(store, approval, key(2))).said == SameAs(key(2))


async def test_of_an_edit_and_a_begin_of_the_same_arguments_at_two_replicas_one_comes_second(
    store: Store, database_url: str
) -> None:
    other = await open_store(database_url)
    try:
        seen: Counter[str] = Counter()
        for number in range(10, 90, 2):
            approval = await asked(store, key(number))
            begin = one(other, replace(insert(number + 1), consent=FREE))
            edit = edited(store, approval, key(number + 1))
            if number % 4:
                answer, told = await asyncio.gather(begin, edit)
            else:
                told, answer = await asyncio.gather(edit, begin)
            kinds = (isinstance(answer, Written), isinstance(told.said, Counted))
            assert sorted(kinds) == [False, True], (answer, told)
            seen["begin" if kinds[0] else "edit"] += 1
        assert sum(seen.values()) == 40
    finally:
        await other.close()


async def test_what_was_approved_and_taken_back_does_not_begin_and_what_began_is_not_taken_back(store: Store) -> None:
    approval, made = await asked(store, key(1)), await written(store, waiting(1))
    await store.approvals.decide(TENANT, approval, YES)
    assert isinstance(await one(store, granted(made, approval)), Written)
    told = await store.approvals.cancel(TENANT, approval, "bob", "wrong")
    assert told is not None
    assert told.said == NotCounted("begun")
    approval, made = await asked(store, key(2)), await written(store, waiting(2))
    await store.approvals.decide(TENANT, approval, YES)
    told = await store.approvals.cancel(TENANT, approval, "bob", "wrong")
    assert told is not None
    assert isinstance(told.said, Counted)
    assert isinstance(await one(store, granted(made, approval)), Overruled)
    assert isinstance(await one(store, replace(granted(made, approval), seen=7)), Found)


async def test_of_a_grant_and_a_word_taken_back_at_once_one_comes_second(store: Store, database_url: str) -> None:
    other = await open_store(database_url)
    try:
        for number in range(100, 120):
            approval, made = await asked(store, key(number)), await written(store, waiting(number))
            await store.approvals.decide(TENANT, approval, YES)
            answer, told = await asyncio.gather(
                one(other, granted(made, approval)), store.approvals.cancel(TENANT, approval, "bob", "wrong")
            )
            assert told is not None
            assert sorted((isinstance(answer, Written), isinstance(told.said, Counted))) == [False, True]
    finally:
        await other.close()


async def test_the_last_of_a_batch_hears_of_its_own_person_only(store: Store) -> None:
    await edited(store, await asked(store, key(1)), key(3))
    steps = [replace(insert(number), consent=FREE if number != 4 else None) for number in (2, 3, 4)]
    answers = await store.effects.apply(0, steps)
    assert [type(answer) for answer in answers] == [Written, Overruled, Written]
    assert answers[1].at >= Instant(0)
