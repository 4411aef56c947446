"""The comparisons of the bench, as one table: what is measured, against whom, and what must be reached."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Final

import msgspec

from bench import growth, outboxes, recordings, replicas, sides
from bench.peers.install import Say
from bench.rows import Better, percentiles
from bench.sides import Sides
from bench.turns import Turn

_BEGIN_AND_COMMIT: Final = 2


def calls_per_second(turn: Turn) -> float:
    """Return what a turn of whole calls found."""
    return turn.per_second


def requests_per_second(turn: Turn) -> float:
    """Return what a turn of begin and commit found, in requests."""
    return turn.per_second * _BEGIN_AND_COMMIT


def p50(turn: Turn) -> float:
    """Return the milliseconds that half of the calls took at most."""
    return percentiles(turn.milliseconds).p50


def p99(turn: Turn) -> float:
    """Return the milliseconds that 99 % of the calls took at most."""
    return percentiles(turn.milliseconds).p99


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """One row to be. `open` starts both sides, `value` reads a turn; a target without a peer is absolute.

    One that `is_long` is measured only where it is named, or all are wanted.
    """

    name: str
    what: str
    peer_name: str | None
    target: float | None
    open: Callable[[Say], AbstractContextManager[Sides]]
    unit: str = "guarded calls/s"
    better: Better = "higher"
    value: Callable[[Turn], float] = calls_per_second
    is_long: bool = False


def growing(effects: int) -> Comparison:
    """Return the row of growth to so many effects: ten million, or fewer for a quick look."""
    return Comparison(
        name="growth",
        what=f"p50 of a begin with {effects:,} stored effects, 1 caller",
        peer_name=f"the same with {growth.FEW:,}",
        target=1.3,
        open=partial(growth.grown, effects),
        unit="ms",
        better="lower",
        value=p50,
        is_long=True,
    )


COMPARISONS: Final = (
    Comparison(
        name="dbos",
        what="32 callers through the SDK, PostgreSQL",
        peer_name="DBOS on the same PostgreSQL",
        target=20,
        open=partial(sides.sdk_against_dbos, "PostgreSQL", 32),
    ),
    Comparison(
        name="restate",
        what="32 callers through the SDK, PostgreSQL",
        peer_name="Restate's ingress",
        target=4,
        open=sides.sdk_against_restate,
    ),
    Comparison(
        name="by-hand",
        what="32 callers through the SDK, PostgreSQL",
        peer_name="hand-written transactions",
        target=1,
        open=sides.sdk_against_by_hand,
    ),
    Comparison(
        name="powertools",
        what="32 callers through the SDK, PostgreSQL",
        peer_name="Powertools on a Valkey that syncs",
        target=None,
        open=sides.sdk_against_powertools,
    ),
    Comparison(
        name="dbos-sqlite",
        what="32 callers through the SDK, SQLite",
        peer_name="DBOS on SQLite",
        target=20,
        open=partial(sides.sdk_against_dbos, "SQLite", 32),
    ),
    Comparison(
        name="latency",
        what="one guarded call, 1 caller through the SDK, p50",
        peer_name="DBOS on the same PostgreSQL",
        target=0.4,
        open=partial(sides.sdk_against_dbos, "PostgreSQL", 1),
        unit="ms",
        better="lower",
        value=p50,
    ),
    Comparison(
        name="ingress",
        what="the service alone, 32 connections",
        peer_name="Restate's ingress",
        target=5,
        open=sides.service_against_restate,
    ),
    Comparison(
        name="noop",
        what="the service alone on PostgreSQL, 32 connections",
        peer_name="no-op on a Litestar route",
        target=0.7,
        open=partial(sides.service_against_noop, "PostgreSQL"),
        unit="requests/s",
        value=requests_per_second,
    ),
    Comparison(
        name="noop-sqlite",
        what="the service alone on SQLite, 32 connections",
        peer_name="no-op on a Litestar route",
        target=None,
        open=partial(sides.service_against_noop, "SQLite"),
        unit="requests/s",
        value=requests_per_second,
    ),
    Comparison(
        name="replay",
        what="replay of settled keys, 32 connections",
        peer_name="no-op on a Litestar route",
        target=0.8,
        open=sides.replay_against_noop,
        unit="requests/s",
    ),
    Comparison(
        name="replay-redis",
        what="replay of keys that another replica settled, out of Redis, 32 connections",
        peer_name="no-op on a Litestar route",
        target=None,
        open=partial(replicas.replay_of_another, "no-op"),
        unit="requests/s",
    ),
    Comparison(
        name="replay-redis-off",
        what="replay of keys that another replica settled, out of Redis, 32 connections",
        peer_name="the same without Redis",
        target=None,
        open=partial(replicas.replay_of_another, "without Redis"),
        unit="requests/s",
    ),
    Comparison(
        name="one-key",
        what="1,000 begins of one key: 1 execution; p99 of a waiter's answer after the commit's",
        peer_name=None,
        target=100,
        open=sides.stampede,
        unit="ms",
        better="lower",
        value=p99,
    ),
    Comparison(
        name="one-key-replicas",
        what="1,000 begins of one key over two replicas with Redis; p99 of a waiter's answer after the commit's",
        peer_name=None,
        target=None,
        open=replicas.stampede,
        unit="ms",
        better="lower",
        value=p99,
    ),
    growing(growth.MANY),
    Comparison(
        name="record",
        what="recording one event that is no effect, in the caller",
        peer_name=None,
        target=20,
        open=recordings.recording,
        unit="µs",
        better="lower",
        value=recordings.microseconds_an_event,
    ),
    Comparison(
        name="conversation",
        what="a conversation of 400 KB that is re-sent by 100 calls: plain JSON to bytes in the database",
        peer_name=None,
        target=50,
        open=recordings.conversation,
        unit="times smaller",
        value=recordings.times_smaller,
    ),
    Comparison(
        name="replay-events",
        what="replay of a recorded run",
        peer_name=None,
        target=10_000,
        open=recordings.replaying,
        unit="events/s",
        value=recordings.events_per_second,
    ),
    Comparison(
        name="outbox-faststream",
        what="claim and settle, a sink that does nothing, PostgreSQL",
        peer_name="faststream-outbox on the same PostgreSQL",
        target=2,
        open=partial(outboxes.against, "faststream-outbox", "faststream_outbox_drain"),
        unit="messages/s",
    ),
    Comparison(
        name="outbox-pgqueuer",
        what="claim and settle, a sink that does nothing, PostgreSQL",
        peer_name="pgqueuer on the same PostgreSQL",
        target=1.5,
        open=partial(outboxes.against, "pgqueuer", "pgqueuer_drain"),
        unit="messages/s",
    ),
    Comparison(
        name="outbox-webhooks",
        what="signed webhooks, 64 in flight, out of PostgreSQL",
        peer_name="a bare aiohttp loop without a database",
        target=0.8,
        open=outboxes.webhooks,
        unit="messages/s",
    ),
    Comparison(
        name="outbox-poisoned",
        what="500 lanes beside one of 50,000 messages that cannot go on, PostgreSQL",
        peer_name="the same lanes alone",
        target=0.5,
        open=outboxes.poisoned,
        unit="messages/s",
    ),
    Comparison(
        name="outbox-sqlite",
        what="claim and settle, a sink that does nothing, SQLite",
        peer_name=None,
        target=None,
        open=outboxes.on_sqlite,
        unit="messages/s",
    ),
)
