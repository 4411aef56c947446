"""/v1/runs: open, read, list, finish, and say what became known."""

from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.core.runs import Run
from guard.ports.search import RunFilter
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, use_cases
from guard.web.runs import run_view
from twiceshy_contract.facts import typed_fact
from twiceshy_contract.names import RunName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest, RunFacts, RunPage, RunState, RunText, RunView


@post(
    "/v1/runs",
    operation_class=documented(
        "Open a run, or find it",
        body=OpenRunRequest,
        answers={200: RunView},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def open_run(request: ApiRequest) -> Response[bytes]:
    """Answer with the run as it stands; an ended one is not opened again, and takes no writer of its log."""
    asked = await message(request, OpenRunRequest)
    run = await use_cases(request).runs.tell(DEFAULT_TENANT, asked.run, asked.about, asked.parent)
    if isinstance(run, Refused):
        return problems.refused(run).response()
    if asked.record:
        recorded = await use_cases(request).recording.open(run)
        if isinstance(recorded, Refused):
            return problems.refused(recorded).response()
        run = recorded
    return await _answer(request, run)


@get(
    "/v1/runs/{run:str}",
    operation_class=documented("One run", answers={200: RunView}, problems=(401, 404, 503)),
)
async def show(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Read one run."""
    found = await use_cases(request).runs.get(DEFAULT_TENANT, path_name(run))
    if found is None:
        return problems.answer("not-found", f"There is no run {run!r}.").response()
    return await _answer(request, found)


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
    return await _answer(request, ended)


@post(
    "/v1/runs/{run:str}/facts",
    operation_class=documented(
        "Say what became known of a run, whenever that is; it may have ended",
        body=RunFacts,
        answers={200: RunView},
        problems=(400, 401, 404, 413, 415, 503),
    ),
    operation_id="keep_facts",
)
async def keep_facts(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Keep facts. Of a name that was said before the new value counts; the same again changes nothing."""
    asked = await message(request, RunFacts)
    told = await use_cases(request).search.keep_facts(DEFAULT_TENANT, path_name(run), asked.facts)
    if told is None:
        return problems.answer("not-found", f"There is no run {run!r}.").response()
    return await _answer(request, told)


class RunQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing: runs of which all holds.

    `parent` shows the forks of a run, `child_of` the runs that it started. `fact` is written name=value: true, false, a
    number or a quoted text as in JSON, all else a text as it stands. `tag` and `fact` may be repeated.
    """

    state: RunState | None = None
    parent: RunName | None = None
    child_of: RunName | None = None
    workflow: RunText | None = None
    reference: RunText | None = None
    tag: Annotated[tuple[RunText, ...], msgspec.Meta(max_length=10)] = ()
    fact: Annotated[tuple[str, ...], msgspec.Meta(max_length=10)] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/runs",
    operation_class=documented(
        "Runs, newest first, a page at a time", query=RunQuery, answers={200: RunPage}, problems=(400, 401, 503)
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List runs, each without the input that its agent was given."""
    asked = query(request, RunQuery)
    chosen = _chosen(asked)
    try:
        runs, cursor = await use_cases(request).runs.page(DEFAULT_TENANT, chosen, asked.parent)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    facts = await use_cases(request).search.facts_of(runs)
    items = tuple(run_view(run, facts.get(run.id, {}), listed=True) for run in runs)
    return json_answer(RunPage(items=items, next=cursor)).response()


def _chosen(asked: RunQuery) -> RunFilter:
    """Return what is listed. Raises Refusal with the parameter."""
    try:
        facts = tuple(typed_fact(text) for text in asked.fact)
    except Refusal as refusal:
        raise refusal.under("fact") from refusal
    return RunFilter(
        state=asked.state,
        child_of=asked.child_of,
        workflow=asked.workflow,
        reference=asked.reference,
        tags=asked.tag,
        facts=facts,
        limit=asked.limit,
        after=asked.after,
    )


async def _answer(request: ApiRequest, run: Run) -> Response[bytes]:
    """Answer with a run and its facts."""
    facts = await use_cases(request).search.facts_of([run])
    return json_answer(run_view(run, facts.get(run.id, {}))).response()


ROUTES = (open_run, show, finish, keep_facts, listing)
