"""/v1/holds: place, commit, release, renew, read and list claims on resources."""

from typing import Annotated, Final
from uuid import UUID

import msgspec
from litestar import Response, get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath

from guard.core.effects import instant
from guard.ports.holds import HoldFilter
from guard.service.holds import HoldOutcome, Kept
from guard.web import problems
from guard.web.answer import json_answer
from guard.web.holds import hold_view
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_key, query, use_cases
from twiceshy_contract.holds import (
    ChangeHoldRequest,
    HoldPage,
    HoldState,
    HoldView,
    Moment,
    PlaceHoldRequest,
    RenewHoldRequest,
    ResourceName,
)
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import EffectKey

_CHANGE_PROBLEMS: Final = (400, 401, 403, 404, 409, 413, 415, 503)


@post(
    "/v1/holds",
    operation_class=documented(
        "Place a hold: claim a resource for a time",
        body=PlaceHoldRequest,
        answers={201: HoldView, 200: HoldView},
        problems=(400, 401, 403, 409, 413, 415, 422, 503),
    ),
)
async def place(request: ApiRequest) -> Response[bytes]:
    """Answer 201 with the hold, 200 where it was placed before, and 409 with the one that stands in its way."""
    asked = await message(request, PlaceHoldRequest)
    run = None if asked.run is None else await use_cases(request).runs.find(DEFAULT_TENANT, asked.run)
    if run is not None and run.fork is not None:
        detail = f"Run {asked.run!r} is a fork, and a hold claims a thing of the world."
        return problems.answer("forbidden", f"{detail} A tool with a `resource` claims it where it may run.").response()
    return _answer(await use_cases(request).holds.place(DEFAULT_TENANT, asked))


@post(
    "/v1/holds/{hold:str}/commit",
    operation_class=documented(
        "Commit a hold: no priority takes it over any more",
        body=ChangeHoldRequest,
        answers={200: HoldView},
        problems=_CHANGE_PROBLEMS,
    ),
)
async def commit(request: ApiRequest, hold: FromPath[str]) -> Response[bytes]:
    """Commit a hold; a committed one stays so."""
    asked = await message(request, ChangeHoldRequest)
    return _answer(await use_cases(request).holds.commit(DEFAULT_TENANT, _hold_id(hold), asked))


@post(
    "/v1/holds/{hold:str}/release",
    operation_class=documented(
        "Release a hold, committed or not: the time is free again",
        body=ChangeHoldRequest,
        answers={200: HoldView},
        problems=_CHANGE_PROBLEMS,
    ),
)
async def release(request: ApiRequest, hold: FromPath[str]) -> Response[bytes]:
    """Release a hold; one that claims nothing any more stays as it is."""
    asked = await message(request, ChangeHoldRequest)
    return _answer(await use_cases(request).holds.release(DEFAULT_TENANT, _hold_id(hold), asked))


@post(
    "/v1/holds/{hold:str}/renew",
    operation_class=documented(
        "Renew a hold that is not committed", body=RenewHoldRequest, answers={200: HoldView}, problems=_CHANGE_PROBLEMS
    ),
)
async def renew(request: ApiRequest, hold: FromPath[str]) -> Response[bytes]:
    """Keep a hold from running out."""
    asked = await message(request, RenewHoldRequest)
    return _answer(await use_cases(request).holds.renew(DEFAULT_TENANT, _hold_id(hold), asked))


@get(
    "/v1/holds/{hold:str}",
    operation_class=documented("One hold, as it stands", answers={200: HoldView}, problems=(401, 404, 503)),
)
async def show(request: ApiRequest, hold: FromPath[str]) -> Response[bytes]:
    """Read one hold."""
    found = await use_cases(request).holds.get(DEFAULT_TENANT, _hold_id(hold))
    if found is None:
        return problems.answer("not-found", f"There is no hold {hold}.").response()
    return json_answer(hold_view(found.hold, found.at)).response()


class HoldQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing. Shown are holds that overlap the time from `from` up to `to`."""

    resource: ResourceName | None = None
    state: HoldState | None = None
    key: EffectKey | None = None
    from_: Moment | None = msgspec.field(name="from", default=None)
    to: Moment | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


@get(
    "/v1/holds",
    operation_class=documented(
        "Holds by resource and start, a page at a time",
        query=HoldQuery,
        answers={200: HoldPage},
        problems=(400, 401, 404, 503),
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List holds."""
    asked = query(request, HoldQuery)
    chosen = HoldFilter(
        resource=asked.resource,
        state=asked.state,
        key=None if asked.key is None else path_key(asked.key),
        start=None if asked.from_ is None else instant(asked.from_),
        end=None if asked.to is None else instant(asked.to),
        limit=asked.limit,
        after=asked.after,
    )
    try:
        page = await use_cases(request).holds.page(DEFAULT_TENANT, chosen)
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    items = tuple(hold_view(hold, page.at) for hold in page.holds)
    return json_answer(HoldPage(items=items, next=page.next)).response()


def _answer(outcome: HoldOutcome) -> Response[bytes]:
    if not isinstance(outcome, Kept):
        return problems.refused(outcome).response()
    return json_answer(hold_view(outcome.hold, outcome.at), status=201 if outcome.is_new else 200).response()


def _hold_id(text: str) -> UUID:
    """Read the id of a path. Raises HTTPException 404 for what is not one."""
    try:
        return UUID(text)
    except ValueError as error:
        raise HTTPException(status_code=404) from error


ROUTES: Final = (place, commit, release, renew, show, listing)
