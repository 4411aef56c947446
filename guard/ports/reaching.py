"""Whether a destination can be reached. The libraries that reach it are the relay's, so the composition root gives one.

The service itself sends nothing: it asks this port, and where it was given none it says so.
"""

from typing import Protocol

import msgspec

from guard.core.effects import Duration
from twiceshy_contract.destinations import Destination


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen: whether it can be reached, in words for an operator, and how long it took."""

    ok: bool
    detail: str
    took: Duration


class Reaching(Protocol):
    """Knocks at a destination from this process."""

    async def __call__(self, name: str, settings: Destination) -> Reached:
        """Reach a destination without delivering anything. Raises nothing: what goes wrong is what was seen."""
