"""Destinations: declared in versions, paused and resumed, and what waits for one that is removed is not lost."""

from typing import Literal

import msgspec
import pytest

from guard.core.effects import Duration, TenantId
from guard.ports.relay import Again, Done, Heard, Reaped, Stands
from guard.ports.store import Store
from tests.contract.given import TENANT
from tests.contract.given_outbox import claim, declared, row, settle, stage, staged, standing_of, state_of
from tests.contract.plans import do
from twiceshy_contract.destinations import Destination, LogDestination, WebhookDestination


async def _declare(store: Store, settings: Destination, name: str = "log") -> tuple[int, bool]:
    record, changed = await store.destinations.declare(TENANT, name, settings)
    assert record.place.settings == settings
    return record.version, changed


async def test_equal_settings_are_no_new_version(store: Store) -> None:
    assert await _declare(store, LogDestination()) == (1, True)
    assert await _declare(store, LogDestination()) == (1, False)
    assert await _declare(store, LogDestination(concurrency=9)) == (2, True)
    assert await _declare(store, WebhookDestination(url="https://example.org/hook")) == (3, True)
    assert await _declare(store, WebhookDestination(url="https://example.org/hook")) == (3, False)
    record = await standing_of(store)
    assert (record.place.state, record.breaker, record.note, record.backlog.pending) == ("active", "closed", None, 0)
    assert record.declared_at <= record.at


async def test_destinations_are_found_by_name_in_their_tenant(store: Store) -> None:
    ids = {name: await declared(store, name) for name in ("b", "a", "c")}
    found = await store.destinations.named(TENANT, ["a", "c", "nobody"])
    assert {name: place.id for name, place in found.items()} == {"a": ids["a"], "c": ids["c"]}
    assert await store.destinations.named(TENANT, []) == {}
    assert await store.destinations.named(TenantId(2), ["a"]) == {}
    assert [record.place.name for record in await store.destinations.all(TENANT)] == ["a", "b", "c"]
    assert await store.destinations.all(TenantId(2)) == []
    assert await store.destinations.get(TENANT, "nobody") is None
    assert await store.destinations.put(TENANT, "nobody", "paused", "why") is None
    ways = await store.relay.ways()
    assert [(way.name, way.id, way.tenant) for way in ways] == [(name, ids[name], TENANT) for name in ("b", "a", "c")]


async def test_a_paused_destination_is_resumed_with_a_closed_breaker(store: Store) -> None:
    log = await declared(store)
    await staged(store, log, 1)
    await store.relay.report([Heard(destination=log, unreachable=5)])
    paused = await store.destinations.put(TENANT, "log", "paused", "maintenance")
    assert paused is not None
    assert (paused.place.state, paused.note, paused.breaker, paused.backlog.pending) == (
        "paused",
        "maintenance",
        "open",
        1,
    )
    assert [(way.state, way.is_open) for way in await store.relay.ways()] == [("paused", False)]
    resumed = await store.destinations.put(TENANT, "log", "active", "done")
    assert resumed is not None
    assert (resumed.place.state, resumed.breaker, resumed.open_until, resumed.held_until) == (
        "active",
        "closed",
        None,
        None,
    )
    assert len(await claim(store, log)) == 1


async def test_what_waits_for_a_removed_destination_is_parked_with_the_reason(store: Store) -> None:
    log = await declared(store)
    sent, *behind = await staged(store, log, 3, "a")
    (first, *_) = await claim(store, log)
    free = await staged(store, log, 1, None, 2)
    await store.destinations.put(TENANT, "log", "removed", "gone")
    for message in (*behind, *free):
        found = await store.outbox.get(TENANT, message)
        assert found is not None
        assert found[0].state == "parked"
        assert found[0].note == "its destination was removed: declare it again, and redrive this"
    assert await state_of(store, sent) == "sending"
    assert await settle(store, Done(id=first.id, over="delivered")) == ()
    assert await store.destinations.all(TENANT) == []
    assert await store.relay.ways() == []
    assert (await standing_of(store)).place.state == "removed"


async def test_what_comes_back_to_a_removed_destination_is_parked_by_the_reaper(store: Store) -> None:
    log = await declared(store)
    messages = await staged(store, log, 1)
    (claimed,) = await claim(store, log)
    await store.destinations.put(TENANT, "log", "removed", "gone")
    await settle(store, Again(id=claimed.id, delay=Duration(0), tried="retryable"))
    late = await stage(store, 7, row(7, log), row(7, log, "a", 1))
    await store.relay.reap(100)
    assert [await state_of(store, message) for message in (*messages, *late)] == ["parked"] * 3


@pytest.mark.parametrize("state", ["dead", "unknown"])
async def test_lanes_that_are_to_skip_from_now_on_go_on_at_once(
    store: Store, database_url: str, state: Literal["dead", "unknown"]
) -> None:
    log = await declared(store, lanes="block")
    for number, lane in enumerate("ab"):
        await staged(store, log, 3, lane, number)
    first, other = await claim(store, log, followers=0)
    stands = Stands(id=first.id, state=state, note="no", tried="permanent", blocks=True)
    await settle(store, stands)
    assert await claim(store, log) == []
    await declared(store, lanes="skip")
    assert [one.id for one in await claim(store, log, followers=0)] == [first.id + 1]
    await settle(store, msgspec.structs.replace(stands, id=other.id))
    assert await claim(store, log, followers=0) == [], "a relay that knew the old settings yet"
    await store.relay.reap(10)
    assert [one.id for one in await claim(store, log, followers=0)] == [other.id + 1]
    await declared(store, lanes="block")
    await do(database_url, "UPDATE outbox SET lease_until = 1")
    await store.relay.reap(10)
    assert await claim(store, log, followers=0) == [], "what dies from now on blocks its lane"


