"""The composition root of the service: the only place where its parts are put together."""

import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from importlib.metadata import version

from prometheus_client.registry import Collector

from guard.ports.accelerator import Accelerator
from guard.ports.reaching import Reaching
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.use_cases import UseCases
from guard.settings import Settings
from guard.store.sql.engine import open_store
from guard.web.authorization import BearerTokens
from guard.web.front import Front
from guard.web.routes import web
from guard.web.signed import Signed

Beside = Callable[[Store, Callable[[Collector], None]], AbstractAsyncContextManager[None]]
"""What lives in the service's process, over its store: from after it is opened until before it is closed.

Its meters are told where the service's are, once they are given to the function that it gets.
"""


def stop_waiting(served: Front) -> None:
    """Let no request wait any longer; to be said before the server waits for its requests to end."""
    use_cases: UseCases | None = served.rest.state.get("use_cases")
    if use_cases is not None:
        use_cases.stop_waiting()


def app(settings: Settings, reaching: Reaching | None = None, beside: Beside | None = None) -> Front:
    """Return the service as an ASGI application; it opens its database when it starts.

    Without `reaching` it cannot say whether a destination can be reached. `beside` is what else lives in it.
    """

    @asynccontextmanager
    async def start() -> AsyncIterator[UseCases]:
        store = await open_store(settings.database)
        provider = HttpProvider(os.environ)
        try:
            async with (
                _accelerator(settings, store) as accelerator,
                UseCases(store, random.SystemRandom().random, provider, reaching, accelerator) as use_cases,
                nullcontext() if beside is None else beside(store, use_cases.measures.tell_also),
            ):
                if accelerator is not None:
                    accelerator.measure(use_cases.measures)
                yield use_cases
        finally:
            await provider.close()
            await store.close()

    tokens = BearerTokens(settings.tokens, settings.approvers)
    return web(start, tokens=tokens, signed=Signed(settings.inbound_secrets), version=version("twiceshy-server"))


@asynccontextmanager
async def _accelerator(settings: Settings, store: Store) -> AsyncIterator[Accelerator | None]:
    """Open what makes answers arrive sooner, where the settings name it; only then its client is loaded."""
    if not settings.redis:
        yield None
        return
    from guard.accelerator.opening import open_accelerator

    accelerator = open_accelerator(settings.redis, store.salts, store.cache_epochs, settings.redis_seconds)
    try:
        yield accelerator
    finally:
        await accelerator.close()
