"""/v1/tools/plan and /v1/tools/apply: several declarations at once, looked at first, then taken all or none."""

from typing import Literal, assert_never

from litestar import Response, post

from guard.core.declarations import lowered
from guard.core.tools import Moved, Planned
from guard.service.registry import Applied, NothingFits, Unasked, Unfit
from guard.web import answers, problems
from guard.web.answer import Answer, json_answer
from guard.web.api.tools import of_a_tool_called, unasked
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, is_no_approver, message, use_cases
from twiceshy_contract.problems import FieldError
from twiceshy_contract.refusals import pointer
from twiceshy_contract.tools import ApplyRequest, PlannedTool, PlanRequest, ToolPlan


@post(
    "/v1/tools/plan",
    status_code=200,
    operation_class=documented(
        "Plan: what several declarations would change, or why they cannot be taken; nothing is written",
        body=PlanRequest,
        answers={200: ToolPlan},
        problems=(400, 401, 413, 415, 503),
    ),
)
async def plan(request: ApiRequest) -> Response[bytes]:
    """Answer what would hold."""
    asked = await message(request, PlanRequest)
    outcome = await use_cases(request).registry.plan(DEFAULT_TENANT, asked.tools)
    return json_answer(ToolPlan(items=tuple(_planned(one) for one in outcome))).response()


@post(
    "/v1/tools/apply",
    status_code=200,
    operation_class=documented(
        "Apply: several declarations are taken in one transaction, all or none",
        body=ApplyRequest,
        answers={200: ToolPlan},
        problems=(400, 401, 403, 409, 413, 415, 503),
    ),
)
async def apply(request: ApiRequest) -> Response[bytes]:
    """Answer what holds now. Said again, it changes nothing."""
    asked = await message(request, ApplyRequest)
    registry = use_cases(request).registry
    applied = registry.apply_no_lower if is_no_approver(request) else registry.apply
    outcome = await applied(DEFAULT_TENANT, asked.tools, asked.seen)
    match outcome:
        case Unasked():
            return unasked(outcome).response()
        case Moved():
            return _moved(outcome).response()
        case NothingFits():
            return _nothing_fits(outcome).response()
        case Applied():
            return json_answer(ToolPlan(items=tuple(_planned(one) for one in outcome.changes))).response()
        case _:
            assert_never(outcome)


def _planned(one: Planned | Unfit) -> PlannedTool:
    if isinstance(one, Unfit):
        return PlannedTool(name=one.name, change="refused", errors=_errors(one))
    before = None if one.before is None else answers.tool_view(one.before)
    return PlannedTool(
        name=one.name,
        change=_change(one),
        before=before,
        version=one.version,
        declaration=one.declaration,
        lowered=() if before is None else lowered(before.declaration, one.declaration),
    )


def _change(one: Planned) -> Literal["new", "changed", "again", "unchanged"]:
    if not one.is_change:
        return "unchanged"
    if one.before is None:
        return "new"
    return "changed" if one.is_new else "again"


def _errors(unfit: Unfit) -> tuple[FieldError, ...]:
    return tuple(FieldError(path=refusal.path, message=refusal.reason) for refusal in unfit.refusals)


def _nothing_fits(outcome: NothingFits) -> Answer:
    errors = tuple(
        FieldError(path=pointer(("tools", one.name, *refusal.steps)), message=refusal.reason)
        for one in outcome.unfit
        for refusal in one.refusals
    )
    said = f"{errors[0].path}: {errors[0].message}. Nothing was applied."
    return problems.answer("invalid-request", said, errors=errors)


def _moved(outcome: Moved) -> Answer:
    held = (f"{name} is at version {version}" for name, version in outcome.held.items())
    return problems.answer("registry-changed", f"Since the plan, others have declared: {', '.join(held)}.")


ROUTES = (plan, apply, *of_a_tool_called("plan"), *of_a_tool_called("apply"))
