"""Staging: in the transaction that records success, once, whichever way it came; and what may not go out is parked."""

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, Effect, Instant
from guard.core.mail import mail_id
from guard.core.outbox import Staged, Staging
from guard.ports.outbox import MessageFilter
from guard.ports.steps import Found, Replace
from guard.ports.store import Store
from tests.contract.given import (
    RESULT,
    SECOND_TOKEN,
    TENANT,
    finish,
    insert,
    key,
    nothing,
    one,
    opened,
    written,
)
from tests.contract.given_outbox import claim, declared, row, stage, states
from tests.contract.plans import do, rows


def _succeeded(effect: Effect, at: Instant, *staged: Staged, ended_at: Instant | None = None) -> Replace:
    """Return the step that records success in another way than its attempt's own word, and what it stages."""
    *earlier, latest = effect.life.attempts
    told = replace(latest, report="succeeded", reported_at=at)
    life = replace(effect.life, state="succeeded", attempts=(*earlier, told), ended_at=at)
    done = replace(effect, life=life, outcome=RESULT)
    return Replace(seen=effect.version, effect=done, staging=Staging(tenant=TENANT, rows=staged, ended_at=ended_at))


async def _notes(store: Store) -> list[tuple[str, str | None]]:
    """Return the states and notes of all that waits, oldest first."""
    page, _ = await store.outbox.page(TENANT, MessageFilter())
    return [(standing.state, standing.note) for standing in reversed(page)]


async def test_what_a_success_stages_waits_as_it_was_staged(store: Store) -> None:
    log = await declared(store)
    run = await opened(store)
    await written(store, insert(1, run))
    staged = row(1, log, "a", delay=Duration(60 * SECOND))
    done = await written(store, replace(finish(1), staging=Staging(tenant=TENANT, rows=(staged,))))
    found = await store.outbox.get(TENANT, staged.message)
    assert found is not None
    standing, tries = found
    assert (standing.state, standing.epoch, standing.attempts, tries) == ("pending", 1, 0, [])
    assert (standing.effect, standing.run, standing.run_id) == (key(1), run.name, run.id)
    assert (standing.destination_id, standing.destination, standing.lane, standing.type) == (
        log,
        "log",
        "a",
        "order.created",
    )
    assert (standing.headers, standing.body, standing.content_type) == ({"a": "b"}, b'"1.0"', "application/json")
    assert standing.staged_at == done.at
    assert standing.due_at == done.at + 60 * SECOND


async def test_an_effect_stages_once_whoever_brings_proof_later(store: Store) -> None:
    log = await declared(store)
    await stage(store, 1, row(1, log))
    again = replace(finish(1), staging=Staging(tenant=TENANT, rows=(row(1, log), row(1, log, place=1))))
    assert isinstance(await one(store, again), Found)
    assert await states(store) == {"pending": 1}


async def test_an_effect_that_staged_nothing_at_its_success_stages_with_later_proof_once(store: Store) -> None:
    log = await declared(store)
    await written(store, insert(1))
    done = await written(store, finish(1))
    for _ in range(2):
        seen = done.effect
        proof = Staging(tenant=TENANT, rows=(row(1, log),), ended_at=done.at)
        done = await written(store, Replace(seen=seen.version, effect=seen, staging=proof))
    assert await states(store) == {"pending": 1}


async def test_a_success_that_is_not_written_stages_nothing(store: Store) -> None:
    log = await declared(store)
    staging = Staging(tenant=TENANT, rows=(row(1, log),))
    assert isinstance(await one(store, replace(finish(1), staging=staging)), Found)
    await written(store, insert(1))
    assert isinstance(await one(store, replace(finish(1, SECOND_TOKEN), staging=staging)), Found)
    assert await states(store) == {}
    assert not await nothing(store, 1)


async def test_a_success_by_other_proof_stages_too(store: Store) -> None:
    log = await declared(store)
    began = await written(store, insert(1))
    await written(store, _succeeded(began.effect, began.at, row(1, log), row(1, log, place=1)))
    assert await states(store) == {"pending": 2}
    assert await store.outbox.of_effect(TENANT, key(1)) == (row(1, log).message, row(1, log, place=1).message)


