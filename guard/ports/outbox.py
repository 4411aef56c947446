"""The outbox as operators see it: what waits, what stands, what was delivered; and where messages may go."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Instant, Key, TenantId
from guard.core.outbox import Place, Staged, Standing
from guard.ports.relay import Backlog
from twiceshy_contract.destinations import BreakerState, Destination, DestinationState
from twiceshy_contract.outbox import AttemptLine, MessageState

StandingState = Literal["dead", "unknown", "parked"]
"""How a message stands that waits for a person."""


class MessageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages a listing shows; without a state all that are not over. `after` is the last page's cursor."""

    state: MessageState | None = None
    destination: str | None = None
    run: str | None = None
    limit: int = 50
    after: str | None = None


class Redrive(msgspec.Struct, frozen=True, kw_only=True):
    """Send again: under the same identity, or (`anew`) under the next, as a deliberate second effect."""

    anew: bool
    note: str


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an operator's word: the message as it stands now, and whether the word changed it.

    `why` says why it did not, where the message's state alone does not say it.
    """

    standing: Standing
    is_done: bool
    why: str | None = None


class MovedAll(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an operator's word about all of a state: how many are to be sent again, and how many are left.

    Of these the oldest few are named, with why they are left where that is known.
    """

    count: int
    left: int = 0
    oldest: tuple[Moved, ...] = ()


class DestinationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A destination as it is declared and stands, at the database's time `at`."""

    place: Place
    version: int
    declared_at: Instant
    note: str | None
    breaker: BreakerState
    open_until: Instant | None
    held_until: Instant | None
    allowance: int | None
    backlog: Backlog
    at: Instant


class OutboxStore(Protocol):
    """Messages of one tenant."""

    async def page(self, tenant: TenantId, chosen: MessageFilter) -> tuple[list[Standing], str | None]:
        """Return messages, newest first, and the next page's cursor. Raises ValueError for a foreign cursor."""

    async def get(self, tenant: TenantId, message: UUID) -> tuple[Standing, list[AttemptLine]] | None:
        """Return a message with the tries that failed: as it waits, else as its newest epoch ended."""

    async def of_effect(self, tenant: TenantId, key: Key) -> tuple[UUID, ...]:
        """Return the ids of what an effect staged, in their order."""

    async def redrive(self, tenant: TenantId, message: UUID, wish: Redrive) -> Moved | None:
        """Let a message be sent again, unless it is due already, or is being sent; None: there is none.

        One that waits for its time is due at once. One that was never rendered is left as it is: see `replace`; so is
        one whose destination was removed. A message that is over can be sent anew alone, and so can one whose effect
        was taken back.
        """

    async def redrive_all(
        self,
        tenant: TenantId,
        state: Literal["dead", "unknown", "parked"],
        destination: str | None,
        wish: Redrive,
        limit: int,
    ) -> MovedAll:
        """Let all messages of a state be sent again, oldest first.

        Those that were never rendered are left, those whose destination was removed, and, unless they are sent anew,
        those whose effect was taken back.
        """

    async def unrendered(self, tenant: TenantId, destination: str | None, after: int, limit: int) -> list[Standing]:
        """Return messages that were parked unrendered, oldest first, behind one by its `id`."""

    async def replace(
        self, tenant: TenantId, message: UUID, rows: Sequence[Staged], wish: Redrive, *, is_held: bool = False
    ) -> Literal["replaced", "gone", "taken_back"]:
        """Put rendered rows in the place of a message that was parked unrendered; the first takes its place in a lane.

        They are due then; or (`is_held`) they stay parked, so that they can be sent again in the order of all that do.
        """

    async def cancel(self, tenant: TenantId, message: UUID, note: str) -> Moved | None:
        """Take a message back that is not being sent and not over; None: there is none."""


class DestinationStore(Protocol):
    """Where messages may go, of one tenant."""

    async def named(self, tenant: TenantId, names: Sequence[str]) -> Mapping[str, Place]:
        """Return those of these destinations that are there, removed ones too."""

    async def all(self, tenant: TenantId) -> list[DestinationRecord]:
        """Return all destinations that are not removed, by name."""

    async def undeclared(self, tenant: TenantId) -> Mapping[str, Backlog]:
        """Return what waits for a person by the names of destinations that are not there, or are removed."""

    async def get(self, tenant: TenantId, name: str) -> DestinationRecord | None:
        """Return a destination; a removed one too."""

    async def declare(self, tenant: TenantId, name: str, settings: Destination) -> tuple[DestinationRecord, bool]:
        """Declare a destination; equal settings are no new version. Say whether it changed.

        A removed one is active again.
        """

    async def put(self, tenant: TenantId, name: str, state: DestinationState, note: str) -> DestinationRecord | None:
        """Pause, resume (which closes the breaker), or remove, which parks what waits for it; None: there is none."""

    async def subscribed(self, tenant: TenantId, event: str) -> list[Place]:
        """Return the active and paused destinations that ask for one of the service's own events."""
