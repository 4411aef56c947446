"""The meters that the accelerator's parts share: none until the service gives it its own."""

from typing import Literal

from guard.ports.accelerator import AcceleratorMeters, Recalled


class Meters:
    """Passes on what is counted; what is counted before there are meters is not."""

    def __init__(self) -> None:
        self._meters: AcceleratorMeters | None = None
        self._is_reached = False

    def count_with(self, meters: AcceleratorMeters) -> None:
        """Count with these from now on."""
        self._meters = meters
        meters.accelerator_reached(is_reached=self._is_reached)

    def recalled(self, answer: Recalled) -> None:
        """Count a look for a record."""
        if self._meters is not None:
            self._meters.recalled(answer)

    def distrusted(self, why: str) -> None:
        """Count an entry that was not believed, and the look for it."""
        if self._meters is not None:
            self._meters.distrusted(why)
            self._meters.recalled("refused")

    def shared(self, answer: Literal["sent", "dropped"], times: int = 1) -> None:
        """Count what was to be kept, forgotten or counted for all replicas."""
        if self._meters is not None:
            self._meters.shared(answer, times)

    def failed(self, why: str) -> None:
        """Count a failure."""
        if self._meters is not None:
            self._meters.accelerator_failed(why)

    def reached(self, *, is_reached: bool) -> None:
        """Take whether Redis is asked at all."""
        self._is_reached = is_reached
        if self._meters is not None:
            self._meters.accelerator_reached(is_reached=is_reached)
