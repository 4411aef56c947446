"""A fork that goes on: its own log as far as that goes, and behind it what its parent's log has left.

What the fork was given once, an override among it, is in its own log and is given again. Its intents say which calls
of the parent they stand for, so that none of these is given twice.
"""

from collections.abc import Collection

from msgspec.structs import replace

from twiceshy._boundaries import Boundary
from twiceshy._recording import Recording
from twiceshy._replay_errors import ReplayStopped
from twiceshy._script import Matched
from twiceshy._scripts import ReplayScript
from twiceshy_contract.events import Intent


class GoingOn:
    """Stands in front of a fork's boundaries: `own` serves its own log, `rest` is the parent's behind the cut."""

    continues = True

    def __init__(self, own: ReplayScript, rest: ReplayScript, log: Recording) -> None:
        self._own = own
        self._rest = rest
        intents = (event for event in log.events if isinstance(event, Intent))
        rest.leave(event.origin for event in intents if event.origin is not None)

    def match(self, boundary: Boundary, digest: str) -> Matched | None:
        """Return what stands in the place of a call; None where it really runs. Raises ReplayStopped."""
        place = self._own.match(boundary, digest)
        if place is None:
            left = self._rest.match(boundary, digest)
            return None if left is None else replace(left, intent=None)
        named = self._rest.plan.overrides.of_name(boundary.name)  # each call of a name counts, whoever answers it
        if place.intent is None or place.outcome is not None:
            return place
        again = self._rest.again(boundary, place.intent.origin, named)
        return place if again is None else replace(again, intent=place.intent, is_new=True)

    @property
    def due(self) -> int | None:
        """The intent whose recorded delivery is next, where its turn has come."""
        return self._own.due

    def is_due(self, intent: int) -> bool:
        """Say whether the recorded delivery of an intent may be given."""
        return self._own.is_due(intent)

    def gave(self, intent: int) -> None:
        """Note that the recorded delivery of an intent was given."""
        self._own.gave(intent)

    @property
    def is_free(self) -> bool:
        """Whether deliveries come as far as they are there."""
        return self._own.is_free

    @property
    def is_over(self) -> bool:
        """Whether nothing of the fork's own log is left that must come first."""
        return self._own.is_over

    @property
    def is_counterfactual(self) -> bool:
        """Whether the fork has had outcomes that the world did not give."""
        return self._own.is_counterfactual

    @property
    def refusal(self) -> Exception | None:
        """What was given in the place of an outcome, did not fit, and has ended the code."""
        return self._own.refusal or self._rest.refusal

    def refuse(self, error: Exception) -> ReplayStopped:
        """Stop at what was given in the place of an outcome and does not fit."""
        return self._own.refuse(error)

    def close(self) -> None:
        """Let go of both logs."""
        self._own.close()
        self._rest.close()

    def is_early(self, boundary: Boundary, digest: str) -> bool:
        """Say whether a call comes before what the fork's own log has first."""
        return self._own.is_early(boundary, digest)

    def stalled(self, awaited: Collection[int], *, is_alone: bool) -> BaseException | None:
        """Hear that what is next has not come; return the error, or None to go on."""
        return self._own.stalled(awaited, is_alone=is_alone)
