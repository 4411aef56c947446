"""The database's time, between two looks at it: receivers check when they were sent to, and a host may be wrong."""

from guard.core.effects import SECOND, Instant


class DatabaseClock:
    """What the database's clock says, counted on by one that only runs forward (seconds). It is told now and then."""

    def __init__(self) -> None:
        self._offset: int | None = None

    def tell(self, at: Instant, asked: float, answered: float) -> None:
        """Take what the database said between two readings of the other clock."""
        self._offset = at - round((asked + answered) / 2 * SECOND)

    def at(self, reading: float) -> int | None:
        """Return the time at a reading of the other clock, in microseconds since 1970; None before it was told."""
        return None if self._offset is None else self._offset + round(reading * SECOND)
