"""The HTTP application: routes, errors, description. It is given the service; it makes nothing of its own."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from litestar import Litestar
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from guard.ports.store import StoreUnavailable
from guard.service.use_cases import UseCases
from guard.web import openapi, problems
from guard.web.api import effects, health, keys, runs, tools
from guard.web.api import problems as problem_pages
from guard.web.authorization import BearerTokens
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.refusals import Refusal

ROUTES = (*effects.ROUTES, *runs.ROUTES, *tools.ROUTES, *keys.ROUTES, *health.ROUTES, *problem_pages.ROUTES)


def web(start: Callable[[], AbstractAsyncContextManager[UseCases]], *, tokens: Sequence[str], version: str) -> Litestar:
    """Serve what `start` starts, for as long as the application lives."""

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with start() as use_cases:
            app.state["use_cases"] = use_cases
            yield

    app = Litestar(
        route_handlers=ROUTES,
        lifespan=[lifespan],
        state=State(),
        openapi_config=openapi.config(version),
        middleware=[BearerTokens(tokens)] if tokens else [],
        request_max_body_size=MAX_BYTES,
        exception_handlers={
            Refusal: problems.on_refusal,
            StoreUnavailable: problems.on_store_unavailable,
            HTTPException: problems.on_http_exception,
            Exception: problems.on_defect,
        },
        logging_config=None,
    )
    openapi.add_wire_structs(app.openapi_schema)
    return app
