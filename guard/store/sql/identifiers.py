"""Ids that sort by the moment at which they were drawn."""

import secrets
from typing import Final
from uuid import UUID

from guard.core.effects import Instant

RANDOM_BITS: Final = 62


def ordered_uuid(at: Instant, random: int) -> UUID:
    """Return a UUIDv7 of the moment, its microseconds in the 12 bits below the milliseconds, and 62 random bits.

    RFC 9562, section 6.2, method 3.
    """
    milliseconds, microseconds = divmod(at, 1000)
    fraction = microseconds * 4096 // 1000
    return UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random % (1 << RANDOM_BITS))


def new_id(at: Instant) -> UUID:
    """Draw an id at a moment."""
    return ordered_uuid(at, secrets.randbits(RANDOM_BITS))
