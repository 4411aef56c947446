"""Requests that are signed as Standard Webhooks 1.0 say: who signs with a live secret, and lately, is believed."""

import base64
import binascii
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

WINDOW_SECONDS: Final = 300
"""How far the time of a signature may lie from the clock of this machine."""
_VERSION: Final = "v1"
_MOST_SIGNATURES: Final = 20
_MOST_TEXT: Final = 500


class Signed:
    """Judges signatures by several live secrets, so that one can be replaced by another without a pause."""

    def __init__(self, secrets: Sequence[bytes] = (), clock: Callable[[], float] = time.time) -> None:
        self._secrets = tuple(secrets)
        self._clock = clock

    @property
    def has_secrets(self) -> bool:
        """Whether anybody can sign at all."""
        return bool(self._secrets)

    def misfit(self, headers: Mapping[str, str], body: bytes) -> str | None:
        """Say why a request is not believed; None: it is."""
        identity, at, signed = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
        if not (identity and at and signed):
            return "It is not signed: send `webhook-id`, `webhook-timestamp` and `webhook-signature`"
        if not at.isdecimal() or len(at) > 12 or len(identity) > _MOST_TEXT:
            return "Its `webhook-timestamp` is no number of seconds, or its `webhook-id` is too long"
        if abs(self._clock() - int(at)) > WINDOW_SECONDS:
            return f"It was signed more than {WINDOW_SECONDS} seconds from now, by the clock of the service"
        content = f"{identity}.{at}.".encode("latin-1", "replace") + body
        expected = [hmac.digest(secret, content, "sha256") for secret in self._secrets]
        given = [found for word in signed.split(" ")[:_MOST_SIGNATURES] if (found := _signature(word)) is not None]
        matches = [hmac.compare_digest(one, other) for one in expected for other in given]
        return None if any(matches) else "No secret of the service made its signature"


def _signature(word: str) -> bytes | None:
    version, _, text = word.partition(",")
    if version != _VERSION:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
