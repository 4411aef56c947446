"""Messages that are staged for a relay, and sinks that answer what a test tells them to."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal
from uuid import UUID, uuid4

import msgspec

from guard.core.effects import AttemptToken, Duration, Fence, Instant, Key, TenantId
from guard.core.outbox import Staged, Staging
from guard.ports.outbox import MessageFilter
from guard.ports.relay import RelayStore
from guard.ports.steps import Finish, Insert
from guard.ports.store import Store
from outbox_relay.relay import Relay
from outbox_relay.settings import RelaySettings
from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Result
from tests.contract.given import LEASE, RESULT, intent
from twiceshy_contract.destinations import Destination, LogDestination
from twiceshy_contract.outbox import MessageState

TENANT: Final = TenantId(1)
Answer = Callable[[Outgoing], Result | Awaitable[Result]]
OK: Final = Delivered(receipt="ok")
SOON: Final = RelaySettings(overrun_seconds=0.05, refresh_seconds=0.05, drain_seconds=5)


async def declared(store: Store, name: str = "there", settings: Destination | None = None) -> int:
    """Declare a destination; return its id."""
    record, _ = await store.destinations.declare(TENANT, name, settings or LogDestination())
    return record.place.id


async def stage(
    store: Store, destination: int, bodies: Sequence[str], lane: str | None = None, name: str = "there"
) -> list[UUID]:
    """Stage messages in one effect; return their ids."""
    key = Key(b"\x01\x9a\x00\x00\x00\x00" + uuid4().bytes + bytes(10))
    token = AttemptToken(uuid4())
    rows = tuple(
        Staged(
            message=uuid4(),
            destination_id=destination,
            destination=name,
            lane=lane,
            type=None,
            recipient=None,
            content_type="text/plain",
            headers=b"{}",
            body=body.encode(),
            delay=Duration(0),
            not_after=Duration(3_600_000_000),
        )
        for body in bodies
    )
    begun = msgspec.structs.replace(intent(), key=key, began_at=Instant(0))
    await store.effects.apply(0, [Insert(intent=begun, token=token, lease=LEASE)])
    staging = Staging(tenant=TENANT, rows=rows, token=token)
    await store.effects.apply(0, [Finish(key=key, token=token, fence=Fence(1), outcome=RESULT, staging=staging)])
    return [row.message for row in rows]


class Liar:
    """A sink that answers what it is told to, and remembers what came."""

    def __init__(
        self,
        answer: Answer = lambda _: OK,
        capability: Literal["deduplicates", "sends_blindly"] = "sends_blindly",
    ) -> None:
        self.answer = answer
        self.sent: list[Outgoing] = []
        self.is_closed = False
        self.came = asyncio.Event()
        self._capability = capability

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        return self._capability

    @property
    def bodies(self) -> list[str]:
        """What came, in order."""
        return [outgoing.body.decode() for outgoing in self.sent]

    async def send(self, outgoing: Outgoing) -> Result:
        """Remember it and answer."""
        self.sent.append(outgoing)
        self.came.set()
        answer = self.answer(outgoing)
        return await answer if inspect.isawaitable(answer) else answer

    async def check(self) -> Reached:
        """Say that it is there."""
        return Reached(ok=True, detail="here")

    async def close(self) -> None:
        """Remember that it was closed."""
        self.is_closed = True


def in_turn(*answers: Result) -> Answer:
    """Answer so, one after another, and with delivery from then on."""
    left: Iterator[Result] = iter(answers)
    return lambda _: next(left, OK)


def relay_of(store: RelayStore, *sinks: Liar, settings: RelaySettings = SOON, jitter: float = 0.0) -> Relay:
    """Make a relay whose destinations open to these sinks, in the order in which they are opened."""
    left = iter(sinks)
    last: list[Liar] = []

    def opened(name: str, destination: Destination) -> Liar:
        del name, destination
        last[:] = [next(left, last[0] if last else Liar())]
        return last[0]

    return Relay(store, opened, settings, lambda: jitter)


@asynccontextmanager
async def running(relay: Relay) -> AsyncIterator[asyncio.Task[None]]:
    """Let a relay run, and end it."""
    task = asyncio.create_task(relay.run())
    try:
        yield task
    finally:
        relay.stop()
        await asyncio.wait_for(task, 15)


async def stand(store: Store, state: MessageState | None = None) -> list[tuple[str, str, int, str | None]]:
    """Return all messages that are not over, or are of a state: body, state, tries and note, oldest first."""
    page, _ = await store.outbox.page(TENANT, MessageFilter(state=state, limit=500))
    return [(row.body.decode(), row.state, row.attempts, row.note) for row in reversed(page)]


async def delivered(store: Store) -> list[str]:
    """Return the bodies of what was delivered, in no order."""
    return sorted(body for body, *_ in await stand(store, "delivered"))


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 10) -> None:
    """Look again and again until something holds."""
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110  what is waited for is in a database
            await asyncio.sleep(0.01)
