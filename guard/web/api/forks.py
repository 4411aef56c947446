"""/v1/runs/{run}/forks and /v1/policy/decisions: go on from a run, and what calls may do there."""

from typing import Final

import msgspec
from litestar import Response, post
from litestar.params import FromPath

from guard.service.outcomes import Refused
from guard.service.policy import Decided
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, use_cases
from guard.web.runs import run_view
from guard.web.wire import wire_key
from twiceshy_contract.effects import Outcome
from twiceshy_contract.forks import ForkRequest
from twiceshy_contract.policy import PolicyAnswer, PolicyRequest, PolicyRuling
from twiceshy_contract.runs import RunView


@post(
    "/v1/runs/{run:str}/forks",
    status_code=200,
    operation_class=documented(
        "Fork a run: go on from one of its steps, where nothing runs but what the terms name",
        body=ForkRequest,
        answers={200: RunView},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
)
async def fork(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Answer with the fork. The same name and terms again find it; other terms are refused."""
    asked = await message(request, ForkRequest)
    made = await use_cases(request).runs.fork(DEFAULT_TENANT, path_name(run), asked.fork, asked)
    if isinstance(made, Refused):
        return problems.refused(made).response()
    credential = await use_cases(request).credentials.of(made)
    return json_answer(msgspec.structs.replace(run_view(made), credential=credential)).response()


@post(
    "/v1/policy/decisions",
    status_code=200,
    operation_class=documented(
        "What calls may do in a fork, and the rule that decides; nothing is done",
        body=PolicyRequest,
        answers={200: PolicyAnswer},
        problems=(400, 401, 404, 413, 415, 503),
    ),
)
async def decide(request: ApiRequest) -> Response[bytes]:
    """Decide about each call as if those before it had been made."""
    asked = await message(request, PolicyRequest)
    decided = await use_cases(request).policy(DEFAULT_TENANT, asked)
    if isinstance(decided, Refused):
        return problems.refused(decided).response()
    return json_answer(PolicyAnswer(decisions=tuple(_ruling(one) for one in decided))).response()


def _ruling(decided: Decided) -> PolicyRuling:
    ruling = PolicyRuling(
        tool=decided.tool,
        decision=decided.ruled.decision,
        rule=decided.ruled.rule,
        tool_version=decided.named_by,
        rules_version=decided.held,
        class_=decided.effect_class,
    )
    judged = decided.judged
    if judged is None:
        return ruling
    origin = judged.found.origin
    if ruling.decision == "recorded" and origin is not None:
        key, outcome = wire_key(origin.intent.key), _outcome(origin.outcome)
        return msgspec.structs.replace(ruling, provenance="recorded", origin=key, outcome=outcome)
    if ruling.rule == "injected":
        answer = None if judged.pause is None else judged.pause.answer
        given = None if answer is None else _outcome(answer.outcome)
        return msgspec.structs.replace(ruling, provenance="injected", outcome=given)
    if ruling.decision == "stub":
        return msgspec.structs.replace(ruling, provenance="simulator", outcome=_outcome(judged.simulated))
    return ruling


def _outcome(text: bytes | None) -> Outcome | None:
    return None if text is None else msgspec.json.decode(text, type=Outcome)


ROUTES: Final = (fork, decide)