async def test_a_destination_that_this_version_cannot_read_is_in_nobodys_way(store: Store, database_url: str) -> None:
    log, pigeon = await declared(store), await declared(store, "pigeon", events=("approval.requested",))
    await staged(store, log, 1)
    await staged(store, pigeon, 1, number=2)
    await claim(store, pigeon)
    await do(database_url, "UPDATE outbox SET lease_until = 1 WHERE state = 3")
    settings = "X'7B226B696E64223A22706967656F6E227D'"
    settings = settings if database_url.startswith("sqlite") else f"decode({settings[1:]}, 'hex')"
    await do(database_url, f"UPDATE destinations SET settings = {settings} WHERE name = 'pigeon'")
    assert [way.name for way in await store.relay.ways()] == ["log"]
    assert [record.place.name for record in await store.destinations.all(TENANT)] == ["log"]
    assert await store.destinations.subscribed(TENANT, "approval.requested") == []
    assert await store.relay.reap(10) == Reaped(again=0, unknown=1, released=0)
    assert len(await claim(store, log)) == 1
    await declared(store, "pigeon")
    assert [way.name for way in await store.relay.ways()] == ["log", "pigeon"]


async def test_a_removed_destination_that_is_declared_again_is_active(store: Store) -> None:
    log = await declared(store)
    await store.destinations.put(TENANT, "log", "removed", "gone")
    record, changed = await store.destinations.declare(TENANT, "log", LogDestination())
    assert (changed, record.place.id, record.place.state, record.version, record.note) == (True, log, "active", 1, None)
    assert len(await store.relay.ways()) == 1


async def test_one_that_says_it_is_gone_is_disabled_until_it_is_named_otherwise(store: Store) -> None:
    url = "https://example.org/hook"
    record, _ = await store.destinations.declare(TENANT, "hook", WebhookDestination(url=url))
    await store.relay.report([Heard(destination=record.place.id, bad=1, is_gone=True, note="410 Gone")])
    disabled = await standing_of(store, "hook")
    assert (disabled.place.state, disabled.note) == ("disabled", "410 Gone")
    same, changed = await store.destinations.declare(TENANT, "hook", WebhookDestination(url=url))
    assert (same.place.state, changed) == ("disabled", False)
    other, changed = await store.destinations.declare(TENANT, "hook", WebhookDestination(url=url + "/2"))
    assert (other.place.state, other.note, changed) == ("active", None, True)


async def test_a_paused_destination_is_not_disabled_nor_resumed_by_a_declaration(store: Store) -> None:
    log = await declared(store)
    await store.destinations.put(TENANT, "log", "paused", "maintenance")
    await store.relay.report([Heard(destination=log, bad=1, is_gone=True, note="410 Gone")])
    record, _ = await store.destinations.declare(TENANT, "log", LogDestination(concurrency=2))
    assert (record.place.state, record.note) == ("paused", "maintenance")


@pytest.mark.parametrize(("before", "after", "at_once"), [(None, 2.0, 2), (2.0, 5.0, 5), (2.0, 0.5, 1), (2.0, None, 9)])
async def test_the_rate_is_the_one_that_was_declared_last(
    store: Store, before: float | None, after: float | None, at_once: int
) -> None:
    await declared(store, rate_per_second=before)
    log = await declared(store, rate_per_second=after)
    await staged(store, log, 9)
    assert len(await claim(store, log)) == at_once


async def test_reports_move_each_breaker_alone(store: Store, database_url: str) -> None:
    one, two = await declared(store, "one"), await declared(store, "two")
    await store.relay.report([Heard(destination=two, bad=10), Heard(destination=one, good=10), Heard(destination=99)])
    await store.relay.report([])
    assert [(record.place.name, record.breaker) for record in await store.destinations.all(TENANT)] == [
        ("one", "closed"),
        ("two", "open"),
    ]
    await do(database_url, "UPDATE destinations SET breaker = 3")
    await store.relay.report([Heard(destination=two, bad=1)])
    record = await standing_of(store, "two")
    assert record.open_until is not None
    assert record.open_until - record.at > 9_000_000, "it opened for the second time"


async def test_destinations_are_told_what_they_ask_for(store: Store) -> None:
    await declared(store, "quiet")
    await declared(store, "asks", events=("approval.requested",))
    await declared(store, "paused", events=("approval.requested", "approval.decided"))
    await declared(store, "gone", events=("approval.requested",))
    await store.destinations.put(TENANT, "paused", "paused", "why")
    await store.destinations.put(TENANT, "gone", "removed", "why")
    asking = await store.destinations.subscribed(TENANT, "approval.requested")
    assert [place.name for place in asking] == ["asks", "paused"]
    assert [place.name for place in await store.destinations.subscribed(TENANT, "approval.decided")] == ["paused"]
