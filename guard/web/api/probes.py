"""/v1/probes: effects in doubt, for workers that can find out what became of them."""

from typing import Final

from litestar import Response, post

from guard.core.arguments import arguments_of
from guard.core.keys import downstream_key
from guard.service.claims import Doubtful
from guard.web.answer import json_answer
from guard.web.instants import rfc3339, rfc3339_or_none, seconds_between
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.probes import ClaimProbesRequest, DoubtfulEffect, DoubtfulEffects


@post(
    "/v1/probes/claims",
    operation_class=documented(
        "Claim effects in doubt, to find out at their providers what became of them",
        body=ClaimProbesRequest,
        answers={200: DoubtfulEffects},
        problems=(400, 401, 413, 415, 503),
    ),
)
async def claim(request: ApiRequest) -> Response[bytes]:
    """Hand out what is in doubt, each effect to one worker at a time."""
    asked = await message(request, ClaimProbesRequest)
    found = await use_cases(request).claims(DEFAULT_TENANT, asked)
    return json_answer(DoubtfulEffects(items=tuple(_view(doubtful) for doubtful in found))).response()


def _view(doubtful: Doubtful) -> DoubtfulEffect:
    effect, settles_at = doubtful.effect, doubtful.settles_at
    intent = effect.intent
    return DoubtfulEffect(
        key=wire_key(intent.key),
        tool=intent.tool,
        run=intent.run,
        step=intent.step,
        arguments=arguments_of(intent.arguments if effect.edited is None else effect.edited),
        fence=effect.life.fence,
        downstream_key=downstream_key(intent.key, effect.life.epoch),
        as_of=rfc3339(doubtful.at),
        settles_at=rfc3339_or_none(settles_at),
        settles_in_seconds=0.0 if settles_at is None else seconds_between(doubtful.at, settles_at),
        claimed_until=rfc3339(doubtful.claim.until),
        tries=doubtful.claim.tries,
    )


ROUTES: Final = (claim,)
