"""/v1/flags: what an operator should see, and that somebody has seen to it."""

from typing import Annotated, Final
from uuid import UUID

import msgspec
from litestar import Response, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from guard.core.flags import RaisedFlag
from guard.ports.flags import FlagFilter
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.instants import rfc3339, rfc3339_or_none
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, query, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.flags import CloseFlagRequest, FlagKind, FlagPage, FlagState, FlagView
from twiceshy_contract.refusals import Refusal


class FlagQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing."""

    kind: FlagKind | None = None
    state: FlagState | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/flags",
    operation_class=documented(
        "Flags, newest first, a page at a time", query=FlagQuery, answers={200: FlagPage}, problems=(400, 401, 503)
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List flags."""
    asked = query(request, FlagQuery)
    chosen = FlagFilter(kind=asked.kind, state=asked.state, limit=asked.limit, after=asked.after)
    try:
        flags, cursor = await use_cases(request).flags.page(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(FlagPage(items=tuple(view(flag) for flag in flags), next=cursor)).response()


@post(
    "/v1/flags/{flag:str}/close",
    operation_class=documented(
        "Close a flag: somebody has seen to it",
        body=CloseFlagRequest,
        answers={200: FlagView},
        problems=(400, 401, 404, 413, 415, 503),
    ),
)
async def close(request: ApiRequest, flag: FromPath[str]) -> Response[bytes]:
    """Close a flag. One that is closed already is answered as it was closed."""
    asked = await message(request, CloseFlagRequest)
    closed = await use_cases(request).flags.close(DEFAULT_TENANT, _id_of(flag), asked.by, asked.reason)
    if closed is None:
        return problems.answer("not-found", f"There is no flag {flag}.").response()
    return json_answer(view(closed)).response()


def view(raised: RaisedFlag) -> FlagView:
    """Return a flag as it stands."""
    flag = raised.flag
    return FlagView(
        id=raised.id,
        kind=flag.kind,
        subject=flag.subject,
        state=raised.state,
        detail=flag.detail,
        at=rfc3339(raised.at),
        run=flag.run,
        tool=flag.tool,
        key=None if flag.key is None else wire_key(flag.key),
        closed_at=rfc3339_or_none(raised.closed_at),
        closed_by=raised.closed_by,
        reason=raised.reason,
    )


def _id_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise HTTPException(status_code=404) from error


ROUTES: Final = (listing, close)
