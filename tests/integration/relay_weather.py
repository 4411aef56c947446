"""A relay store with weather: what a relay says to it can be lost on the way there, or on the way back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

from guard.core.effects import Duration, Instant
from guard.ports.relay import Ask, Backlog, Heard, Reaped, RelayStore, Settlement, Turn, Verdict, Way
from guard.ports.store import StatementFailed, StoreUnavailable


class Weather:
    """Passes everything on, but for what a test tells it to lose.

    `is_away`: nothing arrives. `loses_answers`: so many turns that settle are done, and nobody hears of it;
    `loses_claims`: so many that claim. `refuses`: the text of a note or receipt that no statement takes. `keeps`:
    whether leases are renewed. `delays`: called before a claim is answered.
    """

    def __init__(self, store: RelayStore) -> None:
        self._store = store
        self.is_away = False
        self.loses_answers = 0
        self.loses_claims = 0
        self.delays: Callable[[], Awaitable[None]] | None = None
        self.refuses: str | None = None
        self.keeps = True
        self.was_away = asyncio.Event()
        self.turns: list[tuple[int, int]] = []
        self.claims: list[tuple[int, int]] = []

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        self._pass()
        if self.refuses is not None and any(self.refuses in repr(each) for each in settlements):
            raise StatementFailed("no such text")
        turn = await self._store.turn(lease, length, settlements, asks)
        self.turns.append((len(settlements), len(turn.claimed)))
        self.claims.append((len(asks), len(turn.claimed)))
        if turn.claimed and self.delays is not None:
            await self.delays()
        if turn.claimed and self.loses_claims:
            self.loses_claims -= 1
            raise StoreUnavailable("the answer was lost")
        if settlements and self.loses_answers:
            self.loses_answers -= 1
            raise StoreUnavailable("the answer was lost")
        return turn

    async def due(self) -> frozenset[int]:
        self._pass()
        return await self._store.due()

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        self._pass()
        return await self._store.start(lease, ids, length)

    async def renew(self, lease: UUID, ids: Sequence[int], length: Duration) -> frozenset[int]:
        self._pass()
        return await self._store.renew(lease, ids, length) if self.keeps else frozenset(ids)

    async def release(self, lease: UUID, besides: Sequence[int]) -> int:
        self._pass()
        return await self._store.release(lease, besides)

    async def reap(self, limit: int) -> Reaped:
        self._pass()
        return await self._store.reap(limit)

    async def now(self) -> Instant:
        self._pass()
        return await self._store.now()

    async def ways(self) -> list[Way]:
        self._pass()
        return await self._store.ways()

    async def report(self, heard: Sequence[Heard]) -> None:
        self._pass()
        await self._store.report(heard)

    async def backlogs(self) -> dict[int, Backlog]:
        self._pass()
        return await self._store.backlogs()

    async def tidy(self, kept: Duration) -> int:
        self._pass()
        return await self._store.tidy(kept)

    async def ring(self) -> None:
        await self._store.ring()

    def listening(self, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        return self._store.listening(heard)

    def _pass(self) -> None:
        if self.is_away:
            self.was_away.set()
            raise StoreUnavailable("the store is away")
