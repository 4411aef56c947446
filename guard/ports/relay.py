"""What a relay asks of the store: to claim, to start, to settle. No transaction is open while a message is sent.

A claim gives its messages to one lease. Every later word names that lease, and where a message is no longer under it
nothing is written, and that is told: whoever was slow hears that it was overtaken.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Duration, Instant, TenantId
from guard.core.outbox import Over
from twiceshy_contract.destinations import BreakerState, Destination, DestinationState
from twiceshy_contract.outbox import TryResult


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A destination as a relay must know it; another `version` has other settings. `is_open`: it may be asked now."""

    id: int
    tenant: TenantId
    name: str
    version: int
    state: DestinationState
    settings: Destination
    breaker: BreakerState
    is_open: bool


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """How many more sends a relay could begin at once for a destination.

    A message without a lane takes one of `slots`, and so does a lane, of which up to `followers` more messages are
    claimed behind its first. `repeatable` says whether a message is sent again of which nobody knows what became.
    """

    destination: int
    slots: int
    followers: int = 50
    repeatable: bool = False


Verdict = Literal["send", "wait", "withdrawn"]
"""What the effect of a message says right before it is sent: it stands; it is in a saga that is being taken back, so
nobody knows yet; it was taken back."""


class Claimed(msgspec.Struct, frozen=True, kw_only=True):
    """A message under a lease. One that `is_first` is being sent from now on; one behind it must be started first."""

    id: int
    message: UUID
    epoch: int
    tenant: TenantId
    destination: int
    name: str
    lane: str | None
    type: str | None
    recipient: str | None
    content_type: str
    headers: bytes
    body: bytes
    run: str | None
    staged_at: Instant
    attempts: int
    is_first: bool
    verdict: Verdict


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The message is over and moves to the history. `counts`: a try was spent on it."""

    id: int
    over: Over
    receipt: str | None = None
    note: str | None = None
    counts: bool = True


class Again(msgspec.Struct, frozen=True, kw_only=True):
    """The message is due again after a delay. Without `tried` no try was spent on it."""

    id: int
    delay: Duration
    note: str | None = None
    tried: TryResult | None = None


class Stands(msgspec.Struct, frozen=True, kw_only=True):
    """The message waits for a person; `blocks` keeps those behind it in its lane waiting too."""

    id: int
    state: Literal["dead", "unknown"]
    note: str
    tried: TryResult
    blocks: bool = False


Settlement = Done | Again | Stands


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one turn: what was claimed, and the ids of settlements that were no longer under the lease."""

    claimed: tuple[Claimed, ...]
    fenced: tuple[int, ...]


class Reaped(msgspec.Struct, frozen=True, kw_only=True):
    """What became of messages whose lease had run out: `again` are sent again, `unknown` wait for a person."""

    again: int
    unknown: int
    released: int


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """How a destination did since the last report: tries that it answered well, answered badly, and did not answer.

    No try is counted twice: one that did not reach it is `unreachable`, not `bad`. `held_for` is how long it asked to
    be left alone. `is_gone`: it takes nothing any more. `note` is kept where it becomes disabled, or its breaker opens.
    """

    destination: int
    good: int = 0
    bad: int = 0
    unreachable: int = 0
    held_for: Duration | None = None
    is_gone: bool = False
    note: str | None = None


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a destination, and for how long the oldest message that is due has waited."""

    pending: int = 0
    in_flight: int = 0
    dead: int = 0
    unknown: int = 0
    parked: int = 0
    oldest: Duration = Duration(0)


def together(backlogs: Iterable[Backlog]) -> Backlog:
    """Return what waits for several destinations together."""
    found = list(backlogs)
    counts = {name: sum(getattr(one, name) for one in found) for name in Backlog.__struct_fields__ if name != "oldest"}
    return Backlog(**counts, oldest=max((one.oldest for one in found), default=Duration(0)))


class RelayStore(Protocol):
    """The outbox as relays see it, of all tenants."""

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        """Settle what was sent under a lease, and claim what is due under it, in one transaction.

        Destinations that are paused, whose breaker is open or whose rate is spent give nothing; no try is spent for
        it. Raises StoreUnavailable: say it again, every settlement is safe to repeat.
        """

    async def due(self) -> frozenset[int]:
        """Return the destinations that have messages in lanes, or one without a lane that is due.

        For a relay with many destinations of which few have anything: to ask for all of them costs more. Pauses,
        breakers and rates are not looked at.
        """

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        """Begin to send messages that were claimed behind others; what is not told is no longer under the lease."""

    async def renew(self, lease: UUID, ids: Sequence[int], length: Duration) -> frozenset[int]:
        """Move the end of the lease of these messages; return those that are still under it."""

    async def release(self, lease: UUID, besides: Sequence[int]) -> int:
        """Give back all that is under a lease besides these messages; return how many they were. No try is counted.

        For a relay that did not hear what a turn gave it, and so has sent nothing of that. A turn that goes on still is
        not waited for: what it claims afterwards stays under the lease.
        """

    async def reap(self, limit: int) -> Reaped:
        """Take back messages whose lease has run out: their relay is gone, or was too slow."""

    async def now(self) -> Instant:
        """Return the database's time."""

    async def ways(self) -> list[Way]:
        """Return all destinations that are not removed and that this version can read."""

    async def report(self, heard: Sequence[Heard]) -> None:
        """Move the breakers of destinations by how they did."""

    async def backlogs(self) -> dict[int, Backlog]:
        """Count what waits, by destination; 0 stands for what has none."""

    async def tidy(self, kept: Duration) -> int:
        """Drop history that is older than `kept`, and make room for what comes; return how much was dropped."""

    async def ring(self) -> None:
        """Tell relays that something was staged, without any promise that they hear it."""

    def listening(self, heard: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `heard` whenever a staging is told; where telling fails, for a time or for ever, nothing is raised."""
