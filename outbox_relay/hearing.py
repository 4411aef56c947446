"""What a relay has heard of a destination since it last said so, to the store that moves the breakers."""

from typing import Self

from guard.core.effects import Duration
from guard.ports.relay import Heard
from outbox_relay.delivery import Judged


class Hearing:
    """Counts of one destination, since the last report."""

    def __init__(self) -> None:
        self.good = 0
        self.note: str | None = None
        self._bad = 0
        self._unreachable = 0
        self._held_for: Duration | None = None
        self._is_gone = False

    @property
    def is_bad(self) -> bool:
        """Whether anything was heard after which the destination should perhaps not be asked."""
        return self._bad > 0 or self._unreachable > 0 or self._held_for is not None or self._is_gone

    @property
    def is_empty(self) -> bool:
        """Whether nothing was heard."""
        return self.good == 0 and self.note is None and not self.is_bad

    def add(self, judged: Judged) -> None:
        """Count a try. Any answer ends a row of tries that found nobody."""
        if judged.note is None:  # the common case, once a message
            self.good += judged.good
            self._unreachable = 0
            return
        if judged.good or judged.bad or judged.held_for is not None:
            self._unreachable = 0
        self.good += judged.good
        self._bad += judged.bad
        self._unreachable += judged.unreachable
        self._is_gone |= judged.is_gone
        self.note = judged.note
        if judged.held_for is not None:
            self._held_for = max(judged.held_for, self._held_for or judged.held_for)

    def told(self, destination: int) -> Heard:
        """Return it as it is reported."""
        return Heard(
            destination=destination,
            good=self.good,
            bad=self._bad,
            unreachable=self._unreachable,
            held_for=self._held_for,
            is_gone=self._is_gone,
            note=self.note,
        )

    def follow(self, before: Self) -> None:
        """Count what was heard before this as well: it could not be reported."""
        if not self.good and not self._bad:
            self._unreachable += before._unreachable
        self.good += before.good
        self._bad += before._bad
        self._is_gone |= before._is_gone
        self.note = self.note or before.note
        if before._held_for is not None:
            self._held_for = max(before._held_for, self._held_for or before._held_for)
