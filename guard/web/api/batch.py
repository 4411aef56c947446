"""/v1/batch: several begins and reports in one request. They share transactions; none fails another."""

import asyncio
from collections import Counter
from typing import cast

from guard.core.effects import Key
from guard.web import problems
from guard.web.answer import Answer
from guard.web.exchange import Exchange
from guard.web.openapi import documented
from guard.web.verb import Verb, Verbs
from twiceshy_contract.batch import BatchAnswer, BatchedRequest, BatchRequest
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import KEY_HEADER, convert


def batch_of(verbs: Verbs) -> Verb:
    """Return the verb that does several of these at once."""

    async def do(exchange: Exchange, asked: BatchRequest, _key: Key) -> Answer:
        if exchange.idempotency_keys:
            raise Refusal(f"a batch has no {KEY_HEADER}; give each begin its business_key", ("business_key",))
        newer = exchange.is_newer
        doing = [_one(verbs, exchange, one, newer=newer) for one in asked.requests]
        answers = [await doing[0]] if len(doing) == 1 else await asyncio.gather(*doing)
        exchange.facts["batch"] = len(answers)
        exchange.facts["answers"] = dict(Counter(answer.said for answer in answers))
        return Answer(200, b'{"answers":[' + b",".join(map(_written, answers)) + b"]}", "batch")

    return Verb(
        path="/v1/batch",
        body=BatchRequest,
        do=do,
        operation=documented(
            "Batch: several begins, commits, failures and renewals in one request",
            body=BatchRequest,
            answers={200: BatchAnswer},
            problems=(400, 401, 413, 415),
        ),
    )


async def _one(verbs: Verbs, exchange: Exchange, one: BatchedRequest, *, newer: bool) -> Answer:
    try:
        found = verbs.find(one.path)
        if found is None or not found.is_key:
            return problems.answer("not-found", f"{one.path} is no begin, commit, fail or renew of an effect.")
        message = convert(cast("JsonValue", one.body), found.verb.body, newer=newer)
        if isinstance(message, BeginRequest) and message.wait_seconds:
            return problems.of_error(one.path, Refusal("a begin in a batch does not wait", ("wait_seconds",)))
        return await found.verb.do(exchange, message, found.key)
    except Exception as error:  # noqa: BLE001 - whatever one request meets is its own answer
        return problems.of_error(one.path, error)


def _written(answer: Answer) -> bytes:
    return b'{"status":%d,"body":%b}' % (answer.status, answer.body)
