"""/v1/runs/{run}/events and /v1/blobs: the logs of runs, and what they hold by content."""

from typing import Annotated, Final

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath

from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import Answer, json_answer
from guard.web.exchange import LARGE_BYTES
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, use_cases
from twiceshy_contract.events import (
    MAX_APPEND_BYTES,
    MAX_EVENTS,
    AppendAnswer,
    AppendRequest,
    BlobsAnswer,
    EventPage,
    ReadBlobsRequest,
)


@post(
    "/v1/runs/{run:str}/events",
    operation_class=documented(
        "Append to a run's log, as its writer",
        body=AppendRequest,
        answers={200: AppendAnswer},
        problems=(400, 401, 404, 409, 413, 415, 503),
    ),
    operation_id="append_events",
    request_max_body_size=MAX_APPEND_BYTES,
)
async def append(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Append events; sending them again is the same."""
    name, asked = path_name(run), await message(request, AppendRequest)
    is_large = len(await request.body()) > LARGE_BYTES
    kept = await use_cases(request).recording.append(DEFAULT_TENANT, name, asked, is_large=is_large)
    if isinstance(kept, Refused):
        return problems.refused(kept).response()
    return json_answer(AppendAnswer(run=name, next_seq=kept.next_seq)).response()


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a log: the events behind the one that `after` numbers."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_EVENTS)] = MAX_EVENTS


@get(
    "/v1/runs/{run:str}/events",
    operation_class=documented(
        "A run's log in its order, a page at a time",
        query=LogQuery,
        answers={200: EventPage},
        problems=(400, 401, 404, 503),
    ),
    operation_id="read_events",
)
async def read(request: ApiRequest, run: FromPath[str]) -> Response[bytes]:
    """Read events. A page ends at its limit, or after about 4 MiB."""
    asked = query(request, LogQuery)
    page = await use_cases(request).recording.page(DEFAULT_TENANT, path_name(run), asked.after, asked.limit)
    if isinstance(page, Refused):
        return problems.refused(page).response()
    end = b"null" if page.next is None else b"%d" % page.next
    return Answer(200, b'{"items":[' + b",".join(page.items) + b'],"next":' + end + b"}").response()


@post(
    "/v1/blobs/read",
    operation_class=documented(
        "Read what logs hold by content",
        body=ReadBlobsRequest,
        answers={200: BlobsAnswer},
        problems=(400, 401, 413, 415, 503),
    ),
    operation_id="read_blobs",
)
async def read_blobs(request: ApiRequest) -> Response[bytes]:
    """Read texts: about 4 MiB of them, but at least one; the digests of the others are told."""
    asked = await message(request, ReadBlobsRequest)
    found = await use_cases(request).recording.blobs(DEFAULT_TENANT, asked.digests)
    texts = {digest: text.decode() for digest, text in found.texts.items()}
    return json_answer(BlobsAnswer(blobs=texts, left=found.left)).response()


ROUTES: Final = (append, read, read_blobs)
