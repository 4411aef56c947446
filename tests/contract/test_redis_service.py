"""Two replicas over one database and one Redis: what one has ended the other answers, as the database would."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import uuid4

import msgspec
import pytest

from guard.core.effects import SECOND, Duration, Key, TenantId
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import BeginOutcome, Granted, Refused, Replayed, Settled
from guard.service.use_cases import UseCases
from guard.store.sql.tables import runs
from tests.brokers import ValkeyServer
from tests.contract.given import TENANT
from tests.contract.given_redis import Replica, replica, until
from tests.contract.test_retention_store import aged
from twiceshy_contract.effects import BeginRequest, CommitRequest, FailRequest, ReportedError
from twiceshy_contract.tools import ArgumentRoles, KeyDeclaration, ToolDeclaration

CALL = BeginRequest(tool="pay", run="trip", arguments={"to": "ann"}, attempt=uuid4())


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


class Served:
    """A replica's use cases, and its accelerator."""

    def __init__(self, guard: UseCases, shares: Replica) -> None:
        self.guard = guard
        self.shares = shares

    async def begin(self, call: BeginRequest = CALL) -> BeginOutcome:
        return await self.guard.begin(TENANT, msgspec.structs.replace(call, attempt=uuid4()))

    async def granted(self, call: BeginRequest = CALL) -> Granted:
        outcome = await self.begin(call)
        assert isinstance(outcome, Granted), outcome
        return outcome

    async def commit(self, granted: Granted) -> None:
        """Commit, and wait until it is told to all replicas."""
        before = self.shares.counted.sent
        said = CommitRequest(attempt=granted.token, fence=granted.effect.life.fence, result="paid")
        assert isinstance(await self.guard.commit(TENANT, granted.effect.intent.key, said), Settled)
        await until(lambda: self.shares.counted.sent > before)

    def hits(self) -> int:
        return self.shares.counted.answers.count("hit")


@asynccontextmanager
async def serving(store: Store, url: str) -> AsyncIterator[Served]:
    async with AsyncExitStack() as stack:
        shares = await stack.enter_async_context(replica(store, url))
        use_cases = UseCases(store, lambda: 0.5, HttpProvider({}), None, shares.accelerator)
        guard = await stack.enter_async_context(use_cases)
        yield Served(guard, shares)


@pytest.fixture
async def two(store: Store, valkey: ValkeyServer) -> AsyncIterator[tuple[Served, Served]]:
    async with serving(store, valkey.url) as one, serving(store, valkey.url) as other:
        yield one, other


async def test_what_one_has_committed_another_replays_from_redis(two: tuple[Served, Served]) -> None:
    one, other = two
    await one.commit(await one.granted())
    replayed = await other.begin()
    assert isinstance(replayed, Replayed)
    assert (replayed.effect.outcome, replayed.drift, replayed.is_shared) == (b'{"result":"paid"}', (), False)
    assert other.hits() == 1
    assert isinstance(await other.begin(), Replayed)
    assert other.hits() == 1


async def test_a_call_of_another_run_is_told_whose_the_answer_is(two: tuple[Served, Served]) -> None:
    one, other = two
    keyed = msgspec.structs.replace(CALL, business_key="order-1")
    await one.commit(await one.granted(keyed))
    replayed = await other.begin(msgspec.structs.replace(keyed, run="another"))
    assert isinstance(replayed, Replayed)
    assert (replayed.is_shared, other.hits()) == (True, 1)


async def test_other_arguments_under_one_key_are_refused_by_the_database(two: tuple[Served, Served]) -> None:
    one, other = two
    keyed = msgspec.structs.replace(CALL, business_key="order-1")
    await one.commit(await one.granted(keyed))
    refused = await other.begin(msgspec.structs.replace(keyed, arguments={"to": "bob"}))
    assert isinstance(refused, Refused)
    assert (refused.code, refused.paths, other.hits()) == ("arguments-changed", ("/arguments/to",), 1)