async def test_several_effects_of_one_batch_stage_each_their_own(store: Store) -> None:
    log = await declared(store)
    for number in (1, 2, 3):
        await written(store, insert(number))
    await store.effects.apply(
        0,
        [
            replace(finish(1), staging=Staging(tenant=TENANT, rows=(row(1, log), row(1, log, place=1)))),
            finish(2),
            replace(finish(3), staging=Staging(tenant=TENANT, rows=(row(3, log),))),
            insert(4),
        ],
    )
    assert sorted(claimed.body for claimed in await claim(store, log)) == [b'"1.0"', b'"1.1"', b'"3.0"']


async def test_proof_that_comes_too_late_is_parked(store: Store, database_url: str) -> None:
    log = await declared(store)
    await written(store, insert(1))
    await do(database_url, "UPDATE effects SET lease_expires_at = lease_expires_at - 120000000")
    minute, hour = Duration(60 * SECOND), Duration(3600 * SECOND)
    staged = (row(1, log, "a", not_after=minute), row(1, log, "a", 1, not_after=hour))
    await written(store, replace(finish(1), staging=Staging(tenant=TENANT, rows=staged)))
    assert await _notes(store) == [
        ("parked", "the proof of its effect came too late: redrive it if it is wanted still"),
        ("pending", None),
    ]
    assert [claimed.message for claimed in await claim(store, log)] == [staged[1].message]


@pytest.mark.parametrize(("ago", "state"), [(30, "pending"), (90, "parked")])
async def test_the_lease_that_counts_is_that_of_whoever_brings_the_proof(store: Store, ago: int, state: str) -> None:
    log = await declared(store)
    began = await written(store, insert(1))
    ended_at = Instant(began.at - ago * SECOND)
    staged = row(1, log, not_after=Duration(60 * SECOND))
    await written(store, _succeeded(began.effect, began.at, staged, ended_at=ended_at))
    assert await states(store) == {state: 1}


@pytest.mark.parametrize("is_admitted", [True, False])
async def test_a_fork_sends_nothing_unless_its_staging_was_admitted(
    store: Store, database_url: str, *, is_admitted: bool
) -> None:
    log = await declared(store)
    run = await opened(store, "a-fork")
    await do(database_url, "UPDATE runs SET parent_id = id")
    await written(store, insert(1, run))
    staging = Staging(tenant=TENANT, rows=(row(1, log), row(1, log, "a", 1)), admitted=is_admitted)
    await written(store, replace(finish(1), staging=staging))
    parked = ("parked", "it was staged in a fork: redrive it if the world should have it")
    assert await _notes(store) == [("pending", None) if is_admitted else parked] * 2


async def test_what_was_parked_stands_in_no_lane(store: Store, database_url: str) -> None:
    log = await declared(store)
    await stage(store, 1, row(1, log, "a", parked="why"), row(1, log, "a", 1), row(1, log, None, 2))
    assert await rows(database_url, "SELECT state, in_lane, lane FROM outbox ORDER BY id") == [
        (6, False, "a"),
        (1, True, "a"),
        (1, False, None),
    ]


async def test_mail_is_known_by_its_id_in_its_thread(store: Store, database_url: str) -> None:
    log = await declared(store)
    run = await opened(store)
    await written(store, insert(1, run))
    message = row(1, log).message
    id_ = mail_id(f"{message}.1")
    mail = replace(row(1, log), recipient="a@b.c", mail_id=id_, thread="root", thread_name="order-1")
    await written(store, replace(finish(1), staging=Staging(tenant=TENANT, rows=(mail, row(1, log, place=1)))))
    columns = "mail_id, tenant, epoch, thread, thread_name, run, destination, recipient"
    assert await rows(database_url, f"SELECT {columns} FROM mails") == [
        (id_, 1, 1, "root", "order-1", run.name, "log", "a@b.c")
    ]
