"""Holds: who may claim a resource, and for how long. The store puts its rows to these rules within one transaction.

No two claims that are held or committed overlap on one resource. A hold that belongs to an effect follows the effect,
whatever its own row says yet: success commits it, a refusal and an attempt that applied nothing end it. While the
effect is executing or in doubt its tool may be acting, so nobody takes the hold: a higher priority asks for it.
"""

from collections.abc import Sequence
from typing import Final, Literal
from uuid import UUID

import msgspec
from msgspec.structs import replace

from guard.core.effects import SECOND, Duration, Instant, Key, Life, TenantId
from guard.core.lease import SETTLE
from twiceshy_contract.approvals import ApprovalState
from twiceshy_contract.holds import HoldState

YIELD: Final = Duration(SECOND)
"""After how long to ask again for the hold of an effect that is under way."""
PROMISE: Final = Duration(5 * SECOND)
"""How long the time of a hold that gave way is kept for whoever asked for it, who may be asking only now and then."""
GRACE: Final = Duration(60 * SECOND)
"""How long a hold waits for its caller to begin: after it was placed, and after a person has approved."""
FOREVER: Final = Instant(2**62)


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """The hold that took another one over, or asks for it."""

    id: UUID
    holder: str
    priority: int


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on a resource from `start` up to but without `end`; without `expires_at` it does not lapse.

    `key` is the effect that it belongs to. `rival` is the hold that took it over, or that asks for it.
    """

    id: UUID
    tenant: TenantId
    resource: str
    start: Instant
    end: Instant
    priority: int
    holder: str
    run: str | None
    key: Key | None
    placed_at: Instant
    expires_at: Instant | None
    state: HoldState = "held"
    ended_at: Instant | None = None
    rival: Rival | None = None

    @property
    def is_live(self) -> bool:
        """Whether it claims the resource."""
        return self.state in ("held", "committed")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A hold that somebody wants, for so long (None: until it is ended)."""

    id: UUID
    tenant: TenantId
    resource: str
    start: Instant
    end: Instant
    priority: int
    holder: str
    run: str | None = None
    key: Key | None = None
    lasts: Duration | None = None

    def placed(self, now: Instant) -> Hold:
        """Return the hold as it is placed now."""
        return Hold(
            id=self.id,
            tenant=self.tenant,
            resource=self.resource,
            start=self.start,
            end=self.end,
            priority=self.priority,
            holder=self.holder,
            run=self.run,
            key=self.key,
            placed_at=now,
            expires_at=self._expires_at(now),
        )

    def differing(self, hold: Hold) -> tuple[str, ...]:
        """Name what of a hold differs from the wish."""
        names = ("resource", "start", "end", "priority", "holder", "run")
        return tuple(name for name in names if getattr(self, name) != getattr(hold, name))

    def renewed(self, own: Hold, now: Instant) -> Hold:
        """Return the effect's own hold, wanted again for as long, and by no less a priority."""
        return replace(own, priority=max(own.priority, self.priority), expires_at=self._expires_at(now))

    def _expires_at(self, now: Instant) -> Instant | None:
        return None if self.lasts is None else Instant(now + self.lasts)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A hold, and the life and the slot of the effect that it belongs to (None: there is no such effect).

    `asked_until`: how long a person may still be asked about the effect, or its caller still come after the answer.
    `settle`: how long a request of its tool may be under way after an attempt has ended.
    """

    hold: Hold
    life: Life | None = None
    slot: bytes | None = None
    asked_until: Instant | None = None
    settle: Duration = SETTLE

    def is_acting(self, now: Instant) -> bool:
        """Say whether the effect's tool may be acting on the resource."""
        life = self.life
        if self.hold.state != "held" or life is None:
            return False
        if life.state in ("executing", "in_doubt"):
            return True
        latest = life.latest
        return life.state == "pending" and bool(latest and latest.is_unresolved and now < latest.ended_at + self.settle)

    def is_awaited(self, now: Instant) -> bool:
        """Say whether the effect is there and waits for a person: until then its hold does not lapse."""
        is_asked = self.asked_until is not None and now < self.asked_until
        return is_asked and self.hold.state == "held" and self.life is not None and self.life.state == "pending"

    def looked_at(self, now: Instant, again: Duration) -> Hold:
        """Return the hold of an effect that goes on, to be looked at again later."""
        until = self.asked_until if self.is_awaited(now) else None
        return replace(self.hold, expires_at=Instant(min(now + again, until or FOREVER)))

    @property
    def is_proven_late(self) -> bool:
        """Whether the effect turned out to have succeeded after its hold had been given up."""
        ended_at = self.hold.ended_at
        if self.life is None or self.life.state != "succeeded" or ended_at is None:
            return False
        return self.life.ended_at is not None and ended_at < self.life.ended_at

    def at(self, now: Instant) -> "Claim":
        """Return the claim as it stands now, whoever has written that down already."""
        hold = self.hold
        state = self._state(now)
        if state == hold.state:
            return self
        if state == "committed":
            return replace(self, hold=replace(hold, state=state, expires_at=None, rival=None))
        return replace(self, hold=ended(hold, state, now))

    def _state(self, now: Instant) -> HoldState:
        hold, life = self.hold, self.life
        if hold.state != "held" or self.is_acting(now):
            return hold.state
        if life is not None and life.state == "succeeded":
            return "committed"
        if life is not None and life.state == "failed":
            return "released"
        if life is not None and life.latest is not None and life.latest.ended_at > hold.placed_at:
            return "released" if hold.rival is None else "lost"
        has_run_out = hold.expires_at is not None and hold.expires_at <= now
        return "expired" if has_run_out and not self.is_awaited(now) else "held"


