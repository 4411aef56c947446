"""The errors of recorded runs: another writer, a log that cannot be gone on with, and what the record itself holds."""

from twiceshy._base_errors import BeginError
from twiceshy._reported import Portable


class RunTakenOver(BeginError):
    """Another process records this run now, so that nothing begins here any more; what ran already still counts.

    Let one process at a time drive a run; end this one, or enter the run again to take it back.
    """


class RecordingDiverged(BeginError):
    """The run's log at the service is not the one that was written here, so that nothing more is recorded of it.

    Go on under another run, and compare what `twiceshy runs show` tells with this process's log.
    """


class RecordedError(Portable, Exception):
    """An error of the record whose type this process does not know: `type` names it."""

    def __init__(self, message: str = "", *, type: str = "Error") -> None:  # noqa: A002 - the wire's word
        super().__init__(message)
        self.type = type
