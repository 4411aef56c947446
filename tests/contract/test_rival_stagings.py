"""Staging stays one act whoever stages the same at the same time, and whatever fails within it."""

import asyncio
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from guard.core.effects import Instant
from guard.core.outbox import Place, Sender, Staging, rendered
from guard.ports.outbox import MessageFilter
from guard.ports.store import StatementFailed, Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import MessagesStaged, Replayed
from guard.service.use_cases import UseCases
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT, finish, insert, key, look, one, written
from twiceshy_contract.destinations import WebhookDestination
from twiceshy_contract.messages import Message
from twiceshy_contract.outbox import StageRequest

HOOK = WebhookDestination(url="https://hooks.example/x")
INTENTS = 25
SENDER = Sender(tenant=TENANT, at=Instant(0))


async def test_of_several_services_that_stage_the_same_each_intent_is_staged_by_one(
    store: Store, database_url: str
) -> None:
    await store.destinations.declare(TENANT, "hook", HOOK)
    stores = [await open_store(database_url) for _ in range(3)]
    try:
        won = await asyncio.gather(*(stage_all(one) for one in stores))
    finally:
        for opened in stores:
            await opened.close()
    by_intent = list(zip(*won, strict=True))
    assert [sum(ids is not None for ids in intent) for intent in by_intent] == [1] * INTENTS
    page, _ = await store.outbox.page(TENANT, MessageFilter(run="crowd", limit=500))
    staged = {id_ for intent in by_intent for ids in intent if ids is not None for id_ in ids}
    assert ({standing.message for standing in page}, len(page)) == (staged, INTENTS)


async def stage_all(store: Store) -> list[tuple[UUID, ...] | None]:
    """Stage the same intents as the others, one after the other; return the ids of those that were staged here."""
    staged: list[tuple[UUID, ...] | None] = []
    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        for at in range(INTENTS):
            call = StageRequest(
                tool="notify",
                run="crowd",
                arguments={"n": at},
                attempt=uuid4(),
                messages=(Message(destination="hook", payload=at),),
            )
            outcome = await guard.stage(TENANT, call)
            assert isinstance(outcome, MessagesStaged | Replayed), outcome
            staged.append(outcome.messages if isinstance(outcome, MessagesStaged) else None)
    return staged


async def test_where_a_message_cannot_be_written_neither_is_its_outcome(store: Store) -> None:
    record, _ = await store.destinations.declare(TENANT, "hook", HOOK)
    places: dict[str, Place] = {"hook": record.place}
    (row,) = rendered([Message(destination="hook", payload=1)], key(1), places, SENDER, strict=True)
    await written(store, insert())
    with pytest.raises(StatementFailed):
        await one(store, replace(finish(), staging=Staging(tenant=TENANT, rows=(row, row))))
    assert (await look(store)).life.state == "executing"
    assert await store.outbox.of_effect(TENANT, key(1)) == ()
    await written(store, replace(finish(), staging=Staging(tenant=TENANT, rows=(row,))))
    assert await store.outbox.of_effect(TENANT, key(1)) == (row.message,)
