"""The outbox as operators see it: every message is found, and every word about one does something or says why not."""

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, TenantId
from guard.core.mail import mail_id
from guard.core.outbox import RAW, Staging
from guard.ports.outbox import MessageFilter, Moved, Redrive, StandingState
from guard.ports.relay import Again, Done, Stands
from guard.ports.store import Store
from tests.contract.given import TENANT, finish, insert, key, opened, written
from tests.contract.given_outbox import claim, declared, row, settle, stage, staged, state_of
from tests.contract.plans import do, rows
from twiceshy_contract.outbox import MessageState

AGAIN, ANEW = Redrive(anew=False, note="again by Ann"), Redrive(anew=True, note="anew by Ann")


async def _dead(store: Store, destination: int, **stands: bool) -> None:
    claimed = await claim(store, destination)
    await settle(store, *(Stands(id=one.id, state="dead", note="404", tried="permanent", **stands) for one in claimed))


async def _delivered(store: Store, destination: int) -> None:
    await settle(store, *(Done(id=one.id, over="delivered") for one in await claim(store, destination)))


async def _moved(store: Store, message: UUID, wish: Redrive) -> Moved:
    moved = await store.outbox.redrive(TENANT, message, wish)
    assert moved is not None
    return moved


async def _redriven(
    store: Store, tenant: TenantId, state: StandingState, destination: str | None, wish: Redrive, limit: int
) -> int:
    return (await store.outbox.redrive_all(tenant, state, destination, wish, limit)).count


async def _ids(store: Store, chosen: MessageFilter) -> list[list[UUID]]:
    """Return the messages of a listing, page by page."""
    pages, after = [], chosen.after
    while True:
        page, after = await store.outbox.page(TENANT, replace(chosen, after=after))
        pages.append([standing.message for standing in page])
        if after is None:
            return pages


async def test_what_is_not_over_is_listed_newest_first_by_pages(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 5)
    await settle(store, Done(id=(await claim(store, log, 1))[0].id, over="delivered"))
    newest = messages[:0:-1]
    assert await _ids(store, MessageFilter(limit=2)) == [newest[:2], newest[2:]]
    assert await _ids(store, MessageFilter(state="pending", limit=4)) == [newest]
    assert await _ids(store, MessageFilter(state="delivered")) == [messages[:1]]


@pytest.mark.parametrize("state", ["delivered", "cancelled"])
async def test_history_is_listed_newest_first_by_pages(store: Store, state: MessageState) -> None:
    log = await declared(store)
    messages = await staged(store, log, 5)
    if state == "delivered":
        await _delivered(store, log)
        newest = messages[::-1]
    else:
        for message in messages:
            await store.outbox.cancel(TENANT, message, "no")
        newest = messages[::-1]
    assert await _ids(store, MessageFilter(state=state, limit=2)) == [newest[:2], newest[2:4], newest[4:]]
    assert await _ids(store, MessageFilter(state="withdrawn")) == [[]]


async def test_a_listing_is_of_its_tenant_destination_and_run(store: Store) -> None:
    one, two = await declared(store, "one"), await declared(store, "two")
    await stage(store, 1, replace(row(1, one), destination="one"))
    run = await opened(store)
    await written(store, insert(2, run))
    staging = Staging(tenant=TENANT, rows=(replace(row(2, two), destination="two"),))
    await written(store, replace(finish(2), staging=staging))
    assert len((await _ids(store, MessageFilter()))[0]) == 2
    assert await _ids(store, MessageFilter(destination="one")) == [[row(1, one).message]]
    assert await _ids(store, MessageFilter(run=run.name)) == [[row(2, two).message]]
    assert await _ids(store, MessageFilter(run="nobody")) == [[]]
    assert (await store.outbox.page(TenantId(2), MessageFilter()))[0] == []
    assert await store.outbox.get(TenantId(2), row(1, one).message) is None
    assert await store.outbox.redrive(TenantId(2), row(1, one).message, AGAIN) is None
    assert await store.outbox.cancel(TenantId(2), row(1, one).message, "no") is None
    found = await store.outbox.get(TENANT, row(2, two).message)
    assert found is not None
    assert (found[0].run, found[0].run_id, found[0].effect) == (run.name, run.id, key(2))
    await _delivered(store, two)
    assert await _ids(store, MessageFilter(run=run.name, state="delivered")) == [[row(2, two).message]]


