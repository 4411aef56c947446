"""Plain values that the scenarios of the outbox start from."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, seconds
from guard.core.outbox import JSON, Staged, Staging, message_id
from guard.ports.outbox import DestinationRecord, MessageFilter
from guard.ports.relay import Ask, Claimed, Settlement, Turn
from guard.ports.store import Store
from tests.contract.given import TENANT, finish, insert, key, written
from twiceshy_contract.destinations import LogDestination
from twiceshy_contract.outbox import MessageState

LEASE, OTHER = UUID(int=1), UUID(int=2)
LENGTH = Duration(30 * SECOND)


async def declared(store: Store, name: str = "log", **settings: Any) -> int:
    """Declare a destination, and return its id."""
    record, _ = await store.destinations.declare(TENANT, name, LogDestination(**settings))
    return record.place.id


async def standing_of(store: Store, name: str = "log") -> DestinationRecord:
    """Return a destination that must be there."""
    record = await store.destinations.get(TENANT, name)
    assert record is not None
    return record


def row(number: int, destination: int, lane: str | None = None, place: int = 0, **other: Any) -> Staged:
    """Return a row as it is staged by the effect of a number."""
    made = Staged(
        message=message_id(key(number), place),
        destination_id=destination,
        destination="log",
        lane=lane,
        type="order.created",
        recipient=None,
        content_type=JSON,
        headers=b'{"a":"b"}',
        body=f'"{number}.{place}"'.encode(),
        delay=Duration(0),
        not_after=seconds(3600),
    )
    return replace(made, **other)


async def stage(store: Store, number: int, *rows: Staged, **other: Any) -> list[UUID]:
    """Begin and finish an effect that stages these rows; return the ids of its messages."""
    await written(store, insert(number))
    staging = Staging(tenant=TENANT, rows=rows, **other)
    await written(store, msgspec.structs.replace(finish(number), staging=staging))
    return [each.message for each in rows]


async def staged(store: Store, destination: int, count: int, lane: str | None = None, number: int = 1) -> list[UUID]:
    """Stage so many messages by one effect."""
    return await stage(store, number, *(row(number, destination, lane, place) for place in range(count)))


async def turn(
    store: Store, *asks: Ask, settle: Sequence[Settlement] = (), lease: UUID = LEASE, length: Duration = LENGTH
) -> Turn:
    """Take a turn."""
    return await store.relay.turn(lease, length, settle, asks)


async def claim(store: Store, destination: int, slots: int = 10, followers: int = 50, **other: Any) -> list[Claimed]:
    """Claim for one destination, and return what was claimed in the order of the ids."""
    lease = other.pop("lease", LEASE)
    ask = Ask(destination=destination, slots=slots, followers=followers, **other)
    return sorted((await turn(store, ask, lease=lease)).claimed, key=lambda message: message.id)


async def settle(store: Store, *settlements: Settlement, lease: UUID = LEASE) -> tuple[int, ...]:
    """Settle, and return the ids that were no longer under the lease."""
    return (await turn(store, settle=settlements, lease=lease)).fenced


async def state_of(store: Store, message: UUID) -> MessageState:
    """Return the state of a message that must be there."""
    found = await store.outbox.get(TENANT, message)
    assert found is not None
    return found[0].state


async def states(store: Store) -> dict[str, int]:
    """Count all messages that are not over by their states."""
    page, _ = await store.outbox.page(TENANT, MessageFilter(limit=500))
    counts: dict[str, int] = {}
    for standing in page:
        counts[standing.state] = counts.get(standing.state, 0) + 1
    return counts
