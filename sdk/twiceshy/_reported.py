"""What a tool raises to say what happened, and what lets an exception travel to another process."""

import logging
from datetime import timedelta
from typing import Final

from twiceshy._said import kind_of
from twiceshy._seconds import seconds_of

_log: Final = logging.getLogger("twiceshy")


class Portable(BaseException):
    """An exception that survives pickling whatever its constructor asks for, as process pools need it."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[BaseException], args: tuple[object, ...], state: dict[str, object]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class ReportedOutcome(Portable, Exception):
    """A tool says what happened."""


class NotApplied(ReportedOutcome):
    """Nothing was applied; the effect may be tried again, after `retry_after` where given.

    That is a number of seconds or a timedelta; the attribute holds seconds. What is neither is ignored with a
    warning, so that the outcome is still told.
    """

    def __init__(self, message: str = "", *, retry_after: float | timedelta | None = None) -> None:
        super().__init__(message or "nothing was applied")
        self.retry_after: float | None = seconds_of(retry_after)


class Rejected(ReportedOutcome):
    """The other side refused for good. Replays raise it again, with the recorded `type` and `data`.

    A `type` that is no text is ignored with a warning, so that the outcome is still told.
    """

    def __init__(
        self,
        message: str = "",
        *,
        data: object = None,
        type: str | None = None,  # noqa: A002 - the wire's word
    ) -> None:
        super().__init__(message or "the effect was rejected")
        self.data = data
        if type is not None and not isinstance(type, str):
            _log.warning("The type of a rejection is ignored: it is a %s and must be a text.", kind_of(type))
            type = None  # noqa: A001 - the wire's word
        self.type: str = type or "Rejected"
