"""What every store must find of the logs of all runs."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from guard.core.effects import Instant, TenantId
from guard.ports.search import CallFilter
from guard.ports.store import Store
from guard.store.sql.event_search import select_calls, successor
from tests.contract.given import TENANT
from tests.contract.given_logs import append, appended, delivery, intent, recorded
from tests.contract.plans import do, plans
from twiceshy_contract.events import Event, Intent
from twiceshy_contract.runs import RunAbout

LOOKUP, OTHER = "lookup", "other"


def called(seq: int, jurisdiction: str, **end: Any) -> list[Event]:
    """Return a look-up and its end; an empty one unless it is said otherwise."""
    ended = delivery(seq + 1, seq, [], end.get("outcome", "result"))
    return [intent(seq, LOOKUP, {"jurisdiction": jurisdiction}), replace(ended, empty=end.get("empty", True))]


LOGS: Mapping[str, list[Event]] = {
    "a": [*called(1, "GB-SCT"), *called(3, "GB", empty=False), *called(5, "GB-WLS", empty=False)],
    "b": [*called(1, "gb-sct"), *called(3, "GB-%"), *called(5, "GB-NIR", outcome="error", empty=False)],
    "c": [intent(1, LOOKUP, {"jurisdiction": "GB-SCT"}), intent(2, OTHER, {"jurisdiction": "GB-SCT"})],
    "d": [*called(1, "GB.SCT"), *called(3, "GB_"), *called(5, "GB-\U0001f600"), *called(7, "GB-SCT"), intent(9, OTHER)],
}


@pytest.fixture
async def logs(store: Store) -> Store:
    """A store with four recorded runs, the last one the newest; two of them are of a workflow."""
    for name, events in LOGS.items():
        run = await recorded(store, name)
        await appended(store, append(run, 1, *events))
    for name in ("b", "d"):
        await store.runs.tell(TENANT, name, RunAbout(workflow="contracts"), None)
    return store


async def found(store: Store, chosen: CallFilter) -> list[str]:
    """Return run and number of all calls that are found, followed by pages of two."""
    places: list[str] = []
    after: str | None = None
    while True:
        calls, after = await store.search.calls(TENANT, replace(chosen, limit=2, after=after))
        places += [f"{call.run}{call.seq}" for call in calls]
        if after is None:
            return places


GB = CallFilter(name=LOOKUP, argument="jurisdiction", prefix="GB-")


@pytest.mark.parametrize(
    ("chosen", "places"),
    [
        (replace(GB, empty=True), ["d7", "d5", "b3", "a1"]),
        (GB, ["d7", "d5", "c1", "b5", "b3", "a5", "a1"]),
        (replace(GB, empty=False), ["b5", "a5"]),
        (replace(GB, outcome="error"), ["b5"]),
        (replace(GB, outcome="result"), ["d7", "d5", "b3", "a5", "a1"]),
        (replace(GB, outcome="error", empty=True), []),
        (replace(GB, workflow="contracts", empty=True), ["d7", "d5", "b3"]),
        (replace(GB, name=None, workflow="contracts"), ["d7", "d5", "b5", "b3"]),
        (replace(GB, kind="llm_call"), []),
        (replace(GB, kind="tool_call", outcome="error"), ["b5"]),
        (replace(GB, prefix="GB-%"), ["b3"]),
        (replace(GB, prefix="GB_"), ["d3"]),
        (replace(GB, prefix="gb"), ["b1"]),
        (replace(GB, prefix="GB-\U0001f600"), ["d5"]),
        (replace(GB, prefix=""), ["d7", "d5", "d3", "d1", "c1", "b5", "b3", "b1", "a5", "a3", "a1"]),
        (replace(GB, prefix=None, equals="GB"), ["a3"]),
        (replace(GB, prefix=None, equals="GB-SCT", empty=True), ["d7", "a1"]),
        (replace(GB, prefix=None), ["d7", "d5", "d3", "d1", "c1", "b5", "b3", "b1", "a5", "a3", "a1"]),
        (replace(GB, argument="Jurisdiction"), []),
        (CallFilter(name=LOOKUP, empty=True), ["d7", "d5", "d3", "d1", "b3", "b1", "a1"]),
        (CallFilter(name=LOOKUP, outcome="error"), ["b5"]),
        (CallFilter(name=OTHER), ["d9", "c2"]),
        (CallFilter(name="nobody"), []),
        (CallFilter(workflow="contracts", empty=True), ["d7", "d5", "d3", "d1", "b3", "b1"]),
        (CallFilter(workflow="contracts", empty=False), ["b5"]),
        (CallFilter(workflow="contracts", outcome="error"), ["b5"]),
    ],
)
async def test_calls_are_found_by_what_is_indexed_newest_runs_first(
    logs: Store, chosen: CallFilter, places: list[str]
) -> None:
    assert await found(logs, chosen) == places


async def test_the_calls_of_one_run_are_found_and_those_of_another_tenant_are_not(logs: Store) -> None:
    run = await logs.runs.get(TENANT, "a")
    assert run is not None
    assert await found(logs, CallFilter(run=run.id)) == ["a5", "a3", "a1"]
    assert await found(logs, replace(GB, name=None, run=run.id)) == ["a5", "a1"]
    for chosen in (GB, CallFilter(name=LOOKUP, empty=True), CallFilter(run=run.id), CallFilter(workflow="contracts")):
        assert await logs.search.calls(TenantId(2), chosen) == ([], None)


async def test_a_call_is_told_with_its_intent_and_its_end(logs: Store) -> None:
    (first, second), _ = await logs.search.calls(TENANT, replace(GB, run=None, limit=2, prefix="GB-S"))
    assert msgspec.json.decode(first.intent, type=Intent) == LOGS["d"][6]
    assert (first.run, first.seq, first.name, first.kind) == ("d", 7, LOOKUP, "tool_call")
    assert (first.outcome, first.empty, first.at) == ("result", True, 1_700_000_000_000_007)
    assert (second.run, second.outcome, second.empty) == ("c", None, None)


async def test_since_is_when_a_call_was_kept_by_the_clock_of_the_database(logs: Store) -> None:
    (newest, *_), _ = await logs.search.calls(TENANT, GB)
    late = await recorded(logs, "late")
    before = late.started_at
    await appended(logs, append(late, 1, *called(1, "GB-SCT")))
    assert newest.run == "d"
    assert await found(logs, replace(GB, since=before)) == ["late1"]
    first = await logs.runs.get(TENANT, "a")
    assert first is not None
    await appended(logs, append(first, 1, *called(7, "GB-SCT")))
    for chosen in (GB, CallFilter(name=LOOKUP), CallFilter(name=LOOKUP, empty=True)):
        assert await found(logs, replace(chosen, since=before)) == ["late1", "a7"]
        assert await found(logs, replace(chosen, since=Instant(before + 3_600_000_000))) == []
    assert await found(logs, replace(GB, since=Instant(before + 3_600_000_000))) == []


async def test_what_comes_in_between_moves_no_page(logs: Store) -> None:
    first, cursor = await logs.search.calls(TENANT, replace(GB, limit=3))
    newer = await recorded(logs, "newer")
    await appended(logs, append(newer, 1, *called(1, "GB-SCT")))
    rest, end = await logs.search.calls(TENANT, replace(GB, limit=50, after=cursor))
    assert [f"{call.run}{call.seq}" for call in first + rest] == ["d7", "d5", "c1", "b5", "b3", "a5", "a1"]
    assert end is None


@pytest.mark.parametrize("cursor", ["", "zz", "é", "cnJycnJycnJycnJycnJycnI"])
async def test_a_foreign_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match=r"is not a cursor|cursor of another listing"):
        await store.search.calls(TENANT, replace(GB, after=cursor))


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("GB-", "GB."), ("a", "b"), ("", None), ("\U0010ffff", None), ("a\U0010ffff", "b"), ("\ud7ff", "\ue000"),
        ("é", "ê"), ("\uffff", "\U00010000"), ("GB%", "GB&"),
    ],
)  # fmt: skip
def test_the_successor_of_a_prefix_is_the_least_text_above_all_that_begin_with_it(prefix: str, end: str | None) -> None:
    assert successor(prefix) == end
    if end is not None:
        assert prefix.encode() < end.encode()
        assert f"{prefix}\U0010ffff\U0010ffff".encode() < end.encode()


@pytest.mark.parametrize(
    ("chosen", "indexes"),
    [
        (replace(GB, empty=True), {"events_notable", "event_arguments_value"}),
        (GB, {"event_arguments_value"}),
        (replace(GB, prefix=None, equals="GB"), {"event_arguments_value"}),
        (CallFilter(name=LOOKUP), {"events_name"}),
        (CallFilter(name=LOOKUP, empty=True), {"events_notable"}),
        (CallFilter(name=LOOKUP, outcome="error"), {"events_notable"}),
        (CallFilter(workflow="contracts", empty=True), {"runs_workflow"}),
        (CallFilter(workflow="contracts", outcome="error"), {"runs_workflow"}),
    ],
)
async def test_an_index_leads_to_the_calls(database_url: str, chosen: CallFilter, indexes: set[str]) -> None:
    def work(connection: Connection) -> object:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return select_calls(connection, TENANT, chosen, None)

    (plan,) = await plans(database_url, work)
    assert any(index in plan for index in indexes), plan
    assert "SCAN" not in plan.replace("Scan", "")


HISTORY = """INSERT INTO events (run_id, seq, tenant, kind, name, at, kept_at, digest, body)
 SELECT id, 100 + number, 1, 2, 'lookup', 0, number, '', '' FROM runs, generate_series(1, 2000) AS number"""


async def test_what_was_kept_lately_is_not_looked_for_in_a_whole_history(logs: Store, database_url: str) -> None:
    assert len(await found(logs, CallFilter(name=LOOKUP))) == 11
    if database_url.startswith("postgresql"):
        await do(database_url, HISTORY, "ANALYZE")
    lately = CallFilter(name=LOOKUP, since=Instant(1_000_000))
    (plan,) = await plans(database_url, lambda connection: select_calls(connection, TENANT, lately, None))
    assert "events_kept" in plan


async def test_what_is_appended_at_once_is_found(store: Store) -> None:
    runs = await asyncio.gather(*(recorded(store, f"run-{number}") for number in range(6)))
    await asyncio.gather(*(appended(store, append(run, 1, *called(1, "GB-SCT"))) for run in runs))
    assert len(await found(store, replace(GB, empty=True))) == 6
