"""How long the record of a final effect is kept. What is not final is kept for ever."""

from typing import Final

from guard.core.effects import Duration, seconds
from twiceshy_contract.tools import ToolDeclaration

KEPT_ALONE: Final = seconds(72 * 3600)
"""From the end of an effect that has no run."""
KEPT_IN_RUN: Final = seconds(30 * 86_400)
"""From the end of an effect's run; an open run keeps everything."""
KEPT_HOLDS: Final = seconds(30 * 86_400)
"""From the end of a hold, or of the time that is booked by it."""

RECALLED_AT_MOST: Final = seconds(86_400)
"""From the end of an effect: how long what is kept of it beside the database may be believed, whatever is set."""


def kept_for(declared: ToolDeclaration, *, has_run: bool) -> Duration:
    """Return how long the final effects of a tool are kept after their run, or without one after they, have ended."""
    if declared.retention_seconds is not None:
        return seconds(declared.retention_seconds)
    return KEPT_IN_RUN if has_run else KEPT_ALONE
