"""Bearer tokens: without one of them nothing answers but the health of the process and the documents."""

import hmac
from collections.abc import Sequence
from typing import Final

from litestar.types import HTTPScope

_OPEN: Final = ("/health", "/schema", "/problems")


class BearerTokens:
    """Compares in constant time with every token that is allowed; without tokens everybody is admitted."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens]

    def admit(self, scope: HTTPScope) -> bool:
        """Say whether a request may be served."""
        if not self._tokens or scope["path"].startswith(_OPEN):
            return True
        headers = dict(scope["headers"])
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        is_known = [hmac.compare_digest(token.strip(), known) for known in self._tokens]
        return scheme.lower() == b"bearer" and any(is_known)
