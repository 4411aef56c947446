"""The composition root of the service: the only place where its parts are put together."""

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from guard.probes.http import HttpProvider
from guard.service.use_cases import UseCases
from guard.settings import Settings
from guard.store.sql.engine import open_store
from guard.web.authorization import BearerTokens
from guard.web.front import Front
from guard.web.routes import web


def stop_waiting(served: Front) -> None:
    """Let no request wait any longer; to be said before the server waits for its requests to end."""
    use_cases: UseCases | None = served.rest.state.get("use_cases")
    if use_cases is not None:
        use_cases.stop_waiting()


def app(settings: Settings) -> Front:
    """Return the service as an ASGI application; it opens its database when it starts."""

    @asynccontextmanager
    async def start() -> AsyncIterator[UseCases]:
        store = await open_store(settings.database)
        provider = HttpProvider(os.environ)
        try:
            async with UseCases(store, random.SystemRandom().random, provider) as use_cases:
                yield use_cases
        finally:
            await provider.close()
            await store.close()

    tokens = BearerTokens(settings.tokens, settings.approvers)
    return web(start, tokens=tokens, version=version("twiceshy-server"))
