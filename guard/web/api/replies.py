"""/v1/inbound/email and what came in by it: mail, kept once beside the run that it answers."""

import asyncio
from typing import Final

from litestar import Response, get, post
from litestar.params import FromPath

from guard.core.inbound_mail import Inbound, mail_of, mail_of_json
from guard.ports.replies import Reply, ReplyFilter
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.exchange import LARGE_BYTES, is_json
from guard.web.instants import rfc3339
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, use_cases
from guard.web.signed import Signed
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.replies import (
    INBOUND_PATH,
    MAX_INBOUND_BYTES,
    AttachmentView,
    InboundAnswer,
    InboundMail,
    ReplyPage,
    ReplyQuery,
    ReplyView,
    RunReplyQuery,
)

_MAIL: Final = "message/rfc822"


@post(
    INBOUND_PATH,
    operation_class=documented(
        "Take mail that came in, signed as Standard Webhooks say; JSON, or as it is (message/rfc822)",
        body=InboundMail,
        answers={200: InboundAnswer, 201: InboundAnswer},
        problems=(400, 403, 413, 415, 503),
    ),
    operation_id="take_mail",
    request_max_body_size=MAX_INBOUND_BYTES,
)
async def take_mail(request: ApiRequest) -> Response[bytes]:
    """Keep a mail; one that is kept already is answered as it was kept."""
    signed: Signed = request.app.state["signed"]
    if not signed.has_secrets:
        return problems.answer(
            "forbidden", "No mail is taken: the service has no TWICESHY_INBOUND_SECRETS. Set them, and sign with one."
        ).response()
    misfit = signed.misfit(request.headers, await request.body())
    if misfit is not None:
        return problems.answer("forbidden", f"The mail is not taken. {misfit}.").response()
    content_type = request.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() == _MAIL:
        mail = await _parsed(await request.body())
    elif is_json(content_type):
        mail = mail_of_json(await message(request, InboundMail))
    else:
        return problems.answer("unsupported-media-type", f"Mail is sent as {_MAIL}, or as JSON.").response()
    taken = await use_cases(request).replies.take(DEFAULT_TENANT, mail)
    reply = taken.reply
    answer = InboundAnswer(
        id=reply.id,
        state="unmatched" if reply.message is None else "matched",
        known=taken.was_known,
        run=reply.run,
        thread=reply.thread,
        message=reply.message,
    )
    return json_answer(answer, 200 if taken.was_known else 201).response()


@get(
    "/v1/runs/{run:str}/replies",
    operation_class=documented(
        "Mail that answers a run's, in the order in which it came, a page at a time",
        query=RunReplyQuery,
        answers={200: ReplyPage},
        problems=(400, 401, 404, 503),
    ),
    operation_id="replies_of_run",
)
async def of_run(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """List the replies to a run."""
    asked = query(request, RunReplyQuery)
    chosen = ReplyFilter(thread=asked.thread, oldest_first=True, limit=asked.limit, after=asked.after)
    try:
        found = await use_cases(request).replies.page_of_run(DEFAULT_TENANT, chosen, path_name(run))
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return problems.refused(found).response() if isinstance(found, Refused) else _page(*found)


@get(
    "/v1/replies",
    operation_class=documented(
        "All mail that came in, newest first, a page at a time",
        query=ReplyQuery,
        answers={200: ReplyPage},
        problems=(400, 401, 503),
    ),
    operation_id="list_replies",
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List replies."""
    asked = query(request, ReplyQuery)
    chosen = ReplyFilter(thread=asked.thread, is_matched=asked.matched, limit=asked.limit, after=asked.after)
    try:
        found = await use_cases(request).replies.page(DEFAULT_TENANT, chosen, asked.run)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return _page(*found)


async def _parsed(raw: bytes) -> Inbound:
    return await asyncio.to_thread(mail_of, raw) if len(raw) > LARGE_BYTES else mail_of(raw)


def _page(replies: list[Reply], cursor: str | None) -> Response[bytes]:
    return json_answer(ReplyPage(items=tuple(view(reply) for reply in replies), next=cursor)).response()


def view(reply: Reply) -> ReplyView:
    """Return a reply as it is told."""
    mail = reply.mail
    return ReplyView(
        id=reply.id,
        run=reply.run,
        thread=reply.thread,
        message=reply.message,
        received_at=rfc3339(reply.received_at),
        message_id=mail.message_id,
        from_=mail.from_,
        to=mail.to,
        cc=mail.cc,
        subject=mail.subject,
        date=mail.date,
        text=mail.text,
        html=mail.html,
        automatic=mail.automatic,
        cut=mail.cut,
        attachments=tuple(
            AttachmentView(name=one.name, content_type=one.content_type, size=one.size) for one in mail.attachments
        ),
    )


ROUTES: Final = (take_mail, of_run, listing)
"""The routes of this noun."""
