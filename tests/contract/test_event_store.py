"""What every store must do with the logs of runs."""

import asyncio
from uuid import UUID

import msgspec
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from guard.core.effects import RunId
from guard.core.recording import Diverged, Expired, Gap, TakenOver, Unfounded
from guard.core.runs import Run
from guard.ports.events import Appended
from guard.ports.store import Store
from guard.store.sql.blobs import select_kept
from guard.store.sql.engine import open_store
from guard.store.sql.logs import select_delivered, select_numbered
from tests.contract.given import TENANT, opened
from tests.contract.given_logs import append, appended, delivery, digest_of, intent, log_of, one, recorded, rows
from tests.contract.log_rivals import record_the_same
from tests.contract.plans import plans
from tests.contract.rivals import compete
from twiceshy_contract.events import Event, Intent

NOBODY = RunId(UUID(int=7))


async def test_each_opening_for_writing_is_a_new_epoch(store: Store) -> None:
    assert (await opened(store)).epoch == 0
    first = await recorded(store)
    again = await recorded(store)
    assert (first.epoch, again.epoch, again.events, again.id) == (1, 2, 0, first.id)
    assert await store.runs.get(TENANT, first.name) == again
    assert await store.events.open_writer(NOBODY) is None


async def test_an_ended_run_has_no_next_writer(store: Store) -> None:
    run = await recorded(store)
    ended = await store.runs.end(TENANT, run.name, "finished")
    assert await store.events.open_writer(run.id) == ended
    assert ended is not None
    assert ended.epoch == 1


async def test_events_are_kept_in_their_order_and_moved_the_head(store: Store) -> None:
    run = await recorded(store)
    assert await log_of(store, run) == []
    first, second = intent(1, arguments={"city": "Bern", "n": [1, {"x": None}]}), delivery(2, 1, {"id": 7})
    assert await one(store, append(run, 1, first, second)) == Appended(head=2, added=2)
    third = intent(3, "now", kind="time")
    assert await one(store, append(run, 1, third)) == Appended(head=3, added=1)
    assert await log_of(store, run) == [first, second, third]
    found = await store.runs.get(TENANT, run.name)
    assert found is not None
    assert (found.events, found.epoch) == (3, 1)


async def test_the_same_append_may_be_sent_again_and_go_on(store: Store) -> None:
    run = await recorded(store)
    events: list[Event] = [intent(1), delivery(2, 1), intent(3)]
    await appended(store, append(run, 1, *events[:2]))
    assert await one(store, append(run, 1, *events[:2])) == Appended(head=2, added=0)
    assert await one(store, append(run, 1, events[1])) == Appended(head=2, added=0)
    assert await one(store, append(run, 1, *events)) == Appended(head=3, added=1)
    assert await one(store, append(run, 1)) == Appended(head=3, added=0)
    assert await log_of(store, run) == events


async def test_another_event_of_a_number_is_refused_as_a_whole(store: Store) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1), delivery(2, 1)))
    assert await one(store, append(run, 1, intent(1), delivery(2, 1, "other"), intent(3))) == Diverged(seq=2)
    assert await log_of(store, run) == [intent(1), delivery(2, 1)]


async def test_events_behind_a_gap_are_refused(store: Store) -> None:
    run = await recorded(store)
    assert await one(store, append(run, 1, intent(2))) == Gap(head=0, seq=2)
    await appended(store, append(run, 1, intent(1)))
    assert await one(store, append(run, 1, intent(3))) == Gap(head=1, seq=3)
    assert await log_of(store, run) == [intent(1)]


async def test_an_older_writer_is_fenced_and_so_is_one_that_never_was(store: Store) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1)))
    await recorded(store)
    assert await one(store, append(run, 1, intent(1))) == TakenOver(epoch=2)
    assert await one(store, append(run, 1)) == TakenOver(epoch=2)
    assert await one(store, append(run, 3, intent(2))) == TakenOver(epoch=2)
    assert await one(store, append(run, 2, intent(2))) == Appended(head=2, added=1)
    assert await one(store, append(await opened(store, "never recorded"), 1, intent(1))) == TakenOver(epoch=0)


async def test_the_writer_of_an_ended_run_may_still_bring_what_it_has(store: Store) -> None:
    run = await recorded(store)
    await store.runs.end(TENANT, run.name, "finished")
    assert await one(store, append(run, 1, intent(1))) == Appended(head=1, added=1)


