"""Instances of a slot: the newest, an attempt's own, those whose outcomes are known; none costs more than another."""

from uuid import UUID, uuid4

from msgspec.structs import replace
from sqlalchemy import Connection

from guard.core.effects import AttemptToken, Effect, Fence, Instant, TenantId
from guard.core.runs import Run
from guard.ports.steps import Insert, Replace
from guard.ports.store import Newest, Store
from guard.store.sql.instances import select_newest
from tests.contract.given import (
    FIRST,
    LEASE,
    RESULT,
    TENANT,
    finish,
    found,
    in_doubt,
    insert,
    intent,
    key,
    opened,
    written,
)
from tests.contract.given import look as looked
from tests.contract.plans import do, plans

SLOT = b"\x07" * 32
MANY = 3000
OTHERS = b"\x09" * 32
"""The digest of arguments that no instance has."""


def instance(rank: int, token: AttemptToken = FIRST, occurrence: int = 1, run: Run | None = None) -> Insert:
    """Return the step that makes an instance of the slot."""
    said = replace(
        intent(occurrence * 1000 + rank, run), slot=SLOT, occurrence=occurrence, generation=occurrence + rank - 1
    )
    return Insert(intent=said, token=token, lease=LEASE)


def drawn() -> AttemptToken:
    return AttemptToken(uuid4())


async def test_the_newest_instance_of_an_occurrence_is_found_by_its_rank(store: Store) -> None:
    stranger = drawn()
    assert await store.effects.newest(SLOT, 1, stranger, OTHERS) == Newest(rank=0, own=None)
    for rank in (1, 2, 3):
        await written(store, instance(rank, drawn()))
    await written(store, instance(1, drawn(), occurrence=5))
    assert await store.effects.newest(SLOT, 1, stranger, OTHERS) == Newest(rank=3, own=None)
    assert await store.effects.newest(SLOT, 5, stranger, OTHERS) == Newest(rank=1, own=None)
    assert await store.effects.newest(SLOT, 2, stranger, OTHERS) == Newest(rank=0, own=None)
    assert await store.effects.newest(b"\x08" * 32, 1, stranger, OTHERS) == Newest(rank=0, own=None)


async def test_an_attempt_finds_its_own_instance_among_newer_ones(store: Store) -> None:
    first, second, third = drawn(), drawn(), drawn()
    began = await written(store, instance(1, first))
    lost = replace(began.effect.life.attempts[0], report="unknown", reported_at=began.at)
    again = replace(lost, token=second, fence=Fence(2), report="none", reported_at=None)
    life = replace(began.effect.life, fence=Fence(2), attempts=(lost, again))
    await written(store, Replace(seen=1, effect=replace(began.effect, life=life)))
    await written(store, instance(2, third))
    assert await store.effects.newest(SLOT, 1, first, OTHERS) == Newest(rank=2, own=1)
    assert await store.effects.newest(SLOT, 1, second, OTHERS) == Newest(rank=2, own=1)
    assert await store.effects.newest(SLOT, 1, third, OTHERS) == Newest(rank=2, own=2)
    assert await store.effects.newest(SLOT, 2, first, OTHERS) == Newest(rank=0, own=None)
    assert await store.effects.newest(b"\x08" * 32, 1, first, OTHERS) == Newest(rank=0, own=None)


async def test_what_failed_with_the_same_arguments_is_found_unless_a_newer_one_had_them(store: Store) -> None:
    stranger, card = drawn(), b"\x0c" * 32
    for rank in (1, 2, 3):
        said = instance(rank, drawn())
        is_alike = rank < 3
        began = await written(
            store, replace(said, intent=replace(said.intent, arguments_digest=card)) if is_alike else said
        )
        assert await store.effects.newest(SLOT, 1, stranger, card) == Newest(rank=rank, refused=None if rank < 3 else 2)
        if is_alike:
            await written(store, Replace(seen=1, effect=_refused(began.effect, began.at)))
            assert await store.effects.newest(SLOT, 1, stranger, card) == Newest(rank=rank, refused=rank)
    assert await store.effects.newest(SLOT, 2, stranger, card) == Newest()


async def test_an_instance_that_is_not_looked_up_is_not_found(store: Store) -> None:
    await written(store, insert(1))
    assert await store.effects.newest(SLOT, 1, FIRST, OTHERS) == Newest(rank=0, own=None)


