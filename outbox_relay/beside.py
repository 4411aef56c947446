"""The relay inside `twiceshy serve`: it lives as long as the service does, and ends what is under way before it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from prometheus_client.registry import Collector

from guard.ports.store import Store
from outbox_relay.declared import declare_all
from outbox_relay.relay import Relay
from outbox_relay.route import OpenSink
from outbox_relay.settings import RelaySettings
from twiceshy_contract.destinations import Destination

Tell = Callable[[Collector], None]
"""Takes meters, to be told where the service's are."""
Beside = Callable[[Store, Tell], AbstractAsyncContextManager[None]]
"""What lives in a service's process, over its store."""


def declared_beside(destinations: Mapping[str, Destination]) -> Beside:
    """Return what declares the destinations of a file when a service starts, and does no more."""

    @asynccontextmanager
    async def declaring(store: Store, _: Tell) -> AsyncIterator[None]:
        await declare_all(store.destinations, destinations)
        yield

    return declaring


def relay_beside(open_sink: OpenSink, settings: RelaySettings, destinations: Mapping[str, Destination]) -> Beside:
    """Return what relays while a service serves, after declaring the destinations of a file."""

    @asynccontextmanager
    async def relaying(store: Store, tell: Tell) -> AsyncIterator[None]:
        await declare_all(store.destinations, destinations)
        relay = Relay(store.relay, open_sink, settings)
        tell(relay.measures)
        running = asyncio.create_task(relay.run())
        try:
            yield
        finally:
            relay.stop()
            await running

    return relaying
