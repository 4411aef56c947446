"""/v1/batch: several begins and reports in one request. They share transactions; none fails another."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final, cast

from guard.core.effects import Key
from guard.web import problems
from guard.web.answer import Answer
from guard.web.exchange import Exchange
from guard.web.fork_access import refusal
from guard.web.openapi import documented
from guard.web.verb import Verb, Verbs
from twiceshy_contract.batch import BatchAnswer, BatchedRequest, BatchRequest
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import KEY_HEADER, convert

MAX_ANSWER_BYTES: Final = 16 * 2**20
"""From how many bytes on a batch answers no further replay."""


def batch_of(verbs: Verbs) -> Verb:
    """Return the verb that does several of these at once."""

    async def do(exchange: Exchange, asked: BatchRequest, _key: Key) -> Answer:
        if exchange.idempotency_keys:
            raise Refusal(f"a batch has no {KEY_HEADER}; give each begin its business_key", ("business_key",))
        newer = exchange.is_newer
        doing = [_one(verbs, exchange, one, newer=newer) for one in asked.requests]
        answers = [await doing[0]] if len(doing) == 1 else await asyncio.gather(*doing)
        answers = _within_bound(answers, asked.requests)
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
            return problems.answer(
                "not-found", f"{one.path} is no begin, commit, fail or renew of an effect, and stages nothing."
            )
        message = convert(cast("JsonValue", one.body), found.verb.body, newer=newer)
        if isinstance(message, BeginRequest) and message.wait_seconds:
            return problems.of_error(one.path, Refusal("a begin in a batch does not wait", ("wait_seconds",)))
        refused = None if exchange.fork is None else await refusal(exchange, one.path, message)
        return refused or await found.verb.do(exchange, message, found.key)
    except Exception as error:  # noqa: BLE001 - whatever one request meets is its own answer
        return problems.of_error(one.path, error)


def _within_bound(answers: Sequence[Answer], requests: Sequence[BatchedRequest]) -> list[Answer]:
    """Let replays beyond the bound be asked for alone; nothing is lost by that, and no answer grows without end."""
    size, bounded = 0, []
    for answer, request in zip(answers, requests, strict=True):
        size += len(answer.body)
        is_beyond = size > MAX_ANSWER_BYTES and answer.said == "replay"
        bounded.append(problems.answer("too-large", f"{request.path}: ask for this alone.") if is_beyond else answer)
    return bounded


def _written(answer: Answer) -> bytes:
    return b'{"status":%d,"body":%b}' % (answer.status, answer.body)
