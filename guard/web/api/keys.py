"""/v1/keys: how a call canonicalises, without any effect."""

import msgspec
from litestar import Response, post

from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, business_key, message, use_cases
from guard.web.wire import wire_key
from twiceshy_contract.keys import KeyRequest, KeyView
from twiceshy_contract.wire import KEY_HEADER


@post(
    "/v1/keys",
    operation_class=documented(
        "Preview: how a call is understood and which key it names",
        body=KeyRequest,
        answers={200: KeyView},
        problems=(400, 401, 413, 415, 503),
    ),
)
async def preview(request: ApiRequest) -> Response[bytes]:
    """Understand a call; nothing is stored."""
    asked = await message(request, KeyRequest)
    asked = msgspec.structs.replace(
        asked, business_key=business_key(request.headers.getall(KEY_HEADER, []), asked.business_key)
    )
    seen = await use_cases(request).preview(DEFAULT_TENANT, asked)
    return json_answer(
        KeyView(
            key=None if seen.key is None else wire_key(seen.key),
            rule=seen.rule,
            tool=seen.tool.name,
            tool_version=seen.tool.version,
            identity=seen.reading.identity.decode(),
            identity_digest=seen.reading.identity_digest.hex(),
            content=seen.reading.content.decode(),
            arguments_digest=seen.reading.arguments_digest.hex(),
        )
    ).response()


ROUTES = (preview,)
