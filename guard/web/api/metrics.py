"""/metrics: what the service counts of itself, in Prometheus' text format."""

from typing import Final

from litestar import Response, get

from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, use_cases

_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"


@get("/metrics", include_in_schema=False)
async def metrics(request: ApiRequest) -> Response[bytes]:
    """Look at what waits in the database, then write all meters."""
    return Response(await use_cases(request).metrics(DEFAULT_TENANT), media_type=_TEXT)


ROUTES: Final = (metrics,)
