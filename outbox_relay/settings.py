"""How a relay works: its bounds and paces. What is of one destination stands in that destination's own settings."""

from typing import Final

import msgspec

DEFAULT_CONCURRENCY: Final = 64
DEFAULT_HISTORY_DAYS: Final = 30


class RelaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much a relay has in flight, and how it ends.

    `concurrency` bounds what is in flight at all destinations together; `history_days` says how long it is known what
    was delivered; `drain_seconds` is how long sends under way may take once the relay is to stop, by default as long as
    the time-outs of their destinations.
    """

    concurrency: int = DEFAULT_CONCURRENCY
    history_days: int = DEFAULT_HISTORY_DAYS
    drain_seconds: float | None = None
    flush_seconds: float = 0.005
    flush_size: int = 100
    shortest_poll: float = 0.25
    longest_poll: float = 2.0
    overrun_seconds: float = 1.0
    """What a sink may need beyond its own time-out before it is given up."""
    refresh_seconds: float = 1.0
    """How often the destinations are read anew, and leases looked after that have run out."""
