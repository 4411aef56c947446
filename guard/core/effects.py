"""What an effect is: the intent that a key names, and its life of attempts.

Instants and durations are integers of microseconds, instants since 1970 in UTC by the database's clock.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NewType
from uuid import UUID

import msgspec

from twiceshy_contract.names import KeyRule, PublicState

Instant = NewType("Instant", int)
Duration = NewType("Duration", int)
Fence = NewType("Fence", int)
AttemptToken = NewType("AttemptToken", UUID)
Key = NewType("Key", bytes)
"""32 bytes: the run's start (6) and a hash (26)."""
RunId = NewType("RunId", UUID)
TenantId = NewType("TenantId", int)

SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_GRANTED: Final = Fence(0)
LATE_SUCCESS: Final = "late_success"
"""The kind of evidence that a success is which was taken when another attempt may have executed as well."""
OTHER_RESULT: Final = "other_result"
"""The kind that a success is which was no second execution, and says another result than the record."""

Report = Literal["none", "succeeded", "not_applied", "rejected", "unknown", "released"]
"""What an attempt said of itself."""


def seconds(value: float) -> Duration:
    """Return a number of seconds as a duration."""
    return Duration(round(value * SECOND))


def instant(moment: datetime) -> Instant:
    """Return an aware date-time as an instant."""
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))


def moment(at: Instant) -> datetime:
    """Return an instant as a date-time in UTC."""
    return _EPOCH + timedelta(microseconds=at)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at executing an effect. A token that ended before it was granted a lease has fence 0."""

    token: AttemptToken
    fence: Fence
    granted_at: Instant
    deadline: Instant
    report: Report = "none"
    reported_at: Instant | None = None
    settled: bool = False

    @property
    def is_ended(self) -> bool:
        """Whether the token may never hold a lease again."""
        return self.report != "none" or self.settled

    @property
    def is_unresolved(self) -> bool:
        """Whether the attempt was granted a lease and nobody knows what became of it."""
        return self.fence > NEVER_GRANTED and not self.settled and self.report in ("none", "unknown")

    @property
    def ended_at(self) -> Instant:
        """When the attempt stopped sending: at its report, else at its deadline."""
        return self.deadline if self.reported_at is None else self.reported_at


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What the state machine knows of an effect. `attempts` are in the order of their fences.

    `tries` counts the leases since the effect was last reopened. The downstream key belongs to an epoch: it
    changes once it is settled that nothing was applied under the old one. `epoch_since` is when the first lease
    of the epoch was granted, and so the earliest moment at which the provider can have seen the key.
    """

    state: PublicState
    fence: Fence = NEVER_GRANTED
    attempts: tuple[Attempt, ...] = ()
    tries: int = 0
    retry_at: Instant | None = None
    epoch: int = 0
    epoch_since: Instant | None = None
    closed: bool = False
    ended_at: Instant | None = None

    @property
    def latest(self) -> Attempt | None:
        """The attempt that holds, or last held, the lease."""
        return self.attempts[-1] if self.attempts and self.attempts[-1].fence > NEVER_GRANTED else None

    def attempt(self, token: AttemptToken) -> Attempt | None:
        """Find the attempt of a token."""
        return next((attempt for attempt in self.attempts if attempt.token == token), None)

    def is_under_present_key(self, attempt: Attempt) -> bool:
        """Say whether an attempt was granted under the present downstream key."""
        return self.epoch_since is not None and attempt.granted_at >= self.epoch_since

    def unresolved(self, besides: AttemptToken | None = None) -> tuple[Attempt, ...]:
        """Return the attempts of which nobody knows what became, without one token's."""
        return tuple(a for a in self.attempts if a.is_unresolved and a.token != besides)


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller means to do: fixed when the effect is made, but for the arguments of a later attempt.

    `arguments` is JSON text as it came, in tagged form. `step` counts the effects of the run. `slot` is kept where the
    newest instance of the slot is looked up, and not found by counting.
    """

    key: Key
    tenant: TenantId
    run_id: RunId | None
    run: str | None
    step: int | None
    tool: str
    tool_version: int
    rule: KeyRule
    caller_step: str | None
    business_key: str | None
    occurrence: int
    generation: int
    identity_digest: bytes
    arguments_digest: bytes
    arguments: bytes
    worker: str | None
    began_at: Instant
    slot: bytes | None = None


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect as the store holds it; every write raises `version` by one. `outcome` is JSON text.

    `edited` are the arguments that an approver put in the place of those that were asked for. `delivered` says that
    the caller has shown that it knows the outcome. Since `expired_at` only the digests are left.
    """

    version: int
    intent: Intent
    life: Life
    outcome: bytes | None = None
    resolution: str | None = None
    edited: bytes | None = None
    delivered: bool = False
    expired_at: Instant | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing changes the effect any more."""
        return self.life.state in ("succeeded", "failed")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that contradicts a final effect, or that it may have been executed twice; `body` is JSON text.

    `kind` is the event that brought it, `late_success` or `other_result`.
    """

    at: Instant
    token: AttemptToken | None
    kind: str
    body: bytes
