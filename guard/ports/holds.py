"""What the service needs of a database for holds. Every method reconciles what it meets with the effects first."""

from collections.abc import Callable
from typing import Protocol, TypeVar
from uuid import UUID

import msgspec

from guard.core.effects import Duration, Instant, Key, TenantId
from guard.core.holds import Barred, Changed, Claim, Hold, Wish
from twiceshy_contract.holds import HoldState

T = TypeVar("T")


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """The hold is there: made now (`is_new`) or asked for before. `taken` are those that it took over."""

    hold: Hold
    at: Instant
    is_new: bool
    taken: tuple[Hold, ...] = ()


class Occupied(msgspec.Struct, frozen=True, kw_only=True):
    """The resource is claimed by somebody else for an interval that overlaps; nothing was placed.

    `lost` is the last hold that the effect of the wish had and lost.
    """

    by: Claim
    at: Instant
    retry_after: Duration | None
    lost: Hold | None = None


class Different(msgspec.Struct, frozen=True, kw_only=True):
    """The id is that of a hold which was placed with other words: they differ at `names`."""

    hold: Hold
    at: Instant
    names: tuple[str, ...]


class Foreign(msgspec.Struct, frozen=True, kw_only=True):
    """The id is that of a hold of another tenant."""

    at: Instant


Placement = Placed | Occupied | Different | Foreign


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A hold as it stands at the database's time `at`."""

    hold: Hold
    at: Instant


class Altered(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a change, at the database's time `at`."""

    result: Changed | Barred
    at: Instant


class HoldFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which holds a listing shows: those of a resource, in a state, of an effect, that overlap `start` to `end`."""

    resource: str | None = None
    state: HoldState | None = None
    key: Key | None = None
    start: Instant | None = None
    end: Instant | None = None
    limit: int = 50
    after: str | None = None


class HoldPage(msgspec.Struct, frozen=True, kw_only=True):
    """Holds as they stand at the database's time `at`, and the cursor of the next page."""

    holds: list[Hold]
    at: Instant
    next: str | None


class HoldStore(Protocol):
    """Holds."""

    async def place(self, wish: Wish) -> Placement:
        """Place a hold unless one stands in its way; take over what gives way to it, in the same transaction.

        An effect has one hold at a time: asked for again, it is renewed, or moved to another resource or time.
        """

    async def change(
        self, tenant: TenantId, hold: UUID, rule: Callable[[Claim, Instant], Changed | Barred]
    ) -> Altered | None:
        """Change a hold by a rule; None: there is none."""

    async def get(self, tenant: TenantId, hold: UUID) -> Standing | None:
        """Find a hold."""

    async def of_effect(self, key: Key) -> Hold | None:
        """Find the newest hold of an effect, as it was written last."""

    async def settle(self, key: Key) -> None:
        """Write down what the outcome of an effect means to its hold."""

    async def give_back(self, key: Key) -> None:
        """Release the committed hold of an effect that was taken back."""

    async def sweep(self, limit: int) -> int:
        """Settle holds whose time has run out; return how many there were."""

    async def page(self, tenant: TenantId, chosen: HoldFilter) -> HoldPage:
        """Return holds by resource, start and id. Raises ValueError for a foreign cursor."""
