"""/v1/runs: open, read, list, finish."""

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.web import problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, use_cases
from guard.web.runs import run_view
from twiceshy_contract.names import RunName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest, RunPage, RunState, RunView


@post(
    "/v1/runs",
    operation_class=documented(
        "Open a run, or find it",
        body=OpenRunRequest,
        answers={200: RunView},
        problems=(400, 401, 413, 415, 503),
    ),
)
async def open_run(request: ApiRequest) -> Response[bytes]:
    """Answer with the run as it stands; an ended one is not opened again."""
    asked = await message(request, OpenRunRequest)
    run = await use_cases(request).runs.open(DEFAULT_TENANT, asked.run)
    return json_answer(run_view(run)).response()


@get(
    "/v1/runs/{run:str}",
    operation_class=documented("One run", answers={200: RunView}, problems=(401, 404, 503)),
)
async def show(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Read one run."""
    found = await use_cases(request).runs.get(DEFAULT_TENANT, path_name(run))
    if found is None:
        return problems.answer("not-found", f"There is no run {run!r}.").response()
    return json_answer(run_view(found)).response()


@post(
    "/v1/runs/{run:str}/finish",
    operation_class=documented(
        "End a run: it serves its record and takes no new effects",
        body=FinishRunRequest,
        answers={200: RunView},
        problems=(400, 401, 404, 409, 415, 503),
    ),
)
async def finish(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """End a run. Ending it again in the same way is the same; in another way it is refused."""
    asked = await message(request, FinishRunRequest, default=b"{}")
    ended = await use_cases(request).questions.end_run(DEFAULT_TENANT, path_name(run), asked.as_)
    if ended is None:
        return problems.answer("not-found", f"There is no run {run!r}.").response()
    if ended.state != asked.as_:
        return problems.answer("run-finished", f"Run {run!r} is {ended.state} already and stays so.").response()
    return json_answer(run_view(ended)).response()


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing. `parent` shows the forks of a run."""

    state: RunState | None = None
    parent: RunName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/runs",
    operation_class=documented(
        "Runs, newest first, a page at a time", query=RunQuery, answers={200: RunPage}, problems=(400, 401, 503)
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List runs."""
    asked = query(request, RunQuery)
    try:
        runs, cursor = await use_cases(request).runs.page(
            DEFAULT_TENANT, asked.state, asked.limit, asked.after, asked.parent
        )
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(RunPage(items=tuple(run_view(run) for run in runs), next=cursor)).response()


ROUTES = (open_run, show, finish, listing)
