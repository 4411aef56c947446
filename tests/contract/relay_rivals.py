"""Relays that compete for one outbox, each in a process of its own; what each does stands here."""

import asyncio
import random
import time
from collections import defaultdict
from uuid import UUID, uuid4

from guard.core.effects import Duration, seconds
from guard.ports.relay import Again, Ask, Claimed, Done, Settlement
from guard.ports.store import Store

Sent = tuple[int, str | None, float, float, bool]
"""A try: the message's id, its lane, when it began and ended, and whether it was delivered."""


async def deliver(store: Store, number: int) -> list[Sent]:
    """Deliver all that waits, with random delays and failures, in the order of each lane."""
    return await _Relay(store, number, dies=0).run()


async def deliver_and_die(store: Store, number: int) -> list[Sent]:
    """Deliver all that waits; now and then forget what was claimed, as if killed, and take back what others forgot."""
    return await _Relay(store, number, dies=0.15).run()


class _Relay:
    """A relay in a few lines: it claims, sends lane by lane, and settles in the next turn."""

    def __init__(self, store: Store, number: int, dies: float) -> None:
        self._store = store
        self._chance = random.Random(number)  # noqa: S311
        self._dies = dies
        self._length = seconds(0.25 if dies else 30)
        self._lease = uuid4()
        self._held: list[int] = []
        self._sent: list[Sent] = []

    async def run(self) -> list[Sent]:
        """Go on until nothing is left to be delivered by anybody."""
        settlements: list[Settlement] = []
        (way,) = await self._store.relay.ways()
        while settlements or await self._is_more():
            ask = Ask(destination=way.id, slots=self._chance.randint(1, 8), followers=5, repeatable=True)
            claimed, settlements = await self._turn(settlements, ask), []
            self._held = [message.id for message in claimed]
            if self._dies and self._chance.random() < self._dies:
                self._lease = uuid4()
                await asyncio.sleep(0)
            else:
                settlements = await self._send(claimed)
            await self._store.relay.reap(100)
        return self._sent

    async def _turn(self, settlements: list[Settlement], ask: Ask) -> tuple[Claimed, ...]:
        turn = await self._store.relay.turn(self._lease, self._length, settlements, [ask])
        assert not turn.fenced or self._dies, "nobody else has this lease"
        return turn.claimed

    async def _is_more(self) -> bool:
        return any(one.pending + one.in_flight for one in (await self._store.relay.backlogs()).values())

    async def _send(self, claimed: tuple[Claimed, ...]) -> list[Settlement]:
        lanes: defaultdict[str | UUID, list[Claimed]] = defaultdict(list)
        for message in sorted(claimed, key=lambda message: message.id):
            lanes[message.lane or message.message].append(message)
        return [one for said in await asyncio.gather(*map(self._send_lane, lanes.values())) for one in said]

    async def _start(self, message: Claimed) -> bool:
        """Start a message, and keep all that is held: what came before it in its lane must not be lost alone."""
        if await self._store.relay.renew(self._lease, self._held, self._length) != set(self._held):
            return False
        return bool(await self._store.relay.start(self._lease, [message.id], self._length))

    async def _send_lane(self, messages: list[Claimed]) -> list[Settlement]:
        """Send what is in a lane one by one; where one fails, those behind it are released."""
        said: list[Settlement] = []
        for place, message in enumerate(messages):
            began = time.monotonic()
            if not message.is_first and not await self._start(message):
                break
            await asyncio.sleep(self._chance.random() * 0.003)
            is_delivered = self._chance.random() < 0.9
            self._sent.append((message.id, message.lane, began, time.monotonic(), is_delivered))
            if not is_delivered:
                said.append(Again(id=message.id, delay=Duration(0), tried="retryable"))
                said += [Again(id=other.id, delay=Duration(0)) for other in messages[place + 1 :]]
                break
            said.append(Done(id=message.id, over="delivered"))
        return said