async def test_a_cursor_of_another_listing_is_refused(store: Store) -> None:
    log = await declared(store)
    await staged(store, log, 3)
    _, after = await store.outbox.page(TENANT, MessageFilter(limit=1))
    with pytest.raises(ValueError, match="cursor of another listing"):
        await store.outbox.page(TENANT, MessageFilter(state="delivered", after=after))
    with pytest.raises(ValueError, match="is not a cursor"):
        await store.outbox.page(TENANT, MessageFilter(after="bm9uc2Vuc2U"))


async def test_what_an_effect_staged_is_known_in_its_order(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 12)
    await _delivered(store, log)
    assert await store.outbox.of_effect(TENANT, key(1)) == tuple(messages)
    assert await store.outbox.of_effect(TENANT, key(2)) == ()
    assert await store.outbox.of_effect(TenantId(2), key(1)) == ()


async def test_a_dead_message_is_sent_again_under_its_identity(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    await _dead(store, log)
    moved = await _moved(store, message, AGAIN)
    assert (moved.is_done, moved.standing.state, moved.standing.epoch) == (True, "pending", 1)
    assert (moved.standing.attempts, moved.standing.note) == (0, "again by Ann")
    (claimed,) = await claim(store, log)
    assert (claimed.message, claimed.epoch, claimed.attempts) == (message, 1, 0)


async def test_every_word_to_send_anew_is_a_new_epoch(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    for epoch in (2, 3, 4):
        await (_dead if epoch == 2 else _delivered)(store, log)
        moved = await _moved(store, message, ANEW)
        assert (moved.is_done, moved.standing.state, moved.standing.epoch) == (True, "pending", epoch)
    (claimed,) = await claim(store, log)
    assert (claimed.message, claimed.epoch, claimed.body) == (message, 4, b'"1.0"')
    assert await _ids(store, MessageFilter(state="delivered")) == [[message, message]]


async def test_what_is_over_is_not_sent_under_the_same_identity(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    await _delivered(store, log)
    moved = await _moved(store, message, AGAIN)
    assert (moved.is_done, moved.standing.state) == (False, "delivered")
    assert await claim(store, log) == []


@pytest.mark.parametrize("wish", [AGAIN, ANEW])
async def test_what_is_due_or_being_sent_is_left_alone(store: Store, wish: Redrive) -> None:
    log = await declared(store)
    first, second = await staged(store, log, 2, "a")
    assert not (await _moved(store, first, wish)).is_done
    await claim(store, log)
    moved = [await _moved(store, message, wish) for message in (first, second)]
    assert [(one.is_done, one.standing.state) for one in moved] == [(False, "sending"), (False, "claimed")]


async def test_what_waits_for_its_time_is_due_at_once(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    await settle(store, Again(id=claimed.id, delay=Duration(3600 * SECOND), tried="retryable"))
    assert not (await _moved(store, message, ANEW)).is_done
    assert (await _moved(store, message, AGAIN)).is_done
    assert [one.message for one in await claim(store, log)] == [message]


async def test_nothing_is_sent_again_to_a_removed_destination(store: Store) -> None:
    log = await declared(store)
    one, two = await staged(store, log, 2)
    await settle(store, Done(id=(await claim(store, log, 1))[0].id, over="delivered"))
    await store.destinations.put(TENANT, "log", "removed", "gone")
    for message, state in ((one, "delivered"), (two, "parked")):
        moved = await _moved(store, message, ANEW)
        assert (moved.is_done, moved.standing.state) == (False, state)
        assert moved.why == "its destination was removed: declare it again first"
    assert await _redriven(store, TENANT, "parked", None, AGAIN, 10) == 0
    await declared(store)
    assert await _redriven(store, TENANT, "parked", None, AGAIN, 10) == 1
    assert [one.message for one in await claim(store, log)] == [two]


async def test_two_that_send_anew_at_once_are_one(store: Store) -> None:
    log = await declared(store)
    (message,) = await staged(store, log, 1)
    await _delivered(store, log)
    moved = await asyncio.gather(*(_moved(store, message, ANEW) for _ in range(4)))
    assert [one.is_done for one in moved].count(True) == 1
    assert {one.standing.epoch for one in moved} == {2}


async def test_all_of_a_state_are_sent_again_oldest_first_up_to_a_limit(store: Store) -> None:
    one, two = await declared(store, "one"), await declared(store, "two")
    first = await stage(store, 1, *(replace(row(1, one, None, place), destination="one") for place in range(4)))
    await stage(store, 2, replace(row(2, two), destination="two"))
    await _dead(store, one)
    await _dead(store, two)
    assert await _redriven(store, TenantId(2), "dead", None, AGAIN, 10) == 0
    assert await _redriven(store, TENANT, "unknown", None, AGAIN, 10) == 0
    assert await _redriven(store, TENANT, "dead", "one", AGAIN, 3) == 3
    assert [claimed.message for claimed in await claim(store, one)] == first[:3]
    assert await _redriven(store, TENANT, "dead", None, ANEW, 10) == 2
    assert [claimed.epoch for claimed in await claim(store, two)] == [2]


async def test_mail_that_is_sent_anew_is_known_under_its_new_id(store: Store, database_url: str) -> None:
    log = await declared(store)
    message = row(1, log).message
    mail = replace(row(1, log), recipient="a@b.c", mail_id=mail_id(f"{message}.1"), thread="t", thread_name="order")
    await stage(store, 1, mail)
    await _dead(store, log)
    await _moved(store, message, ANEW)
    await _delivered(store, log)
    await _moved(store, message, ANEW)
    await do(database_url, f"DELETE FROM mails WHERE mail_id = '{mail_id(f'{message}.1')}'")
    kept = await _mails(database_url)
    assert kept == [(mail_id(f"{message}.{epoch}"), epoch, "t", "order", "a@b.c") for epoch in (2, 3)]


async def test_a_message_is_taken_back_until_it_is_being_sent(store: Store) -> None:
    log = await declared(store)
    pending, sending, claimed = *(await staged(store, log, 1)), *(await staged(store, log, 2, "a", 2))
    asked = await store.outbox.cancel(TENANT, pending, "not wanted")
    assert asked is not None
    assert (asked.is_done, asked.standing.state, asked.standing.note) == (True, "cancelled", "not wanted")
    again = await store.outbox.cancel(TENANT, pending, "not wanted")
    assert again is not None
    assert (again.is_done, again.standing.state) == (False, "cancelled")
    first, behind = await claim(store, log)
    asked = await store.outbox.cancel(TENANT, sending, "too late")
    assert asked is not None
    assert (asked.is_done, asked.standing.state) == (False, "sending")
    asked = await store.outbox.cancel(TENANT, claimed, "in time")
    assert asked is not None
    assert asked.is_done
    assert await settle(store, Done(id=behind.id, over="delivered"), Done(id=first.id, over="delivered")) == (
        behind.id,
    )
    assert await store.outbox.cancel(TENANT, UUID(int=9), "nobody") is None


async def test_an_unrendered_message_is_left_until_rendered_rows_take_its_place(
    store: Store, database_url: str
) -> None:
    log = await declared(store)
    raw = replace(row(1, log), destination_id=None, content_type=RAW, parked="no destination is named 'log'")
    other = row(1, log, "a", 1)
    await stage(store, 1, raw, other)
    assert await state_of(store, raw.message) == "parked"
    moved = await _moved(store, raw.message, AGAIN)
    assert (moved.is_done, moved.standing.state, moved.why) == (False, "parked", "it was never rendered")
    assert await _redriven(store, TENANT, "parked", None, AGAIN, 10) == 0
    copies = [
        replace(row(1, log, place=place), recipient=f"{place}@b.c", mail_id=str(place), thread="t") for place in (0, 7)
    ]
    assert await store.outbox.replace(TENANT, other.message, copies, AGAIN) == "gone"
    assert await store.outbox.replace(TENANT, raw.message, copies, AGAIN) == "replaced"
    assert await store.outbox.replace(TENANT, raw.message, copies, AGAIN) == "gone"
    assert await store.outbox.of_effect(TENANT, key(1)) == (raw.message, copies[1].message, other.message)
    assert [found[0] for found in await _mails(database_url)] == ["0", "7"]
    assert [one.message for one in await claim(store, log)] == [raw.message, other.message, copies[1].message]
    found = await store.outbox.get(TENANT, raw.message)
    assert found is not None
    assert (found[0].note, found[0].effect, found[0].recipient) == ("again by Ann", key(1), "0@b.c")


async def _mails(url: str) -> list[tuple[object, ...]]:
    """Read which mail has which id."""
    return await rows(url, "SELECT mail_id, epoch, thread, thread_name, recipient FROM mails ORDER BY epoch, mail_id")
