"""/v1/effects besides the hot verbs: release, resolve, cancel, reopen, and reading."""

from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.ports.store import EffectFilter
from guard.web import answers, problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, business_key, message, path_key, query, use_cases
from twiceshy_contract.effects import (
    BeginRequest,
    EffectAnswer,
    EffectPage,
    EffectView,
    ResolveRequest,
)
from twiceshy_contract.names import PublicState, RunName, ToolName
from twiceshy_contract.reconsider import CancelRequest, ReopenRequest
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import KEY_HEADER


@post(
    "/v1/effects/release",
    operation_class=documented(
        "Release: a begin whose answer was lost is given up; the tool was never started",
        body=BeginRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 409, 413, 415, 503),
    ),
)
async def release(request: ApiRequest) -> Response[bytes]:
    """Take begin's own body and end its token."""
    asked = await message(request, BeginRequest)
    named = business_key(request.headers.getall(KEY_HEADER, []), asked.business_key)
    asked = msgspec.structs.replace(asked, business_key=named)
    return answers.reported(await use_cases(request).release(DEFAULT_TENANT, asked)).response()


@post(
    "/v1/effects/{key:str}/resolve",
    operation_class=documented(
        "Resolve: someone who asked the provider settles doubt",
        body=ResolveRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 410, 413, 415, 503),
    ),
)
async def resolve(request: ApiRequest, key: FromPath[str]) -> Response[bytes]:
    """Settle an effect."""
    asked = await message(request, ResolveRequest)
    return answers.reported(await use_cases(request).resolve(DEFAULT_TENANT, path_key(key), asked)).response()


@post(
    "/v1/effects/{key:str}/cancel",
    operation_class=documented(
        "Cancel: an operator ends an effect that is pending",
        body=CancelRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 410, 413, 415, 503),
    ),
)
async def cancel(request: ApiRequest, key: FromPath[str]) -> Response[bytes]:
    """End an effect; its calls are answered with the error `Cancelled` from now on."""
    asked = await message(request, CancelRequest)
    return answers.reported(await use_cases(request).cancel(DEFAULT_TENANT, path_key(key), asked)).response()


@post(
    "/v1/effects/{key:str}/reopen",
    operation_class=documented(
        "Reopen: an operator lets a pending effect be tried again",
        body=ReopenRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 410, 413, 415, 503),
    ),
)
async def reopen(request: ApiRequest, key: FromPath[str]) -> Response[bytes]:
    """Count the tries of an effect anew."""
    asked = await message(request, ReopenRequest)
    return answers.reported(await use_cases(request).reopen(DEFAULT_TENANT, path_key(key), asked)).response()


@get(
    "/v1/effects/{key:str}",
    operation_class=documented(
        "One effect, with everything that is known of it",
        answers={200: EffectView},
        problems=(401, 404, 503),
    ),
)
async def show(request: ApiRequest, key: FromPath[str]) -> Response[bytes]:
    """Read one effect."""
    shown = await use_cases(request).effect(DEFAULT_TENANT, path_key(key))
    if shown is None:
        return problems.answer("not-found", f"No effect has the key {key}.").response()
    return json_answer(answers.view(shown)).response()


class EffectQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing. Doubt that was closed is out of the queue: `state=in_doubt` shows it with `closed`."""

    state: PublicState | None = None
    tool: ToolName | None = None
    run: RunName | None = None
    closed: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/effects",
    operation_class=documented(
        "Effects, newest first, a page at a time",
        query=EffectQuery,
        answers={200: EffectPage},
        problems=(400, 401, 503),
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List effects."""
    asked = query(request, EffectQuery)
    chosen = EffectFilter(
        state=asked.state, tool=asked.tool, run=asked.run, limit=asked.limit, after=asked.after, closed=asked.closed
    )
    try:
        effects, cursor = await use_cases(request).effects(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    page = EffectPage(items=tuple(answers.summary(effect) for effect in effects), next=cursor)
    return json_answer(page).response()


ROUTES: Final = (release, resolve, cancel, reopen, show, listing)
