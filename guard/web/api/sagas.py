"""/v1/sagas: open, end, go on taking back, settle, read."""

from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.ports.sagas import SagaFilter
from guard.service.outcomes import Refused
from guard.service.sagas import Looked, no_saga
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, use_cases
from guard.web.saga_answers import next_answer, saga_summary, saga_view
from guard.web.wire import key_of
from twiceshy_contract.names import RunName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.sagas import (
    FailSagaRequest,
    NextAnswer,
    OpenSagaRequest,
    ReportStepRequest,
    ResumeSagaRequest,
    SagaPage,
    SagaState,
    SagaSummary,
    SagaView,
    SettleStepRequest,
)

_PROBLEMS: Final = (400, 401, 404, 409, 413, 415, 503)


@post(
    "/v1/sagas",
    operation_class=documented(
        "Open a saga in a run, or find it",
        body=OpenSagaRequest,
        answers={200: SagaSummary},
        problems=(400, 401, 409, 413, 415, 503),
    ),
)
async def open_saga(request: ApiRequest) -> Response[bytes]:
    """Answer with the saga as it stands; in a fork it has a name of its own."""
    asked = await message(request, OpenSagaRequest)
    saga = await use_cases(request).sagas.open(DEFAULT_TENANT, asked)
    if isinstance(saga, Refused):
        return problems.refused(saga).response()
    return json_answer(saga_summary(saga)).response()


@post(
    "/v1/sagas/{saga:str}/complete",
    operation_class=documented(
        "End a saga well: nothing of it is taken back any more", answers={200: SagaSummary}, problems=_PROBLEMS
    ),
)
async def complete(request: ApiRequest, saga: FromPath[str]) -> Response[bytes]:
    """End a running saga; a completed one stays so."""
    ended = await use_cases(request).sagas.complete(DEFAULT_TENANT, path_name(saga))
    if isinstance(ended, Refused):
        return problems.refused(ended).response()
    return json_answer(saga_summary(ended)).response()


@post(
    "/v1/sagas/{saga:str}/fail",
    operation_class=documented(
        "Fail a saga: what was done is taken back",
        body=FailSagaRequest,
        answers={200: SagaView},
        problems=_PROBLEMS,
    ),
)
async def fail(request: ApiRequest, saga: FromPath[str]) -> Response[bytes]:
    """Fail a running saga; one that is being taken back goes on as it does."""
    asked = await message(request, FailSagaRequest)
    return _viewed(await use_cases(request).sagas.fail(DEFAULT_TENANT, path_name(saga), asked.reason))


@post(
    "/v1/sagas/{saga:str}/next",
    operation_class=documented(
        "Ask what a saga that failed needs next", answers={200: NextAnswer}, problems=(401, 404, 503)
    ),
)
async def next_move(request: ApiRequest, saga: FromPath[str]) -> Response[bytes]:
    """Write down what is known by now, and answer with the call that is due, or with what stands in the way."""
    looked = await use_cases(request).sagas.look_after(DEFAULT_TENANT, path_name(saga))
    if looked is None:
        return problems.refused(no_saga(saga)).response()
    return json_answer(next_answer(looked)).response()


@post(
    "/v1/sagas/{saga:str}/steps/{key:str}/settle",
    operation_class=documented(
        "Settle a step that cannot be taken back by itself",
        body=SettleStepRequest,
        answers={200: SagaView},
        problems=_PROBLEMS,
    ),
)
async def settle(request: ApiRequest, saga: FromPath[str], key: FromPath[str]) -> Response[bytes]:
    """Take a person's word about one step."""
    asked = await message(request, SettleStepRequest)
    name, step = path_name(saga), key_of(key)
    if step is None:
        return _viewed(_no_step(name, key))
    return _viewed(await use_cases(request).settle_saga.step(DEFAULT_TENANT, name, step, asked))


@post(
    "/v1/sagas/{saga:str}/steps/{key:str}/report",
    operation_class=documented(
        "Say why the call that is due for a step cannot be made",
        body=ReportStepRequest,
        answers={200: SagaView},
        problems=_PROBLEMS,
    ),
)
async def report(request: ApiRequest, saga: FromPath[str], key: FromPath[str]) -> Response[bytes]:
    """Take the word of a process that has the tool; where nothing is due for the step any more, it changes nothing."""
    asked = await message(request, ReportStepRequest)
    name, step = path_name(saga), key_of(key)
    if step is None:
        return _viewed(_no_step(name, key))
    return _viewed(await use_cases(request).sagas.report(DEFAULT_TENANT, name, step, asked.reason))


@post(
    "/v1/sagas/{saga:str}/resume",
    operation_class=documented(
        "Let every compensation be tried again that was refused or given up",
        body=ResumeSagaRequest,
        answers={200: SagaView},
        problems=_PROBLEMS,
    ),
)
async def resume(request: ApiRequest, saga: FromPath[str]) -> Response[bytes]:
    """Let a stuck saga go on."""
    asked = await message(request, ResumeSagaRequest)
    return _viewed(await use_cases(request).settle_saga.resume(DEFAULT_TENANT, path_name(saga), asked))


@get(
    "/v1/sagas/{saga:str}",
    operation_class=documented("One saga with its steps", answers={200: SagaView}, problems=(401, 404, 503)),
)
async def show(request: ApiRequest, saga: FromPath[str]) -> Response[bytes]:
    """Read one saga."""
    looked = await use_cases(request).sagas.look(DEFAULT_TENANT, path_name(saga))
    return _viewed(no_saga(saga) if looked is None else looked)


class SagaQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing."""

    state: SagaState | None = None
    run: RunName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/sagas",
    operation_class=documented(
        "Sagas, newest first, a page at a time", query=SagaQuery, answers={200: SagaPage}, problems=(400, 401, 503)
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List sagas."""
    asked = query(request, SagaQuery)
    chosen = SagaFilter(state=asked.state, run=asked.run, limit=asked.limit, after=asked.after)
    try:
        sagas, cursor = await use_cases(request).sagas.page(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(SagaPage(items=tuple(saga_summary(saga) for saga in sagas), next=cursor)).response()


def _no_step(saga: str, text: str) -> Refused:
    """Say that what a path names is no key."""
    detail = f"{text!r} is no key of a step: a key has 64 hexadecimal digits. GET /v1/sagas/{saga} lists the steps."
    return Refused(code="not-found", detail=detail)


def _viewed(outcome: Looked | Refused) -> Response[bytes]:
    if isinstance(outcome, Refused):
        return problems.refused(outcome).response()
    return json_answer(saga_view(outcome)).response()


ROUTES: Final = (open_saga, complete, fail, next_move, settle, report, resume, show, listing)
