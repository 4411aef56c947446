"""The hot verbs: begin, commit, fail, renew; served in front of the framework's routes, alone or in a batch."""

from typing import Final

import msgspec

from guard.core.effects import Key
from guard.service.outcomes import Refused
from guard.web import answers, problems
from guard.web.answer import Answer
from guard.web.exchange import Exchange
from guard.web.openapi import documented
from guard.web.requests import DEFAULT_TENANT, business_key
from guard.web.verb import BEGIN_PATH, Verb
from twiceshy_contract.effects import (
    AwaitAnswer,
    BeginRequest,
    CommitRequest,
    EffectAnswer,
    ExecuteAnswer,
    FailRequest,
    RenewRequest,
    ReplayAnswer,
    StubAnswer,
)


async def _begin(exchange: Exchange, asked: BeginRequest, _key: Key) -> Answer:
    headers = exchange.idempotency_keys
    if headers:
        asked = msgspec.structs.replace(asked, business_key=business_key(headers, asked.business_key))
    if asked.epoch is not None:
        return await _begin_recorded(exchange, asked)
    return answers.begun(await exchange.use_cases.begin(DEFAULT_TENANT, asked))


async def _begin_recorded(exchange: Exchange, asked: BeginRequest) -> Answer:
    """Keep the events first, whatever becomes of the begin; nothing begins for a writer that was taken over."""
    kept = await exchange.use_cases.recording.bring(DEFAULT_TENANT, asked, is_large=exchange.is_large)
    if isinstance(kept, Refused):
        return problems.refused(kept)
    answer = answers.begun(await exchange.use_cases.begin(DEFAULT_TENANT, asked))
    return answer.with_next_seq(kept.next_seq)


async def _commit(exchange: Exchange, asked: CommitRequest, key: Key) -> Answer:
    return _counted(exchange, "commit", answers.reported(await exchange.use_cases.commit(DEFAULT_TENANT, key, asked)))


async def _fail(exchange: Exchange, asked: FailRequest, key: Key) -> Answer:
    return _counted(exchange, "fail", answers.reported(await exchange.use_cases.fail(DEFAULT_TENANT, key, asked)))


async def _renew(exchange: Exchange, asked: RenewRequest, key: Key) -> Answer:
    return _counted(exchange, "renew", answers.reported(await exchange.use_cases.renew(DEFAULT_TENANT, key, asked)))


def _counted(exchange: Exchange, verb: str, answer: Answer) -> Answer:
    exchange.use_cases.measures.reported(verb, answer.said)
    return answer


_REPORT_PROBLEMS: Final = (400, 401, 404, 409, 410, 413, 415, 503)

VERBS: Final = (
    Verb(
        path=BEGIN_PATH,
        body=BeginRequest,
        do=_begin,
        also=("GET",),
        begins=True,
        operation=documented(
            "Begin: may this call run?",
            body=BeginRequest,
            answers={201: ExecuteAnswer, 200: (ReplayAnswer, StubAnswer), 202: AwaitAnswer},
            problems=(400, 401, 403, 404, 409, 410, 413, 415, 422, 503),
        ),
        operation_id="begin",
    ),
    Verb(
        path="/v1/effects/{key}/commit",
        body=CommitRequest,
        do=_commit,
        operation=documented(
            "Commit: the tool has run",
            body=CommitRequest,
            answers={200: EffectAnswer},
            problems=_REPORT_PROBLEMS,
        ),
    ),
    Verb(
        path="/v1/effects/{key}/fail",
        body=FailRequest,
        do=_fail,
        operation=documented(
            "Fail: the tool has not run to its end",
            body=FailRequest,
            answers={200: EffectAnswer},
            problems=_REPORT_PROBLEMS,
        ),
    ),
    Verb(
        path="/v1/effects/{key}/renew",
        body=RenewRequest,
        do=_renew,
        operation=documented(
            "Renew: the tool is still running",
            body=RenewRequest,
            answers={200: EffectAnswer},
            problems=_REPORT_PROBLEMS,
        ),
    ),
)
"""The hot verbs, which the front serves without the framework's routes."""
