"""Wire structs of holds: claims on a resource for a time, from `start` up to but without `end`."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from twiceshy_contract.names import Priority, RunName, Worker
from twiceshy_contract.wire import EffectKey

HoldState = Literal["held", "committed", "released", "lost", "expired"]
"""`held` may be taken over by a higher priority; `committed` may not; the others claim nothing any more."""
ResourceName = Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]
"""1 to 500 characters without control characters."""
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A date-time with its offset; every time zone is the same moment."""
HoldSeconds = Annotated[float, msgspec.Meta(ge=1, le=86_400)]


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body that a client sends."""


class PlaceHoldRequest(_Request, frozen=True, kw_only=True):
    """Claim a resource from `start` up to `end`, or for `minutes`.

    The client draws `id` at random: asking again with it is the same hold. The claim lapses after `hold_seconds`
    unless it is committed or renewed. `priority` takes over the claims of a lower one that are not committed.
    """

    id: UUID
    resource: ResourceName
    start: Moment
    holder: Worker
    end: Moment | None = None
    minutes: Annotated[float, msgspec.Meta(gt=0, le=5_256_000)] | None = None
    priority: Priority = 0
    hold_seconds: HoldSeconds = 60
    run: RunName | None = None


class ChangeHoldRequest(_Request, frozen=True, kw_only=True):
    """Commit or release a hold, as the holder who placed it."""

    holder: Worker


class RenewHoldRequest(_Request, frozen=True, kw_only=True):
    """Keep a hold that is not committed for `hold_seconds` from now."""

    holder: Worker
    hold_seconds: HoldSeconds = 60


class HoldRef(msgspec.Struct, frozen=True, kw_only=True):
    """The hold that stands in the way: whose it is, for when, and how strong."""

    id: UUID
    resource: str
    start: str
    end: str
    holder: str
    priority: int
    state: HoldState


class RivalView(msgspec.Struct, frozen=True, kw_only=True):
    """The hold that took another one over, or asks for it."""

    id: UUID
    holder: str
    priority: int


class HoldView(HoldRef, frozen=True, kw_only=True):
    """A hold as it stands at the database's time `as_of`.

    `key` is the effect that the hold belongs to, whose outcome decides about it. `lost_to` took it over. `wanted_by`
    has a higher priority and waits for the effect, which is under way, to end.
    """

    as_of: str
    run: str | None
    key: EffectKey | None
    placed_at: str
    expires_at: str | None
    ended_at: str | None
    lost_to: RivalView | None
    wanted_by: RivalView | None


class HoldPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of holds, by resource and start; `next` is the `after` of the next page."""

    items: tuple[HoldView, ...]
    next: str | None
