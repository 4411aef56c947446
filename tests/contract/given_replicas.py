"""Two services over one database, each with the waiters of its own, as two replicas are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import uuid4

import pytest
from msgspec.structs import replace

from guard.ports.accelerator import Accelerator
from guard.ports.store import Store
from guard.ports.wire import Wire
from guard.probes.http import HttpProvider
from guard.service import approvals, begin, waiting
from guard.service.outcomes import BeginOutcome, Granted
from guard.service.use_cases import UseCases
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT
from tests.contract.given_redis import until
from twiceshy_contract.effects import BeginRequest, CommitRequest

Replicas = tuple[UseCases, UseCases]
CALL: Final = BeginRequest(tool="pay", run="booking-42", arguments={"to": "ann"}, attempt=uuid4(), wait_seconds=30)


def let_nobody_look_by_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let who waits rely on words."""
    for module in (approvals, begin, waiting):
        monkeypatch.setattr(module, "GLANCE_SECONDS", 60.0)


@asynccontextmanager
async def two_replicas(
    store: Store, url: str, accelerators: tuple[Accelerator | None, Accelerator | None] = (None, None)
) -> AsyncIterator[Replicas]:
    """Open a second service beside one over a store; wait until both hear each other."""
    other = await open_store(url)
    try:
        async with (
            UseCases(store, lambda: 0.5, HttpProvider({}), accelerator=accelerators[0]) as here,
            UseCases(other, lambda: 0.5, HttpProvider({}), accelerator=accelerators[1]) as there,
        ):
            wires = [
                each.wire if accelerator is None else accelerator.wire
                for each, accelerator in zip((store, other), accelerators, strict=True)
            ]
            await asyncio.gather(*map(hears, wires))
            yield here, there
    finally:
        await other.close()


async def hears(wire: Wire) -> None:
    """Wait until a replica hears what is said over its wire."""
    heard = asyncio.Event()
    async with wire.listening(lambda word: None if word is None else heard.set()):
        while not heard.is_set():
            wire.tell(b"is anybody there")
            await asyncio.sleep(0.01)


async def granted(guard: UseCases) -> Granted:
    """Begin the call that all others wait for."""
    answer = await guard.begin(TENANT, CALL)
    assert isinstance(answer, Granted)
    return answer


async def committed(guard: UseCases, grant: Granted) -> None:
    """End it."""
    commit = CommitRequest(attempt=CALL.attempt, fence=grant.effect.life.fence, result="paid")
    await guard.commit(TENANT, grant.effect.intent.key, commit)


async def waiters(guard: UseCases, number: int) -> list[asyncio.Task[BeginOutcome]]:
    """Let so many attempts wait for it on a replica."""
    tasks = [asyncio.create_task(guard.begin(TENANT, replace(CALL, attempt=uuid4()))) for _ in range(number)]
    await until(lambda: guard.waiting == number)
    return tasks
