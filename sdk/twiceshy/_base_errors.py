"""The errors that others grow from, and the name of the effect that they are about."""

import inspect
from uuid import UUID

import msgspec

from twiceshy._reported import Portable


class EffectRef(msgspec.Struct, frozen=True, kw_only=True):
    """Name the effect that an error is about, as far as it is known."""

    tool: str
    key: str | None = None
    run: str | None = None
    attempt: UUID | None = None
    fence: int | None = None


class GuardError(Portable, Exception):
    """The guard could not do its work."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class EffectError(GuardError):
    """Something about one effect went wrong."""

    def __init__(self, message: str = "", *, effect: EffectRef) -> None:
        super().__init__(message)
        self.effect = effect

    @property
    def key(self) -> str | None:
        """The effect's key, where the service has named it."""
        return self.effect.key


class BeginError(EffectError):
    """The service did not let the tool run."""


class RunSuspended(Portable):
    """Nobody knows whether the effect happened: the run stops here until someone settles it.

    It is not an Exception, so that no `except Exception` in an agent's loop tries another way round.
    """

    def __init__(self, message: str = "", *, effect: EffectRef) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))
        self.effect = effect

    @property
    def key(self) -> str | None:
        """The effect's key."""
        return self.effect.key
