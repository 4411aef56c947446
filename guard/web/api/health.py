"""/health: whether the process is alive, and whether it can do its work."""

import msgspec
from litestar import Response, get

from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import use_cases


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All is well."""

    status: str


@get("/health/live", operation_class=documented("The process answers", answers={200: Health}))
async def live() -> Response[bytes]:
    """Answer without asking anybody."""
    return json_answer(Health(status="live")).response()


@get("/health/ready", operation_class=documented("The database answers", answers={200: Health}, problems=(503,)))
async def ready(request: ApiRequest) -> Response[bytes]:
    """Ask the database; a process that is to stop is not ready, so that a balancer sends it nothing new."""
    asked = use_cases(request)
    if asked.is_stopping:
        return json_answer(Health(status="stopping"), status=503).response()
    await asked.check()
    return json_answer(Health(status="ready")).response()


ROUTES = (live, ready)