async def test_an_effect_from_before_instances_were_looked_up_takes_its_slot_once(store: Store) -> None:
    made = (await written(store, insert(1))).effect
    for slot in (SLOT, b"\x08" * 32):
        await store.effects.keep_slot(key(1), slot)
    kept = await looked(store, 1)
    assert kept == replace(made, version=2, intent=replace(made.intent, slot=SLOT))


async def test_final_effects_of_the_run_are_marked_as_delivered_once(store: Store) -> None:
    run = await opened(store)
    done = await _done(store, 1, run)
    refused = await _failed(store, 2, run)
    for _ in range(2):
        await store.effects.deliver(TENANT, run.id, [key(2), key(1), key(1)])
        assert await looked(store, 1) == replace(done, delivered=True, version=3)
        assert await looked(store, 2) == replace(refused, delivered=True, version=3)


async def test_what_is_not_over_not_the_runs_or_unknown_is_not_delivered(store: Store) -> None:
    run, other = await opened(store), await opened(store, "other")
    running = (await written(store, insert(1, run))).effect
    began = await written(store, insert(2, run))
    doubtful = (await written(store, Replace(seen=1, effect=in_doubt(began.effect, began.at)))).effect
    foreign = await _done(store, 3, other)
    alone = await _done(store, 4, None)
    await store.effects.deliver(TENANT, run.id, [key(number) for number in range(1, 9)])
    await store.effects.deliver(TenantId(2), other.id, [key(3)])
    assert [await looked(store, number) for number in (1, 2, 3, 4)] == [running, doubtful, foreign, alone]


async def test_a_mark_that_comes_beside_a_planned_write_is_not_undone(store: Store) -> None:
    run = await opened(store)
    done = await _done(store, 1, run)
    await store.effects.deliver(TENANT, run.id, [key(1)])
    assert (await found(store, Replace(seen=done.version, effect=done))).delivered


async def test_the_three_thousandth_instance_is_found_by_index_as_the_second_is(
    store: Store, database_url: str
) -> None:
    await written(store, instance(1))
    await store.close()
    await do(database_url, _copies(database_url), _ATTEMPTS, "ANALYZE")

    def work(connection: Connection) -> None:
        newest = select_newest(connection, SLOT, 1, AttemptToken(UUID(int=99)), OTHERS)
        assert newest == Newest(rank=MANY, own=None)

    (plan,) = await plans(database_url, work)
    assert "effects_slot" in plan
    assert "effects_slot_attempt" in plan
    assert "effects_slot_arguments" in plan
    assert "attempts_token" in plan
    assert "Seq Scan" not in plan
    assert "SCAN" not in plan.replace("SCAN CONSTANT ROW", "")


_ATTEMPTS = (
    "INSERT INTO attempts (key, token, fence, granted_at, deadline, report, settled) "
    "SELECT key, attempt, 1, 1, 1, 4, true FROM effects"
)


def _copies(url: str) -> str:
    """Return the statement that adds more instances to the slot."""
    names = (
        "version, tenant, run_id, run, step, tool, tool_version, rule, caller_step, business_key, occurrence, "
        "identity_digest, arguments_digest, arguments, worker, began_at, state, fence, granted_at, "
        "lease_expires_at, report, reported_at, settled, tries, retry_at, epoch, epoch_since, closed, ended_at, "
        "outcome, resolution, slot, edited, delivered, expired_at, earlier"
    )
    if url.startswith("sqlite"):
        numbers = f"WITH RECURSIVE n(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM n WHERE n < {MANY})"
        chosen = f"SELECT randomblob(32), n, randomblob(16), {names} FROM n, effects"
        return f"{numbers} INSERT INTO effects (key, generation, attempt, {names}) {chosen}"
    numbers = f"generate_series(2, {MANY}) n"
    return (
        f"INSERT INTO effects (key, generation, attempt, {names}) "
        f"SELECT sha256(n::text::bytea), n, gen_random_uuid(), {names} "
        f"FROM {numbers}, effects"
    )


async def _done(store: Store, number: int, run: Run | None) -> Effect:
    await written(store, insert(number, run))
    done = (await written(store, finish(number))).effect
    assert done.outcome == RESULT
    return done


async def _failed(store: Store, number: int, run: Run) -> Effect:
    began = await written(store, insert(number, run))
    return (await written(store, Replace(seen=1, effect=_refused(began.effect, began.at)))).effect


def _refused(effect: Effect, at: Instant) -> Effect:
    told = replace(effect.life.attempts[0], report="rejected", reported_at=at)
    return replace(effect, life=replace(effect.life, state="failed", attempts=(told,), ended_at=at))
