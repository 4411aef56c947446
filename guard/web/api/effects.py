"""/v1/effects: begin, commit, fail, renew, release, resolve, and reading."""

from typing import Annotated, assert_never

import msgspec
from litestar import Response, get, post

from guard.ports.store import EffectFilter
from guard.service.outcomes import BeginOutcome, Granted, Refused, Replayed, ReportOutcome, Settled
from guard.web import answers, problems
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, business_key, message, path_key, query, use_cases
from twiceshy_contract.effects import (
    BeginRequest,
    CommitRequest,
    EffectAnswer,
    EffectPage,
    EffectView,
    ExecuteAnswer,
    FailRequest,
    RenewRequest,
    ReplayAnswer,
    ResolveRequest,
)
from twiceshy_contract.names import PublicState, RunName, ToolName
from twiceshy_contract.refusals import Refusal


@post(
    "/v1/effects",
    operation_class=documented(
        "Begin: may this call run?",
        body=BeginRequest,
        answers={201: ExecuteAnswer, 200: ReplayAnswer},
        problems=(400, 401, 409, 413, 415, 422, 503),
    ),
)
async def begin(request: ApiRequest) -> Response[bytes]:
    """Answer execute, replay, or why not."""
    asked = await message(request, BeginRequest)
    named = business_key(request, asked.business_key)
    if named != asked.business_key:
        asked = msgspec.structs.replace(asked, business_key=named)
    return _begun(await use_cases(request).begin(DEFAULT_TENANT, asked))


def _begun(outcome: BeginOutcome) -> Response[bytes]:
    match outcome:
        case Granted():
            return answers.execute(outcome)
        case Replayed():
            return answers.replay(outcome)
        case Refused():
            return problems.refused(outcome)
    assert_never(outcome)


def _reported(outcome: ReportOutcome) -> Response[bytes]:
    match outcome:
        case Settled():
            return answers.settled(outcome)
        case Refused():
            return problems.refused(outcome)
    assert_never(outcome)


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
    named = business_key(request, asked.business_key)
    asked = msgspec.structs.replace(asked, business_key=named)
    return _reported(await use_cases(request).release(DEFAULT_TENANT, asked))


@post(
    "/v1/effects/{key:str}/commit",
    operation_class=documented(
        "Commit: the tool has run",
        body=CommitRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def commit(request: ApiRequest, key: str) -> Response[bytes]:
    """Record the result."""
    asked = await message(request, CommitRequest)
    return _reported(await use_cases(request).commit(DEFAULT_TENANT, path_key(key), asked))


@post(
    "/v1/effects/{key:str}/fail",
    operation_class=documented(
        "Fail: the tool has not run to its end",
        body=FailRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def fail(request: ApiRequest, key: str) -> Response[bytes]:
    """Record what the attempt knows."""
    asked = await message(request, FailRequest)
    return _reported(await use_cases(request).fail(DEFAULT_TENANT, path_key(key), asked))


@post(
    "/v1/effects/{key:str}/renew",
    operation_class=documented(
        "Renew: the tool is still running",
        body=RenewRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def renew(request: ApiRequest, key: str) -> Response[bytes]:
    """Move the lease's deadline."""
    asked = await message(request, RenewRequest)
    return _reported(await use_cases(request).renew(DEFAULT_TENANT, path_key(key), asked))


@post(
    "/v1/effects/{key:str}/resolve",
    operation_class=documented(
        "Resolve: someone who asked the provider settles doubt",
        body=ResolveRequest,
        answers={200: EffectAnswer},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def resolve(request: ApiRequest, key: str) -> Response[bytes]:
    """Settle an effect."""
    asked = await message(request, ResolveRequest)
    return _reported(await use_cases(request).resolve(DEFAULT_TENANT, path_key(key), asked))


@get(
    "/v1/effects/{key:str}",
    operation_class=documented(
        "One effect, with everything that is known of it",
        answers={200: EffectView},
        problems=(401, 404, 503),
    ),
)
async def show(request: ApiRequest, key: str) -> Response[bytes]:
    """Read one effect."""
    shown = await use_cases(request).effect(DEFAULT_TENANT, path_key(key))
    if shown is None:
        return problems.answer("not-found", f"No effect has the key {key}.")
    return answers.json_answer(answers.view(shown))


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
    return answers.json_answer(EffectPage(items=tuple(answers.summary(effect) for effect in effects), next=cursor))


ROUTES = (begin, release, commit, fail, renew, resolve, show, listing)
