"""Bearer tokens: without one of them nothing below /v1 answers."""

import hmac
from collections.abc import Sequence

from litestar import Request
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from guard.web import problems
from guard.web.problems import ApiRequest


class BearerTokens(ASGIMiddleware):
    """Compares in constant time with every token that is allowed."""

    exclude_path_pattern = (r"^/health", r"^/schema", r"^/problems")

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens]

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Pass the request on, or answer 401."""
        headers = dict(scope["headers"])
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        is_known = [hmac.compare_digest(token.strip(), known) for known in self._tokens]
        if scheme.lower() == b"bearer" and any(is_known):
            await next_app(scope, receive, send)
            return
        response = problems.answer("unauthorized", "The request has no valid token.")
        request: ApiRequest = Request(scope)
        await response.to_asgi_response(app=None, request=request)(scope, receive, send)
