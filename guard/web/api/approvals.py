"""/v1/approvals: list, read and wait, decide, take back."""

from typing import Annotated, Final
from uuid import UUID

import msgspec
from litestar import Response, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from guard.core.approvals import Approval, Vote
from guard.core.arguments import arguments_of
from guard.core.effects import Instant
from guard.ports.approvals import ApprovalFilter, Standing
from guard.service.approvals import Word
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import Answer, json_answer
from guard.web.instants import rfc3339, rfc3339_or_none
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, caller_of, is_no_approver, message, query, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.approvals import (
    ApprovalPage,
    ApprovalState,
    ApprovalView,
    ApprovalWait,
    CancelApprovalRequest,
    DecideRequest,
    VoteView,
)
from twiceshy_contract.names import RunName, ToolName
from twiceshy_contract.refusals import Refusal


class ApprovalQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing."""

    state: ApprovalState | None = None
    run: RunName | None = None
    tool: ToolName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many seconds to wait until the approval is no longer open."""

    wait: ApprovalWait = 0


@get(
    "/v1/approvals",
    operation_class=documented(
        "Approvals, newest first, a page at a time",
        query=ApprovalQuery,
        answers={200: ApprovalPage},
        problems=(400, 401, 503),
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List approvals."""
    asked = query(request, ApprovalQuery)
    chosen = ApprovalFilter(state=asked.state, run=asked.run, tool=asked.tool, limit=asked.limit, after=asked.after)
    try:
        approvals, at, cursor = await use_cases(request).approvals.page(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(ApprovalPage(items=tuple(view(one, at) for one in approvals), next=cursor)).response()


@get(
    "/v1/approvals/{approval:str}",
    operation_class=documented(
        "One approval; with `wait`, once it is no longer open",
        query=WaitQuery,
        answers={200: ApprovalView},
        problems=(400, 401, 404, 503),
    ),
)
async def show(request: ApiRequest, approval: FromPath[str]) -> Response[bytes]:
    """Read one approval, or wait for it."""
    wait = query(request, WaitQuery).wait
    found = await use_cases(request).approvals.get(DEFAULT_TENANT, _id_of(approval), wait)
    if found is None:
        return problems.answer("not-found", f"There is no approval {approval}.").response()
    return _standing(found).response()


@post(
    "/v1/approvals/{approval:str}/decide",
    operation_class=documented(
        "Decide: a person approves or denies",
        body=DecideRequest,
        answers={200: ApprovalView},
        problems=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
)
async def decide(request: ApiRequest, approval: FromPath[str]) -> Response[bytes]:
    """Take a person's word. The same word of the same person again is answered as the first was."""
    asked = await message(request, DecideRequest)
    if asked.arguments is not None and asked.verdict != "approve":
        raise Refusal("only who approves puts other arguments in", ("arguments",))
    person = _decider(request, asked.by)
    if isinstance(person, Answer):
        return person.response()
    word = Word(person=person, verdict=asked.verdict, reason=asked.reason, arguments=asked.arguments)
    return _told(await use_cases(request).approvals.decide(DEFAULT_TENANT, _id_of(approval), word)).response()


@post(
    "/v1/approvals/{approval:str}/cancel",
    operation_class=documented(
        "Cancel: the question is taken back, and what it was asked for does not run",
        body=CancelApprovalRequest,
        answers={200: ApprovalView},
        problems=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
)
async def cancel(request: ApiRequest, approval: FromPath[str]) -> Response[bytes]:
    """Take a question back, an approved one until its effect has begun. One taken back already is answered as it is."""
    asked = await message(request, CancelApprovalRequest)
    caller = caller_of(request)
    if caller.approver is not None and asked.by not in (None, caller.approver):
        return _other_name(caller.approver).response()
    if asked.by is not None and is_no_approver(request):
        return problems.answer(
            "forbidden", f"Only {asked.by}'s own token speaks for {asked.by}. Leave `by` out to take the question back."
        ).response()
    by = asked.by or caller.approver
    told = await use_cases(request).approvals.cancel(DEFAULT_TENANT, _id_of(approval), by, asked.reason)
    return _told(told).response()


def _decider(request: ApiRequest, by: str | None) -> str | Answer:
    """Return who decides; the answer where it is not theirs to decide. Raises Refusal where nobody is named."""
    caller = caller_of(request)
    if is_no_approver(request):
        return problems.answer(
            "forbidden", "Approvals are decided with an approver's own token, and this request has none."
        )
    if caller.approver is not None and by not in (None, caller.approver):
        return _other_name(caller.approver)
    person = by or caller.approver
    if person is None:
        raise Refusal("say who decides", ("by",))
    return person


def _other_name(name: str) -> Answer:
    return problems.answer("forbidden", f"The token is that of {name}, and `by` names somebody else.")


def _told(told: Standing | Refused) -> Answer:
    return problems.refused(told) if isinstance(told, Refused) else _standing(told)


def _standing(standing: Standing) -> Answer:
    return json_answer(view(standing.approval, standing.at))


def view(approval: Approval, at: Instant) -> ApprovalView:
    """Return an approval as it stands at a time."""
    question = approval.question
    return ApprovalView(
        id=approval.id,
        key=wire_key(question.key),
        round=question.round,
        state=approval.state_at(at),
        tool=question.tool,
        tool_version=question.tool_version,
        run=question.run,
        summary=question.summary,
        arguments=arguments_of(question.arguments),
        edited=None if approval.edit is None else arguments_of(approval.edit.arguments),
        evidence=arguments_of(question.evidence),
        requester=question.requester,
        quorum=question.quorum,
        four_eyes=question.four_eyes,
        decisions=tuple(_vote(vote) for vote in approval.votes),
        asked_at=rfc3339(approval.asked_at),
        expires_at=rfc3339_or_none(approval.expires_at),
        decided_at=rfc3339_or_none(approval.decided_at),
        cancelled_by=approval.cancelled_by,
        reason=_reason(approval),
        as_of=rfc3339(at),
    )


def _reason(approval: Approval) -> str | None:
    """Return why it ended as it did."""
    denial = approval.denial
    return approval.cancel_reason if denial is None else denial.reason


def _vote(vote: Vote) -> VoteView:
    return VoteView(
        by=vote.person,
        verdict=vote.verdict,
        at=rfc3339(vote.at),
        reason=vote.reason,
        edited=vote.edited_digest is not None,
    )


def _id_of(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise HTTPException(status_code=404) from error


ROUTES: Final = (listing, show, decide, cancel)
