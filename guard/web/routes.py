"""The HTTP application: routes, errors, description. It is given the service; it makes nothing of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from litestar import Litestar
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from guard.service.use_cases import UseCases
from guard.web import openapi, problems
from guard.web.api import (
    approvals,
    contention,
    destinations,
    effects,
    events,
    flags,
    forks,
    health,
    holds,
    keys,
    metrics,
    outbox,
    pauses,
    plans,
    probes,
    replies,
    runs,
    sagas,
    search,
    status,
    tools,
)
from guard.web.api import problems as problem_pages
from guard.web.api.batch import batch_of
from guard.web.api.verbs import VERBS
from guard.web.authorization import BearerTokens
from guard.web.front import Front
from guard.web.signed import Signed
from guard.web.verb import Verbs
from twiceshy_contract.canonical import MAX_BYTES

ROUTES = (
    *effects.ROUTES,
    *runs.ROUTES,
    *replies.ROUTES,
    *events.ROUTES,
    *search.ROUTES,
    *forks.ROUTES,
    *pauses.ROUTES,
    *holds.ROUTES,
    *tools.ROUTES,
    *plans.ROUTES,
    *flags.ROUTES,
    *probes.ROUTES,
    *approvals.ROUTES,
    *sagas.ROUTES,
    *outbox.ROUTES,
    *destinations.ROUTES,
    *keys.ROUTES,
    *contention.ROUTES,
    *status.ROUTES,
    *health.ROUTES,
    *metrics.ROUTES,
    *problem_pages.ROUTES,
)


def web(
    start: Callable[[], AbstractAsyncContextManager[UseCases]], *, tokens: BearerTokens, signed: Signed, version: str
) -> Front:
    """Serve what `start` starts, for as long as the application lives."""

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with start() as use_cases:
            app.state["use_cases"] = use_cases
            yield

    app = Litestar(
        route_handlers=ROUTES,
        lifespan=[lifespan],
        state=State({"knows_approvers": tokens.knows_approvers, "signed": signed}),
        openapi_config=openapi.config(version),
        request_max_body_size=MAX_BYTES,
        exception_handlers={
            HTTPException: problems.on_http_exception,
            Exception: problems.on_error,
        },
        logging_config=None,
    )
    verbs = Verbs((*VERBS, *outbox.VERBS))
    verbs = Verbs((*verbs.all, batch_of(verbs)))
    openapi.add_verbs(app.openapi_schema, verbs)
    openapi.add_wire_structs(app.openapi_schema)
    return Front(app, verbs, tokens)
