"""What every store must do with mail that comes in: kept once, beside what it answers."""

import asyncio
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import Duration, TenantId
from guard.core.inbound_mail import Inbound
from guard.core.outbox import Staged, Staging
from guard.core.runs import Run
from guard.ports.replies import ReplyFilter
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT, finish, insert, opened, written

FIRST_MAIL, SECOND_MAIL, ROOT, OTHER = ("a" * 32, "b" * 32, "c" * 32, "d" * 32)


def reply(number: int = 1) -> Inbound:
    return Inbound(message_id=f"<r{number}@x.example>", from_="ann@x.example", subject="Re: Room", text="Yes")


async def sent(store: Store, number: int, mail_id: str, thread: str | None = None, run: Run | None = None) -> UUID:
    """Stage a mail; return its message."""
    message = UUID(int=number)
    row = Staged(
        message=message,
        destination_id=None,
        destination="mail",
        lane=None,
        type=None,
        recipient="ann@x.example",
        content_type="message/rfc822",
        headers=b"{}",
        body=b"",
        delay=Duration(0),
        not_after=Duration(0),
        parked="nowhere to go",
        mail_id=mail_id,
        thread=thread,
        thread_name=None if thread is None else "booking",
    )
    await written(store, insert(number, run))
    await written(store, replace(finish(number), staging=Staging(tenant=TENANT, rows=(row,))))
    return message


async def test_a_reply_is_kept_beside_the_mail_that_it_names_first(store: Store) -> None:
    run = await opened(store)
    first = await sent(store, 1, FIRST_MAIL, ROOT, run)
    await sent(store, 2, SECOND_MAIL, ROOT)
    taken = await store.replies.take(TENANT, reply(), [OTHER, FIRST_MAIL, SECOND_MAIL])
    assert not taken.was_known
    assert taken.reply.mail == reply()
    assert (taken.reply.message, taken.reply.run, taken.reply.thread) == (first, "booking-42", "booking")
    assert taken.reply.received_at > 0


async def test_a_reply_that_names_a_root_alone_answers_the_newest_mail_of_the_thread(store: Store) -> None:
    await sent(store, 1, FIRST_MAIL, ROOT)
    second = await sent(store, 2, SECOND_MAIL, ROOT)
    taken = await store.replies.take(TENANT, reply(), [OTHER, ROOT])
    assert (taken.reply.message, taken.reply.run, taken.reply.thread) == (second, None, "booking")


async def test_a_reply_to_nothing_known_is_kept_all_the_same(store: Store) -> None:
    await sent(store, 1, FIRST_MAIL)
    for answers in ([], [OTHER]):
        taken = await store.replies.take(TENANT, reply(len(answers)), answers)
        assert (taken.was_known, taken.reply.message, taken.reply.run) == (False, None, None)
    strange = await store.replies.take(TenantId(2), reply(), [FIRST_MAIL])
    assert strange.reply.message is None


async def test_a_reply_that_comes_again_is_the_first_one(store: Store) -> None:
    unmatched = await store.replies.take(TENANT, reply(), [FIRST_MAIL])
    await sent(store, 1, FIRST_MAIL)
    again = await store.replies.take(TENANT, replace(reply(), text="other"), [FIRST_MAIL])
    assert (again.was_known, again.reply) == (True, unmatched.reply)
    elsewhere = await store.replies.take(TenantId(2), reply(), [])
    assert not elsewhere.was_known


async def test_replies_that_come_at_the_same_time_are_kept_once(store: Store, database_url: str) -> None:
    other = await open_store(database_url)
    try:
        takes = [place.replies.take(TENANT, reply(), []) for place in (store, other) for _ in range(10)]
        taken = await asyncio.gather(*takes)
    finally:
        await other.close()
    assert sorted(one.was_known for one in taken) == [False] + [True] * 19
    assert len({one.reply.id for one in taken}) == 1
    assert len((await store.replies.page(TENANT, ReplyFilter()))[0]) == 1


async def test_replies_are_listed_by_run_thread_and_match(store: Store) -> None:
    run, other = await opened(store), await opened(store, "other")
    await sent(store, 1, FIRST_MAIL, ROOT, run)
    await sent(store, 2, SECOND_MAIL, None, other)
    for number, name in enumerate((FIRST_MAIL, SECOND_MAIL, FIRST_MAIL, OTHER, FIRST_MAIL), 1):
        await store.replies.take(TENANT, reply(number), [name])
    assert await _paged(store, ReplyFilter(limit=3)) == [[5, 4, 3], [2, 1]]
    assert await _paged(store, ReplyFilter(run=run.id, oldest_first=True, limit=2)) == [[1, 3], [5]]
    assert await _paged(store, ReplyFilter(thread="booking")) == [[5, 3, 1]]
    assert await _paged(store, ReplyFilter(is_matched=False)) == [[4]]
    assert await _paged(store, ReplyFilter(is_matched=True, run=other.id)) == [[2]]
    assert (await store.replies.page(TenantId(2), ReplyFilter()))[0] == []
    with pytest.raises(ValueError, match="cursor"):
        await store.replies.page(TENANT, ReplyFilter(after="x"))


async def test_the_newest_reply_of_a_thread_is_known_by_its_id(store: Store) -> None:
    await sent(store, 1, FIRST_MAIL, ROOT)
    assert await store.replies.newest(TENANT, ROOT) is None
    for number in (1, 2):
        await store.replies.take(TENANT, reply(number), [FIRST_MAIL])
    assert await store.replies.newest(TENANT, ROOT) == "<r2@x.example>"
    assert await store.replies.newest(TenantId(2), ROOT) is None


async def _paged(store: Store, chosen: ReplyFilter) -> list[list[int]]:
    """Return the numbers of the replies, page by page."""
    pages, cursor = [], chosen.after
    while True:
        found, cursor = await store.replies.page(TENANT, replace(chosen, after=cursor))
        pages.append([int(one.mail.message_id[2]) for one in found])
        if cursor is None:
            return pages
