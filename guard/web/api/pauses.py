"""/v1/runs/{run}/pauses: the calls at which a fork stopped, and what a person answers."""

from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.core.arguments import arguments_of
from guard.core.pauses import Pause
from guard.ports.pauses import PauseFilter
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.instants import rfc3339, rfc3339_or_none
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, caller_of, is_no_approver, message, path_key, path_name, query, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.effects import Outcome
from twiceshy_contract.forks import AnswerPauseRequest, ForkPause, PausePage, PauseState
from twiceshy_contract.refusals import Refusal


class PauseQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing."""

    state: PauseState | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/runs/{run:str}/pauses",
    operation_class=documented(
        "Calls at which a fork stopped, oldest first, a page at a time",
        query=PauseQuery,
        answers={200: PausePage},
        problems=(400, 401, 404, 503),
    ),
    operation_id="list_pauses",
)
async def listing(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """List them, with what was answered."""
    name, asked = path_name(run), query(request, PauseQuery)
    chosen = PauseFilter(state=asked.state, limit=asked.limit, after=asked.after)
    try:
        page = await use_cases(request).pauses.page(DEFAULT_TENANT, name, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    if isinstance(page, Refused):
        return problems.refused(page).response()
    pauses, cursor = page
    return json_answer(PausePage(items=tuple(_view(name, pause) for pause in pauses), next=cursor)).response()


@post(
    "/v1/runs/{run:str}/pauses/{key:str}",
    status_code=200,
    operation_class=documented(
        "Answer a call at which a fork stopped: inject an outcome, deny it, or allow it once",
        body=AnswerPauseRequest,
        answers={200: ForkPause},
        problems=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
    operation_id="answer_pause",
)
async def answer(request: ApiRequest, run: FromPath[str], key: FromPath[str]) -> Response[bytes]:
    """Take a person's answer. The same again is the same; another is refused."""
    name, asked, caller = path_name(run), await message(request, AnswerPauseRequest), caller_of(request)
    if is_no_approver(request) and asked.answer != "deny":
        detail = f"Only an approver's own token answers a fork with {asked.answer!r}, and this request has none."
        return problems.answer("forbidden", detail).response()
    if caller.approver is not None and asked.by not in (None, caller.approver):
        detail = f"The token is that of {caller.approver}, and `by` names somebody else."
        return problems.answer("forbidden", detail).response()
    by = caller.approver or asked.by
    told = await use_cases(request).pauses.answer(DEFAULT_TENANT, name, path_key(key), asked, by)
    return (problems.refused(told) if isinstance(told, Refused) else json_answer(_view(name, told))).response()


def _view(run: str, pause: Pause) -> ForkPause:
    said = pause.answer
    outcome = None if said is None or said.outcome is None else msgspec.json.decode(said.outcome, type=Outcome)
    return ForkPause(
        run=run,
        key=wire_key(pause.stop.key),
        tool=pause.stop.tool,
        state="open" if said is None else "answered",
        arguments=arguments_of(pause.stop.arguments),
        digest=pause.stop.arguments_digest.hex(),
        rule=pause.stop.rule,
        at=rfc3339(pause.at),
        answer=None if said is None else said.word,
        outcome=outcome,
        reason=None if said is None else said.reason,
        by=pause.answered_by,
        answered_at=rfc3339_or_none(pause.answered_at),
        spent=pause.spent_by is not None,
    )


ROUTES: Final = (listing, answer)
