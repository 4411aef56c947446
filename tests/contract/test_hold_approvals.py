"""The hold of an effect that waits for a person stands while it does; without the effect nobody's answer keeps it."""

from uuid import UUID

import pytest

from guard.core.approvals import Ballot, Question
from guard.core.effects import SECOND, Duration, Effect, Life
from guard.ports.approvals import Standing
from guard.ports.holds import HoldFilter
from guard.ports.steps import Replace
from guard.ports.store import Store
from guard.store.sql.hold_pages import chosen_holds, select_outdated
from guard.store.sql.holds import SqlHolds
from tests.contract.given import TENANT, intent, key, written
from tests.contract.given_holds import occupied, placed, state_of, wish
from twiceshy_contract.approvals import Verdict

PENDING = Replace(seen=0, effect=Effect(version=0, intent=intent(1), life=Life(state="pending")))


async def asked(store: Store, deadline: Duration | None = None) -> Standing:
    """Ask a person about the effect."""
    said = Question(
        key=key(1),
        round=1,
        tool="book",
        tool_version=1,
        run="booking-42",
        digest=b"asked",
        arguments=b"{}",
        summary="Book room-1",
        evidence=b"{}",
        requester=None,
        deadline=deadline,
    )
    return await store.approvals.ask(TENANT, said)


async def test_a_call_that_dies_before_its_begin_leaves_a_hold_that_ends_whoever_is_asked(store: Store) -> None:
    await asked(store)
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    assert await store.holds.sweep(10) == 1
    assert await state_of(store, 1) == "expired"
    await placed(store, wish(2))


async def test_an_effect_that_waits_for_a_person_keeps_its_hold(store: Store) -> None:
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    await asked(store)
    await written(store, PENDING)
    answer = await occupied(store, wish(2))
    assert (answer.by.hold.id, answer.retry_after) == (UUID(int=1), None)
    assert [hold.state for hold in (await store.holds.page(TENANT, HoldFilter())).holds] == ["held"]
    assert isinstance(store.holds, SqlHolds)
    wanted = chosen_holds(TENANT, HoldFilter())
    assert await store.holds._database.read(lambda connection: select_outdated(connection, wanted)) == []
    assert [await store.holds.sweep(10) for _ in range(2)] == [1, 0]
    assert await state_of(store, 1) == "held"


async def test_a_hold_waits_for_an_answer_until_the_deadline_at_most(store: Store) -> None:
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    deadline = (await asked(store, Duration(30 * SECOND))).approval.expires_at
    await written(store, PENDING)
    await store.holds.sweep(10)
    waiting = await store.holds.of_effect(key(1))
    assert waiting is not None
    assert waiting.expires_at == deadline


@pytest.mark.parametrize(("verdict", "state"), [("approve", "held"), ("deny", "expired")])
async def test_after_the_answer_a_hold_waits_for_its_caller_where_it_was_yes(
    store: Store, verdict: Verdict, state: str
) -> None:
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    approval = (await asked(store)).approval.id
    await written(store, PENDING)
    assert await store.approvals.decide(TENANT, approval, Ballot(person="bob", verdict=verdict)) is not None
    await store.holds.sweep(10)
    assert await state_of(store, 1) == state
