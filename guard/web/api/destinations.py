"""/v1/destinations: declare where messages may go, read, pause, resume, remove, reach."""

from itertools import islice
from typing import Final

import msgspec
from litestar import Response, get, post, put
from litestar.params import FromPath

from guard.core.destinations import check_destination
from guard.core.effects import SECOND
from guard.ports.outbox import DestinationRecord
from guard.service.destinations import Act
from guard.service.outcomes import Refused
from guard.web import problems
from guard.web.answer import Answer, json_answer
from guard.web.openapi import documented
from guard.web.outbox_answers import destination_view, queue_view
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, query, speaker, use_cases
from twiceshy_contract.destinations import (
    ConnectivityView,
    DeclareQuery,
    Destination,
    DestinationAct,
    DestinationCheck,
    DestinationList,
    DestinationName,
    DestinationView,
    KafkaDestination,
    LogDestination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
    SmtpDestination,
    WebhookDestination,
)
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.variables import did_you_mean

_KINDS: Final[dict[str, type[Destination]]] = {
    "webhook": WebhookDestination,
    "smtp": SmtpDestination,
    "redis": RedisDestination,
    "nats": NatsDestination,
    "kafka": KafkaDestination,
    "rabbitmq": RabbitMqDestination,
    "log": LogDestination,
}
_MOST_NAMES: Final = 100
"""Names that no destination has are made up by whoever stages: so many are listed at the most."""
_ACT_PROBLEMS: Final = (400, 401, 403, 404, 413, 415, 503)


class _Kind(msgspec.Struct):
    """What every destination's settings say: of which kind it is."""

    kind: str


@put(
    "/v1/destinations/{name:str}",
    operation_class=documented(
        "Declare a destination; equal settings are no new version, and a removed one is active again",
        body=tuple(_KINDS.values()),
        query=DeclareQuery,
        answers={200: (DestinationView, DestinationCheck)},
        problems=(400, 401, 403, 413, 415, 503),
    ),
    operation_id="declare_destination",
)
async def declare(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Declare it. Where approvers are known, their token does: the service sends requests, and secrets, by it."""
    is_dry = query(request, DeclareQuery).dry_run
    kind = (await message(request, _Kind)).kind
    if kind not in _KINDS:
        near = did_you_mean(kind, _KINDS).rstrip(".?")
        raise Refusal(f"there is no kind {kind!r} of destination; there are {', '.join(_KINDS)}{near}", ("kind",))
    settings = await message(request, _KINDS[kind])
    try:
        msgspec.convert(name, DestinationName)
    except msgspec.ValidationError as error:
        raise Refusal(f"the destination's name in the path is not one: {error}") from error
    by = speaker(request, None, f"The relay would send messages and secrets to {name!r}.")
    if isinstance(by, Answer):
        return by.response()
    if is_dry:
        check_destination(settings)
        return json_answer(DestinationCheck(name=name, settings=settings)).response()
    declared = await use_cases(request).destinations.declare(DEFAULT_TENANT, name, settings)
    return _view(declared.record).response()


@get(
    "/v1/destinations",
    operation_class=documented(
        "All destinations, by name, and how each stands", answers={200: DestinationList}, problems=(401, 503)
    ),
    operation_id="list_destinations",
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List those that are not removed, and what waits under other names."""
    destinations = use_cases(request).destinations
    records = await destinations.all(DEFAULT_TENANT)
    undeclared = (await destinations.undeclared(DEFAULT_TENANT)).items()
    views = {name: queue_view(backlog) for name, backlog in islice(undeclared, _MOST_NAMES)}
    return json_answer(DestinationList(items=tuple(map(destination_view, records)), undeclared=views)).response()


@get(
    "/v1/destinations/{name:str}",
    operation_class=documented(
        "One destination, and how it stands", answers={200: DestinationView}, problems=(401, 404, 503)
    ),
    operation_id="show_destination",
)
async def show(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Read one that is not removed."""
    return _view(await use_cases(request).destinations.get(DEFAULT_TENANT, path_name(name))).response()


@post(
    "/v1/destinations/{name:str}/pause",
    operation_class=documented(
        "Pause a destination: what is staged for it waits",
        body=DestinationAct,
        answers={200: DestinationView},
        problems=_ACT_PROBLEMS,
    ),
    operation_id="pause_destination",
)
async def pause(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Pause it."""
    return await _act(request, name, "pause")


@post(
    "/v1/destinations/{name:str}/resume",
    operation_class=documented(
        "Resume a destination that is paused or disabled; its breaker is closed",
        body=DestinationAct,
        answers={200: DestinationView},
        problems=_ACT_PROBLEMS,
    ),
    operation_id="resume_destination",
)
async def resume(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Resume it."""
    return await _act(request, name, "resume")


@post(
    "/v1/destinations/{name:str}/remove",
    operation_class=documented(
        "Remove a destination: what waits for it is parked",
        body=DestinationAct,
        answers={200: DestinationView},
        problems=_ACT_PROBLEMS,
    ),
    operation_id="remove_destination",
)
async def remove(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Remove it; its name can be declared again."""
    return await _act(request, name, "remove")


@post(
    "/v1/destinations/{name:str}/check",
    operation_class=documented(
        "Reach a destination from the service, without delivering anything",
        answers={200: ConnectivityView},
        problems=(401, 403, 404, 503),
    ),
    operation_id="check_destination",
)
async def check(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Reach it: what is seen from here need not be what a relay on another host sees."""
    named = path_name(name)
    by = speaker(request, None, f"Destination {named!r} would be asked with its secrets.")
    if isinstance(by, Answer):
        return by.response()
    seen = await use_cases(request).destinations.check(DEFAULT_TENANT, named)
    if isinstance(seen, Refused):
        return problems.refused(seen).response()
    view = ConnectivityView(ok=seen.ok, detail=seen.detail, milliseconds=round(seen.took / SECOND * 1000, 3))
    return json_answer(view).response()


async def _act(request: ApiRequest, name: str, act: Act) -> Response[bytes]:
    named, asked = path_name(name), await message(request, DestinationAct)
    by = speaker(request, asked.by, f"Destination {named!r} would be changed ({act}).")
    if isinstance(by, Answer):
        return by.response()
    asked = msgspec.structs.replace(asked, by=by)
    return _view(await use_cases(request).destinations.act(DEFAULT_TENANT, named, act, asked)).response()


def _view(outcome: DestinationRecord | Refused) -> Answer:
    if isinstance(outcome, Refused):
        return problems.refused(outcome)
    return json_answer(destination_view(outcome))


ROUTES: Final = (declare, listing, show, pause, resume, remove, check)