async def test_a_run_that_is_not_there_has_no_log(store: Store) -> None:
    run = msgspec.structs.replace(await recorded(store), id=NOBODY)
    assert await one(store, append(run, 1, intent(1))) == Expired()
    assert await log_of(store, run) == []


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (9, "event 9 is no intent of this run before it"),
        (4, "event 4 is no intent of this run before it"),
        (2, "event 2 is no intent of this run before it"),
        (1, "the outcome of event 1 was delivered before"),
    ],
)
async def test_an_outcome_is_delivered_once_behind_its_intent(store: Store, of: int, reason: str) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1), delivery(2, 1)))
    asked = append(run, 1, intent(3), delivery(4, of))
    assert await one(store, asked) == Unfounded(seq=4, reason=reason)
    assert len(await log_of(store, run)) == 2


async def test_an_intent_of_another_run_is_none_of_this_one(store: Store) -> None:
    other, run = await recorded(store, "other"), await recorded(store)
    await appended(store, append(other, 1, intent(1), intent(2)))
    await appended(store, append(run, 1, intent(1), delivery(2, 1)))
    result = await one(store, append(run, 1, delivery(3, 2)))
    assert isinstance(result, Unfounded)


async def test_a_delivery_is_found_as_what_its_intent_was(store: Store, database_url: str) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1, "llm", kind="llm_call"), intent(2, "lookup")))
    empty = msgspec.structs.replace(delivery(3, 2, []), empty=True)
    await appended(store, append(run, 1, empty, delivery(4, 1, outcome="unknown")))
    found = await rows(database_url, "SELECT seq, kind, name, intent, outcome, empty FROM events ORDER BY seq")
    assert found == [
        (1, 1, "llm", None, None, None),
        (2, 2, "lookup", None, None, None),
        (3, 2, "lookup", 2, 1, True),
        (4, 1, "llm", 1, 3, False),
    ]


async def test_small_arguments_of_calls_are_indexed(store: Store, database_url: str) -> None:
    run = await recorded(store)
    arguments = {"jurisdiction": "GB-SCT", "limit": 5, "deep": {"x": 1}, "token": "[redacted]", "nul": "a\x00b"}
    await appended(store, append(run, 1, intent(1, arguments=arguments), delivery(2, 1, {"jurisdiction": "GB"})))
    found = await rows(database_url, "SELECT seq, name, argument, value FROM event_arguments ORDER BY argument")
    assert found == [(1, "lookup", "jurisdiction", "GB-SCT"), (1, "lookup", "limit", "5")]


async def test_appends_of_one_transaction_do_not_spoil_each_other(store: Store) -> None:
    run, other, third = await recorded(store), await recorded(store, "other"), await recorded(store, "third")
    results = await store.events.append(
        [
            append(run, 1, intent(1)),
            append(other, 1, intent(2)),
            append(run, 1, delivery(2, 1), intent(3)),
            append(third, 9, intent(1)),
            append(run, 1, delivery(4, 1)),
            append(run, 1, intent(1), delivery(2, 1)),
            append(other, 1, intent(1)),
        ]
    )
    assert results == [
        Appended(head=1, added=1),
        Gap(head=0, seq=2),
        Appended(head=3, added=2),
        TakenOver(epoch=1),
        Unfounded(seq=4, reason="the outcome of event 1 was delivered before"),
        Appended(head=3, added=0),
        Appended(head=1, added=1),
    ]
    assert await log_of(store, run) == [intent(1), delivery(2, 1), intent(3)]
    assert await log_of(store, other) == [intent(1)]
    assert await log_of(store, third) == []


async def test_a_page_ends_at_its_limit_or_at_so_many_bytes_but_is_never_empty_before_the_end(store: Store) -> None:
    run = await recorded(store)
    events = [intent(seq, arguments={"text": "x" * 1000}) for seq in range(1, 6)]
    await appended(store, append(run, 1, *events))
    seen = []
    for after, limit, size in ((0, 2, 10**6), (0, 9, 10**6), (0, 9, 1), (0, 9, 2500), (3, 2, 10**6), (5, 9, 1)):
        page = await store.events.page(run.id, after, limit, size)
        seen.append(([msgspec.json.decode(text)["seq"] for text in page.items], page.next))
    assert seen == [([1, 2], 2), ([1, 2, 3, 4, 5], None), ([1], 1), ([1, 2], 2), ([4, 5], None), ([], None)]


