"""What every store must do with questions about doubtful effects."""

import asyncio

from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, Effect, Instant, TenantId
from guard.ports.probes import Claim
from guard.ports.steps import Replace
from guard.ports.store import Store
from tests.contract.given import TENANT, in_doubt, insert, key, written
from twiceshy_contract.policies import HttpProbe
from twiceshy_contract.tools import ToolDeclaration

TOOL = "create_calendar_hold"
PROBE = HttpProbe(url="https://bank.example", applied="body.paid", not_applied="body.none")
BRIEFLY, LONG = Duration(1), Duration(3600 * SECOND)


async def test_an_effect_in_open_doubt_is_due_at_once_and_given_to_one(store: Store) -> None:
    assert await store.probes.due_tools() == []
    doubtful = await _doubted(store, 1)
    await written(store, insert(2))
    await store.tools.declare(TENANT, {"another": ToolDeclaration(probe=PROBE), TOOL: ToolDeclaration()})
    assert await store.probes.due_tools() == []
    await store.tools.declare(TENANT, {TOOL: ToolDeclaration(probe=PROBE)})
    assert await store.probes.due_tools() == [(TENANT, TOOL)]
    (claim,) = await store.probes.claim(TENANT, [TOOL], 10, LONG)
    assert (claim.key, claim.tries) == (doubtful.intent.key, 1)
    assert await store.probes.claim(TENANT, [TOOL], 10, LONG) == []
    assert await store.probes.due_tools() == []
    state = await store.probes.get(key(1))
    assert state is not None
    assert (state.tries, state.next_at, state.said) == (1, claim.until, None)
    assert await store.probes.get(key(2)) is None


async def test_of_many_who_ask_at_the_same_instant_one_is_given_the_effect(store: Store) -> None:
    for number in range(1, 6):
        await _doubted(store, number)
    given = await asyncio.gather(*(store.probes.claim(TENANT, [TOOL], 3, LONG) for _ in range(8)))
    keys = [claim.key for claims in given for claim in claims]
    assert len(keys) == len(set(keys))
    left = await store.probes.claim(TENANT, [TOOL], 5, LONG)
    assert sorted([*keys, *(claim.key for claim in left)]) == [key(number) for number in range(1, 6)]


async def test_only_effects_of_the_tenant_and_the_tools_that_are_named_are_given(store: Store) -> None:
    await _doubted(store, 1)
    assert await store.probes.claim(TenantId(2), [TOOL], 10, LONG) == []
    assert await store.probes.claim(TENANT, ["another"], 10, LONG) == []
    assert len(await store.probes.claim(TENANT, ["another", TOOL], 10, LONG)) == 1


async def test_doubt_that_is_closed_or_over_is_not_due(store: Store) -> None:
    for number, life in ((1, {"closed": True}), (2, {"state": "succeeded"})):
        doubtful = await _doubted(store, number)
        await written(store, Replace(seen=2, effect=replace(doubtful, life=replace(doubtful.life, **life))))
    await store.tools.declare(TENANT, {TOOL: ToolDeclaration(probe=PROBE)})
    assert await store.probes.due_tools() == []
    assert await store.probes.claim(TENANT, [TOOL], 10, LONG) == []


async def test_a_claim_that_has_run_out_is_given_to_the_next_and_its_answer_is_lost(store: Store) -> None:
    await _doubted(store, 1)
    (first,) = await store.probes.claim(TENANT, [TOOL], 1, BRIEFLY)
    second = await _claimed_again(store)
    assert second.tries == 2
    await store.probes.answered(first, "too late", None)
    state = await store.probes.get(key(1))
    assert state is not None
    assert (state.tries, state.next_at, state.said) == (2, second.until, None)


async def test_after_an_answer_the_next_question_waits_longer_each_time_and_not_before_it_is_of_use(
    store: Store,
) -> None:
    await _doubted(store, 1)
    (claim,) = await store.probes.claim(TENANT, [TOOL], 1, LONG)
    await store.probes.answered(claim, "status 500 proves nothing", None)
    state = await store.probes.get(key(1))
    assert state is not None
    assert state.said == "status 500 proves nothing"
    assert 0 < claim.until - state.next_at < LONG
    later = Instant(claim.until + 77)
    await store.probes.answered(claim, "said twice", later)
    unchanged = await store.probes.get(key(1))
    assert unchanged == state


async def test_an_answer_may_name_the_earliest_moment_of_the_next_question(store: Store) -> None:
    await _doubted(store, 1)
    (claim,) = await store.probes.claim(TENANT, [TOOL], 1, LONG)
    later = Instant(claim.until + 77)
    await store.probes.answered(claim, "not applied", later)
    state = await store.probes.get(key(1))
    assert state is not None
    assert state.next_at == later


async def test_what_is_settled_is_forgotten_so_that_a_new_doubt_is_due_at_once(store: Store) -> None:
    await _doubted(store, 1)
    await store.probes.claim(TENANT, [TOOL], 1, LONG)
    await store.probes.forget(key(1))
    await store.probes.forget(key(2))
    assert await store.probes.get(key(1)) is None
    (claim,) = await store.probes.claim(TENANT, [TOOL], 1, LONG)
    assert claim.tries == 1


async def _doubted(store: Store, number: int) -> Effect:
    began = (await written(store, insert(number))).effect
    return (await written(store, Replace(seen=1, effect=in_doubt(began, Instant(1))))).effect


async def _claimed_again(store: Store) -> Claim:
    while True:
        for claim in await store.probes.claim(TENANT, [TOOL], 1, LONG):
            return claim
