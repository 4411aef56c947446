"""What a sink is: it sends one message once, and says what it knows of the outcome.

A sink never tries again by itself: every try is a row's attempt, which operators see. What it cannot know it calls
unknown, and never failed: whether that is sent again is decided by what the receiver can tell apart.
"""

from typing import Literal, Protocol
from uuid import UUID

import msgspec


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it leaves: the same identity and bytes on every try of one epoch.

    `number` counts the tries of the epoch from 1. `staged_at` is in microseconds since 1970. `lane` is None where no
    order is kept. `headers` were frozen with the body. `at` is the time of this try by the database's clock, in
    microseconds likewise: None where only the host's own is at hand.
    """

    message: UUID
    epoch: int
    number: int
    destination: str
    content_type: str
    body: bytes
    headers: dict[str, str]
    staged_at: int
    type: str | None = None
    lane: str | None = None
    recipient: str | None = None
    run: str | None = None
    at: int | None = None

    @property
    def identity(self) -> str:
        """What receivers tell messages apart by: `message.epoch`."""
        return f"{self.message}.{self.epoch}"


class Delivered(msgspec.Struct, frozen=True, kw_only=True, tag="delivered"):
    """The receiver has it, and what it said. `is_duplicate`: it had it already."""

    receipt: str
    is_duplicate: bool = False


class Retryable(msgspec.Struct, frozen=True, kw_only=True, tag="retryable"):
    """The receiver does not have it, and may take it later.

    `retry_after` (seconds) is the receiver's own wish. `is_unreachable`: nobody answered at all. `is_throttled`: it
    takes no more of anything for now.
    """

    why: str
    retry_after: float | None = None
    is_unreachable: bool = False
    is_throttled: bool = False


class Permanent(msgspec.Struct, frozen=True, kw_only=True, tag="permanent"):
    """The receiver does not have it and will never take it. `is_gone`: it takes nothing of anybody any more."""

    why: str
    is_gone: bool = False


class Unknown(msgspec.Struct, frozen=True, kw_only=True, tag="unknown"):
    """It left, and nobody knows whether it arrived."""

    why: str


Result = Delivered | Retryable | Permanent | Unknown


class Reached(msgspec.Struct, frozen=True, kw_only=True, tag="reached"):
    """What a connectivity check saw. Nothing is delivered to find out."""

    ok: bool
    detail: str


class Sink(Protocol):
    """One destination, opened. It connects when it is first needed, and again where a connection was lost."""

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        """Whether what may have arrived may be sent again: whoever reads it tells it by its identity.

        A broker that takes it twice still gives its consumers the identity, and so is one that deduplicates.
        """

    async def send(self, outgoing: Outgoing) -> Result:
        """Send one message once. Raises nothing but cancellation: every other end is a result."""

    async def check(self) -> Reached:
        """Say whether the destination can be reached, without delivering anything. Raises nothing."""

    async def close(self) -> None:
        """Give back all connections. Raises nothing."""


class SinkRefused(Exception):
    """A destination cannot be opened by this process: a secret or a library is missing. The text says what to do."""
