"""/v1/contention: the effects that begins lately found under another attempt's lease."""

from typing import Annotated, Final

import msgspec
from litestar import Response, get

from guard.ports.accelerator import WINDOW_MINUTES
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, query, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.contention import ContendedView, ContentionView


class ContentionQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 20


@get(
    "/v1/contention",
    operation_class=documented(
        "Effects that begins lately found under another attempt's lease, most first",
        query=ContentionQuery,
        answers={200: ContentionView},
        problems=(400, 401),
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List the hottest keys, and say where they were counted."""
    asked = query(request, ContentionQuery)
    hottest = await use_cases(request).contention.hottest(DEFAULT_TENANT, asked.limit)
    items = tuple(ContendedView(key=wire_key(hot.key), tool=hot.tool, begins=hot.begins) for hot in hottest.keys)
    return json_answer(ContentionView(counted_in=hottest.counted_in, minutes=WINDOW_MINUTES, items=items)).response()


ROUTES: Final = (listing,)