async def test_a_rejected_call_is_answered_and_other_content_is_a_new_try(two: tuple[Served, Served]) -> None:
    one, other = two
    await one.guard.registry.declare(TENANT, "pay", ToolDeclaration(arguments=ArgumentRoles(content=("/note",))))
    noted = msgspec.structs.replace(CALL, arguments={"to": "ann", "note": "thanks"})
    granted, before = await one.granted(noted), one.shares.counted.sent
    error = ReportedError(type="CardDeclined", message="no")
    said = FailRequest(attempt=granted.token, fence=granted.effect.life.fence, kind="rejected", error=error)
    assert isinstance(await one.guard.fail(TENANT, granted.effect.intent.key, said), Settled)
    await until(lambda: one.shares.counted.sent > before)
    same = await other.begin(noted)
    assert isinstance(same, Replayed)
    assert same.effect.life.state == "failed"
    anew = await other.begin(msgspec.structs.replace(noted, arguments={"to": "ann", "note": "please"}))
    assert isinstance(anew, Granted)
    assert anew.effect.intent.generation == 2


async def test_what_is_still_executing_or_in_doubt_is_never_answered_from_redis(two: tuple[Served, Served]) -> None:
    one, other = two
    granted = await one.granted()
    busy = await other.begin()
    assert isinstance(busy, Refused)
    assert busy.code == "in-progress"
    error = ReportedError(type="TimeoutError", message="no word")
    said = FailRequest(attempt=granted.token, fence=granted.effect.life.fence, kind="unknown", error=error)
    assert isinstance(await one.guard.fail(TENANT, granted.effect.intent.key, said), Settled)
    doubtful = await other.begin()
    assert isinstance(doubtful, Refused)
    assert (doubtful.code, other.hits()) == ("outcome-in-doubt", 0)


async def test_a_windowed_answer_is_never_kept(two: tuple[Served, Served]) -> None:
    one, other = two
    windowed = ToolDeclaration(key=KeyDeclaration(scope="tenant", window_seconds=3600))
    await one.guard.registry.declare(TENANT, "pay", windowed)
    granted = await one.granted()
    said = CommitRequest(attempt=granted.token, fence=granted.effect.life.fence, result="paid")
    assert isinstance(await one.guard.commit(TENANT, granted.effect.intent.key, said), Settled)
    assert isinstance(await other.begin(), Replayed)
    assert (one.shares.counted.sent, other.shares.counted.answers) == (0, [])


async def test_a_record_that_expired_early_is_answered_by_nobody_a_second_later(
    two: tuple[Served, Served],
    store: Store,
    database_url: str,
    valkey: ValkeyServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It became final long after its run had ended: its entry would live, and its forgetting may be lost."""
    one, _ = two
    granted = await one.granted()
    await store.runs.end(TENANT, "trip", "finished")
    await one.commit(granted)
    long_ago = Duration(40 * 86_400 * SECOND)
    await aged(database_url, runs, runs.c.ended_at > 0, ended_at=runs.c.ended_at - long_ago, kept_until=1)
    async with serving(store, valkey.url) as sweeping:
        monkeypatch.setattr(sweeping.shares.accelerator, "forget", lambda _tenant, _keys: None)
        await sweeping.guard.retention.run_once()
    async with serving(store, valkey.url) as fresh:
        gone = await fresh.begin()
        assert isinstance(gone, Refused)
        assert gone.code == "expired"
        assert fresh.shares.counted.doubts == ["unsealed"]


async def test_a_record_is_asked_for_no_longer_than_its_tool_says_today(
    two: tuple[Served, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    await one.commit(await one.granted())
    await other.guard.registry.declare(TENANT, "pay", ToolDeclaration(retention_seconds=60))
    asked: list[Duration] = []

    async def recall(_tenant: TenantId, _key: Key, kept: Duration) -> None:
        asked.append(kept)

    monkeypatch.setattr(other.shares.accelerator, "recall", recall)
    assert isinstance(await other.begin(), Replayed)
    assert asked == [60 * SECOND]


async def test_a_crowd_that_finds_one_lease_is_counted_on_both_replicas(two: tuple[Served, Served]) -> None:
    one, other = two
    granted = await one.granted()
    for served in (one, other, other):
        assert isinstance(await served.begin(), Refused)
    await until(lambda: one.shares.counted.sent >= 3 and other.shares.counted.sent >= 6)
    hottest = await one.guard.contention.hottest(TENANT, 10)
    assert hottest.counted_in == "replicas"
    assert [(hot.key, hot.begins) for hot in hottest.keys if hot.key == granted.effect.intent.key] == [
        (granted.effect.intent.key, 3)
    ]
