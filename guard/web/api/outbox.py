"""/v1/outbox: stage, and what operators do with what was staged: read, list, send again, take back."""

from typing import Final
from uuid import UUID

import msgspec
from litestar import Response, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from guard.core.effects import Key
from guard.ports.outbox import MessageFilter
from guard.service.outbox import no_message
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import Answer, json_answer
from guard.web.exchange import Exchange
from guard.web.openapi import documented
from guard.web.outbox_answers import message_summary, message_view, staged
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, business_key, message, query, speaker, use_cases
from guard.web.verb import Verb
from twiceshy_contract.effects import AwaitAnswer, ReplayAnswer, StubAnswer
from twiceshy_contract.outbox import (
    CancelMessageRequest,
    MessagePage,
    MessageSummary,
    MessageView,
    OutboxQuery,
    RedriveAnswer,
    RedriveRequest,
    RenderAnswer,
    StagedAnswer,
    StageRequest,
)
from twiceshy_contract.refusals import Refusal


async def _stage(exchange: Exchange, asked: StageRequest, _key: Key) -> Answer:
    """Stage as a begin begins: what a recorded run brings of its log is kept first."""
    headers = exchange.idempotency_keys
    if headers:
        asked = msgspec.structs.replace(asked, business_key=business_key(headers, asked.business_key))
    if asked.epoch is None:
        return staged(await exchange.use_cases.stage(DEFAULT_TENANT, asked))
    kept = await exchange.use_cases.recording.bring(DEFAULT_TENANT, asked, is_large=exchange.is_large)
    if isinstance(kept, Refused):
        return problems.refused(kept)
    return staged(await exchange.use_cases.stage(DEFAULT_TENANT, asked)).with_next_seq(kept.next_seq)


VERBS: Final = (
    Verb(
        path="/v1/outbox",
        body=StageRequest,
        do=_stage,
        also=("GET",),
        begins=True,
        operation=documented(
            "Stage: begin and commit in one; the messages are staged under the call's key and will be delivered",
            body=StageRequest,
            answers={201: StagedAnswer, 200: (ReplayAnswer, StubAnswer, RenderAnswer), 202: AwaitAnswer},
            problems=(400, 401, 403, 404, 409, 410, 413, 415, 422, 503),
        ),
        operation_id="stage",
    ),
)
"""What is served without the framework's routes."""


@get(
    "/v1/outbox",
    operation_class=documented(
        "Messages, newest first, a page at a time; without a state, all that are not over",
        query=OutboxQuery,
        answers={200: MessagePage},
        problems=(400, 401, 503),
    ),
    operation_id="list_messages",
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List messages."""
    asked = query(request, OutboxQuery)
    chosen = MessageFilter(
        state=asked.state, destination=asked.destination, run=asked.run, limit=asked.limit, after=asked.after
    )
    try:
        standing, cursor = await use_cases(request).outbox.page(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(MessagePage(items=tuple(map(message_summary, standing)), next=cursor)).response()


@get(
    "/v1/outbox/{id:str}",
    operation_class=documented(
        "One message, with its bytes and the tries that failed", answers={200: MessageView}, problems=(401, 404, 503)
    ),
    operation_id="show_message",
)
async def show(request: ApiRequest, id: FromPath[str]) -> Response[bytes]:  # noqa: A002 - the path's own word
    """Read one message, as it waits or as its newest epoch ended."""
    named = _id_of(id)
    found = await use_cases(request).outbox.get(DEFAULT_TENANT, named)
    return (problems.refused(no_message(named)) if found is None else json_answer(message_view(found))).response()


@post(
    "/v1/outbox/redrive",
    operation_class=documented(
        "Redrive: messages are sent again, as a `retry` under their identity or `anew` as a second effect",
        body=RedriveRequest,
        answers={200: RedriveAnswer},
        problems=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
    operation_id="redrive_messages",
)
async def redrive(request: ApiRequest) -> Response[bytes]:
    """Send one message again, or all of a state."""
    asked = await message(request, RedriveRequest)
    by = speaker(request, asked.by, "Messages would be sent again, perhaps as second effects.")
    if isinstance(by, Answer):
        return by.response()
    asked = msgspec.structs.replace(asked, by=by)
    outcome = await use_cases(request).outbox.redrive(DEFAULT_TENANT, asked)
    if isinstance(outcome, Refused):
        return problems.refused(outcome).response()
    told = RedriveAnswer(redriven=outcome.count, left=outcome.left, reasons=outcome.reasons)
    return json_answer(told).response()


@post(
    "/v1/outbox/{id:str}/cancel",
    operation_class=documented(
        "Cancel: a message that was not sent is taken back",
        body=CancelMessageRequest,
        answers={200: MessageSummary},
        problems=(400, 401, 403, 404, 409, 413, 415, 503),
    ),
    operation_id="cancel_message",
)
async def cancel(request: ApiRequest, id: FromPath[str]) -> Response[bytes]:  # noqa: A002 - the path's own word
    """Take a message back; one that was taken back stays so."""
    named, asked = _id_of(id), await message(request, CancelMessageRequest)
    by = speaker(request, asked.by, f"Message {named} would be taken back.")
    if isinstance(by, Answer):
        return by.response()
    asked = msgspec.structs.replace(asked, by=by)
    outcome = await use_cases(request).outbox.cancel(DEFAULT_TENANT, named, asked)
    if isinstance(outcome, Refused):
        return problems.refused(outcome).response()
    return json_answer(message_summary(outcome)).response()


def _id_of(text: str) -> UUID:
    """Read the id of a path. Raises HTTPException 404 for what is not one."""
    try:
        return UUID(text)
    except ValueError as error:
        raise HTTPException(status_code=404) from error


ROUTES: Final = (listing, show, redrive, cancel)
