"""/v1/status: what the service says of itself, for `twiceshy doctor` and for whoever watches it."""

from litestar import Response, get

from guard.core.effects import SECOND
from guard.ports.accelerator import Reached
from guard.ports.description import Description
from guard.service.status import Standing
from guard.web.answer import json_answer
from guard.web.instants import rfc3339
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, use_cases
from twiceshy_contract.status import DatabaseStatus, DatabaseView, EffectTally, OutboxTally, RedisView, StatusView
from twiceshy_contract.wire import CONTRACT_VERSION


@get(
    "/v1/status",
    operation_class=documented(
        "Status: versions, clock, database, and what waits to be settled",
        answers={200: StatusView},
        problems=(401, 503),
    ),
)
async def show(request: ApiRequest) -> Response[bytes]:
    """Describe the service. The clock is read last, so that it is as fresh as the answer."""
    standing = await use_cases(request).status(DEFAULT_TENANT)
    seen = database_status(standing)
    return json_answer(
        StatusView(
            version=request.app.openapi_schema.info.version,
            contract=CONTRACT_VERSION,
            now=seen.now,
            lanes=standing.lanes,
            database=seen.database,
            effects=seen.effects,
            outbox=seen.outbox,
            redis=_redis(standing.accelerator),
        )
    ).response()


def database_status(standing: Standing) -> DatabaseStatus:
    """Return what is said of the database alone."""
    return DatabaseStatus(
        now=rfc3339(standing.database.now),
        database=_database(standing.database),
        effects=EffectTally(in_doubt=standing.effects.in_doubt, executing=standing.effects.executing),
        outbox=OutboxTally(
            pending=standing.outbox.pending,
            dead=standing.outbox.dead,
            unknown=standing.outbox.unknown,
            parked=standing.outbox.parked,
            oldest_pending_seconds=standing.outbox.oldest / SECOND,
        ),
    )


def _database(described: Description) -> DatabaseView:
    return DatabaseView(
        kind=described.kind,
        version=described.version,
        revision=described.revision,
        needed=described.needed,
        is_current=described.is_current,
        durability=dict(described.durability),
        is_durable=described.is_durable,
        free_bytes=described.free_bytes,
    )


def _redis(reached: Reached | None) -> RedisView | None:
    if reached is None:
        return None
    return RedisView(address=reached.address, is_reached=reached.is_reached, why=reached.why or None)


ROUTES = (show,)
