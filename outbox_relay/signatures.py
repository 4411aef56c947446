"""Signatures of Standard Webhooks 1.0: what proves to a receiver who sent a message, and when.

A message is signed when it is sent, with every secret that is live then: a receiver that still has the old one
verifies it, and so does one that has the new.
"""

import base64
import binascii
import hmac
from collections.abc import Sequence
from typing import Final

from outbox_relay.sinks.base import SinkRefused

PREFIX: Final = "whsec_"
_LENGTHS: Final = range(24, 65)
_HOW: Final = "Make one with: echo whsec_$(openssl rand -base64 32)"


def signing_key(secret: str, name: str) -> bytes:
    """Return the key that a secret holds. Raises SinkRefused, which says the secret's name and never the secret."""
    if not secret.startswith(PREFIX):
        raise SinkRefused(f"The secret {name} signs webhooks, and so it begins with {PREFIX}. {_HOW}")
    try:
        key = base64.b64decode(_padded(secret.removeprefix(PREFIX)), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SinkRefused(f"The secret {name} is not {PREFIX} and then base64. {_HOW}") from error
    if len(key) not in _LENGTHS:
        raise SinkRefused(f"The secret {name} holds {len(key)} bytes; a signing secret holds 24 to 64. {_HOW}")
    return key


def signatures(keys: Sequence[bytes], identity: str, timestamp: str, body: bytes) -> str:
    """Return what `webhook-signature` says: a signature with each of the keys.

    `timestamp` is this try's, in whole seconds since 1970, as `webhook-timestamp` says it.
    """
    content = f"{identity}.{timestamp}.".encode() + body
    return " ".join(_signature(key, content) for key in keys)


def _signature(key: bytes, content: bytes) -> str:
    return "v1," + binascii.b2a_base64(hmac.digest(key, content, "sha256"), newline=False).decode()


def _padded(text: str) -> str:
    """Return base64 with the padding that some who hand out secrets leave away."""
    return text + "=" * (-len(text) % 4)
