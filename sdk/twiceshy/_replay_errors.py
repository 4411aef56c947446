"""What ends an agent's code in a replay. None is an Exception, so that no `except Exception` in a loop goes on.

ReplayStopped (BaseException)
├── ReplayDiverged         the code does something else than the record has
├── ReplayIncomplete       the record ends before the code does
├── ReplayMisfit           what was given in the place of an outcome does not fit; its SetupError is raised in the end
└── ReplayPaused           the event that was asked for is reached
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from twiceshy._reported import Portable
from twiceshy_contract.events import Event

if TYPE_CHECKING:
    from twiceshy._divergence import Divergence


class ReplayStopped(Portable):
    """The replay ends the code here."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class ReplayDiverged(ReplayStopped):
    """The code does something else than the record has. Look at the first of `divergences`.

    They are in the order in which they were found; what they say stands in the notes too.
    """

    def __init__(self, message: str = "", *, divergences: "Sequence[Divergence]" = ()) -> None:
        super().__init__(message)
        self.divergences = tuple(divergences)
        for divergence in self.divergences[1:]:
            self.add_note(str(divergence))


class ReplayIncomplete(ReplayStopped):
    """The record ends here: it lacks the outcome that the code waits for, as that of a run that was killed does.

    `seq` is the number of the call.
    """

    def __init__(self, message: str = "", *, seq: int | None = None) -> None:
        super().__init__(message)
        self.seq = seq


class ReplayMisfit(ReplayStopped):
    """What was given in the place of an outcome does not fit.

    `refusal` says so, and is raised where the code has ended: the code itself may catch everything.
    """

    def __init__(self, refusal: Exception) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Frame(msgspec.Struct, frozen=True):
    """A function of the agent where the replay paused, and what its names stood for."""

    function: str
    file: str
    line: int
    locals: Mapping[str, Any]


class ReplayPaused(ReplayStopped):
    """The event that was asked for is reached: the replay pauses.

    `locals` are the frames of the agent's code there, the innermost first, `events` those up to here. `value` and
    `error` are what was about to be delivered, where the event is a delivery.
    """

    def __init__(
        self, message: str = "", *, seq: int, value: object = None, error: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.seq = seq
        self.value = value
        self.error = error
        self.locals: tuple[Frame, ...] = ()
        self.events: tuple[Event, ...] = ()
