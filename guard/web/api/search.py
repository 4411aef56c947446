"""/v1/events: calls found over the logs of all runs."""

from typing import Final

import msgspec
from litestar import Response, get

from guard.ports.search import FoundCall
from guard.web.answer import json_answer
from guard.web.instants import instant_of
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, query, use_cases
from twiceshy_contract.events import EventQuery, FoundEvent, FoundEvents, Intent
from twiceshy_contract.refusals import Refusal

_intents: Final = msgspec.json.Decoder(Intent)


@get(
    "/v1/events",
    operation_class=documented(
        "Calls of all runs, by what is indexed of them, newest runs first, a page at a time",
        query=EventQuery,
        answers={200: FoundEvents},
        problems=(400, 401, 503),
    ),
    operation_id="search_events",
)
async def search(request: ApiRequest) -> Response[bytes]:
    """Find calls. One of `name`, `run` and `workflow` must be said."""
    asked = query(request, EventQuery)
    since = None if asked.since is None else instant_of(asked.since, "since")
    try:
        calls, cursor = await use_cases(request).search.calls(DEFAULT_TENANT, asked, since)
    except Refusal:
        raise
    except ValueError as error:
        raise Refusal("this is not the `next` of a page", ("after",)) from error
    return json_answer(FoundEvents(items=tuple(_found(call) for call in calls), next=cursor)).response()


def _found(call: FoundCall) -> FoundEvent:
    arguments = _intents.decode(call.intent).arguments
    return FoundEvent(
        run=call.run,
        seq=call.seq,
        at=call.at,
        kind=call.kind,
        name=call.name,
        arguments=None if arguments is msgspec.UNSET else arguments,
        outcome=call.outcome,
        empty=call.empty,
    )


ROUTES: Final = (search,)