async def test_no_event_is_ever_changed(store: Store, database_url: str) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1)))
    for change in ("UPDATE events SET name = 'other'", "DELETE FROM events WHERE seq = 1"):
        with pytest.raises(DBAPIError, match="an event is written once"):
            await rows(database_url, change)
    assert await log_of(store, run) == [intent(1)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event_arguments SET value = 'b'",
        "DELETE FROM event_arguments",
        "UPDATE blobs SET size = 1",
    ],
)
async def test_nothing_around_an_event_is_changed_either(store: Store, database_url: str, change: str) -> None:
    text = '"x"'
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1, arguments={"a": "a"}), blobs={digest_of(text): text}))
    kept = await _around(database_url)
    assert [len(found) for found in kept] == [1, 1, 1]
    with pytest.raises(DBAPIError, match="an event is written once"):
        await rows(database_url, change)
    assert await _around(database_url) == kept


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_no_insert_of_sqlite_replaces_what_is_kept(store: Store, database_url: str) -> None:
    text = '"x"'
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1, arguments={"a": "a"}), blobs={digest_of(text): text}))
    kept = await _around(database_url)
    for table in ("events", "event_arguments"):
        with pytest.raises(DBAPIError, match="an event is written once"):
            await rows(database_url, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table}")
    await rows(database_url, "INSERT OR REPLACE INTO blobs SELECT tenant, address, 1, x'00', 1 FROM blobs")
    assert await _around(database_url) == kept


async def test_two_writers_at_once_make_one_log(store: Store, database_url: str) -> None:
    """Each store has connections of its own; both send the same events, and one sends others."""
    run = await recorded(store)
    rival = await open_store(database_url)
    try:
        for seq in range(1, 31):
            mine, same = append(run, 1, intent(seq)), append(run, 1, intent(seq))
            others = append(run, 1, intent(seq, "other"))
            results = await asyncio.gather(one(store, mine), one(rival, others), one(store, same), one(rival, mine))
            added = [result for result in results if isinstance(result, Appended) and result.added]
            assert len(added) == 1, results
            assert all(
                result in (Appended(head=seq, added=0), Diverged(seq=seq)) for result in results if result not in added
            )
    finally:
        await rival.close()
    assert [event.seq for event in await log_of(store, run)] == list(range(1, 31))


async def test_whoever_takes_over_sees_all_that_the_older_writer_was_let_append(
    store: Store, database_url: str
) -> None:
    rival = await open_store(database_url)
    try:
        for number in range(15):
            run = await recorded(store, f"run-{number}")
            taken, newer = await asyncio.gather(_append_five(store, run), rival.events.open_writer(run.id))
            assert newer is not None
            assert (newer.epoch, newer.events) == (2, taken)
            assert len(await log_of(store, run)) == taken
    finally:
        await rival.close()


async def test_processes_that_take_a_log_over_from_each_other_give_each_number_once(
    store: Store, database_url: str
) -> None:
    given = compete(database_url, record_the_same, 3)
    assert sorted(seq for numbers in given for seq in numbers) == list(range(1, sum(map(len, given)) + 1))
    log = await log_of(store, (await store.runs.open(TENANT, ["booking-42"]))[0])
    for number, numbers in enumerate(given):
        mine = [event.seq for event in log if isinstance(event, Intent) and event.name == f"by-{number}"]
        assert mine == numbers[::2]


async def test_all_that_decides_about_an_append_is_found_by_index(store: Store, database_url: str) -> None:
    run, other = await recorded(store), await recorded(store, "other")
    await appended(store, append(run, 1, intent(1), delivery(2, 1)))
    await store.close()

    def work(connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        select_numbered(connection, {run.id: {1, 2}, other.id: {1}})
        select_delivered(connection, {run.id: {1}, other.id: {1, 2}})
        select_kept(connection, TENANT, [b"\x01" * 32, b"\x02" * 32])

    found = await plans(database_url, work)
    key = "_pkey" if database_url.startswith("postgresql") else "sqlite_autoindex_"
    for plan, index in zip(found, (key, "events_delivery", key), strict=True):
        assert index in plan, plan
        assert "Seq Scan" not in plan, plan


async def _append_five(store: Store, run: Run) -> int:
    """Append five events, one after the other; return how many were taken."""
    results = [await one(store, append(run, 1, intent(seq))) for seq in range(1, 6)]
    return sum(isinstance(result, Appended) for result in results)


async def _around(url: str) -> list[list[tuple[object, ...]]]:
    """Read all events, arguments and texts."""
    return [await rows(url, f"SELECT * FROM {table}") for table in ("events", "event_arguments", "blobs")]