class Free(msgspec.Struct, frozen=True):
    """Nothing stands in the way of the wish but what it takes over."""

    taken: tuple[Hold, ...]


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """A claim stands in the way. `asked` are those that would be taken over, were their effects not under way."""

    by: Claim
    asked: tuple[Hold, ...]
    retry_after: Duration | None


def contest(wish: Wish, claims: Sequence[Claim], now: Instant) -> Free | Blocked:
    """Say whether a wish is granted over the claims that overlap: all of them give way, or none does."""
    firm = [claim for claim in claims if claim.hold.state == "committed" or claim.hold.priority >= wish.priority]
    acting = [claim for claim in claims if claim.is_acting(now)]
    if not firm and not acting:
        return Free(tuple(claim.hold for claim in claims))
    by = max(firm or acting, key=_strength)
    asked = () if firm else tuple(claim.hold for claim in acting)
    return Blocked(by=by, asked=asked, retry_after=_retry_after(by, now))


def promise(hold: Hold) -> Claim | None:
    """Return the claim of whoever asked for a hold that gave way, as if it was placed already."""
    rival, at = hold.rival, hold.ended_at
    if rival is None or at is None:
        return None
    promised = replace(hold, id=rival.id, holder=rival.holder, priority=rival.priority, run=None, key=None)
    return Claim(
        hold=replace(promised, state="held", placed_at=at, expires_at=Instant(at + PROMISE), ended_at=None, rival=None)
    )


def is_kept_for_another(claim: Claim, wish: Wish, now: Instant) -> bool:
    """Say whether a promise still stands against a wish: it was made to a higher priority."""
    return claim.hold.priority > wish.priority and claim.at(now).hold.is_live


def asked_until(state: ApprovalState, expires_at: Instant | None, decided_at: Instant | None) -> Instant | None:
    """Return how long the hold of an effect waits for what a person says about it; None: no longer."""
    if state == "open":
        return FOREVER if expires_at is None else expires_at
    return Instant(decided_at + GRACE) if state == "approved" and decided_at is not None else None


def _strength(claim: Claim) -> tuple[bool, int, int]:
    hold = claim.hold
    return hold.state == "committed", hold.priority, -hold.placed_at


def _retry_after(by: Claim, now: Instant) -> Duration | None:
    """Return after how long the claim may be gone; a committed one stays."""
    if by.is_acting(now):
        return YIELD
    expires_at = by.hold.expires_at
    if expires_at is not None and by.is_awaited(now):
        expires_at = max(expires_at, by.asked_until or expires_at)
    return None if expires_at is None or expires_at >= FOREVER else Duration(expires_at - now)


def ended(hold: Hold, state: HoldState, now: Instant) -> Hold:
    """Return a hold that claims nothing any more."""
    return replace(hold, state=state, ended_at=now)


def taken(hold: Hold, by: Wish, now: Instant) -> Hold:
    """Return a hold that a higher priority has taken over."""
    return replace(ended(hold, "lost", now), rival=rival_of(by))


def rival_of(wish: Wish) -> Rival:
    """Return how a loser is told of a wish."""
    return Rival(id=wish.id, holder=wish.holder, priority=wish.priority)


HoldVerb = Literal["commit", "release", "renew"]
Bar = Literal["other_holder", "gone", "of_an_effect", "acting"]


class Changed(msgspec.Struct, frozen=True):
    """The hold after the change."""

    hold: Hold


class Barred(msgspec.Struct, frozen=True):
    """The hold may not be changed so."""

    why: Bar
    hold: Hold


def change(claim: Claim, verb: HoldVerb, holder: str, lasts: Duration, now: Instant) -> Changed | Barred:
    """Let a holder commit, release or renew a hold. What is said twice is done once; what is gone may be released."""
    hold = claim.hold
    if hold.holder != holder:
        return Barred("other_holder", hold)
    if verb == "release":
        return _released(claim, now)
    if not hold.is_live or hold.key is not None:
        return Barred("of_an_effect" if hold.is_live else "gone", hold)
    if hold.state == "held":
        expires_at = None if verb == "commit" else Instant(now + lasts)
        hold = replace(hold, state="committed" if verb == "commit" else "held", expires_at=expires_at)
    return Changed(hold)


def _released(claim: Claim, now: Instant) -> Changed | Barred:
    hold = claim.hold
    is_given_up = claim.life is not None and claim.life.closed
    if claim.is_acting(now) and not is_given_up:
        return Barred("acting", hold)
    return Changed(ended(hold, "released", now) if hold.is_live else hold)
