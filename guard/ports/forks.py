"""What the service needs of a database to answer the calls of forks: their records, and what became of these."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from guard.core.effects import AttemptToken, Effect, Key, RunId
from guard.core.forks import Fork, Span
from twiceshy_contract.names import KeyRule


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The call that looks for its outcome. Its place is what names it in its run: rule, name and occurrence."""

    tool: str
    rule: KeyRule
    step: str | None
    business_key: str | None
    occurrence: int
    identity_digest: bytes
    arguments_digest: bytes


class Gave(msgspec.Struct, frozen=True, kw_only=True):
    """What decides whether an effect that was given for a call is over for another one like it."""

    token: AttemptToken
    delivered: bool
    is_failed: bool
    arguments_digest: bytes


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a fork was given for one of its calls: an effect of its record, first for the attempt `token`.

    `delivered` says that the fork has shown that it knows the outcome.
    """

    origin: Effect
    token: AttemptToken
    delivered: bool

    @property
    def gave(self) -> Gave:
        """What decides whether it is over for another call."""
        origin = self.origin
        return Gave(
            token=self.token,
            delivered=self.delivered,
            is_failed=origin.life.state == "failed",
            arguments_digest=origin.intent.arguments_digest,
        )


class ForkStore(Protocol):
    """The records of forks."""

    async def ancestors(self, run: RunId) -> list[Fork]:
        """Return the run as a fork, its parent as one, and so on to the first that is none."""

    async def behind(self, runs: Sequence[RunId]) -> list[RunId]:
        """Return the runs that any of these goes on from as a fork, those that these go on from, and so on."""

    async def pinned(self, run: RunId, tool: str) -> int | None:
        """Return the version of a tool that a run keeps to."""

    async def pins(self, runs: Sequence[RunId], tool: str) -> set[int]:
        """Return the versions of a tool that these runs keep to."""

    async def gave(self, fork: RunId, keys: Sequence[Key]) -> dict[Key, Gave]:
        """Return for which of these calls the fork was given an effect."""

    async def given(self, fork: RunId, key: Key) -> Given | None:
        """Return what the fork was given for the call of a key."""

    async def find(
        self, fork: RunId, spans: Sequence[Span], wanted: Wanted, besides: Sequence[Key] = (), *, in_place: bool
    ) -> Effect | None:
        """Return the first effect of the spans that may answer the call and was not given yet, nor is one of `besides`.

        `in_place` it is an effect of the call's own place, whatever became of it. Else it is one with the call's
        identity and an outcome: that of its place, else with the call's very arguments, else the earliest.
        """

    async def give(self, fork: RunId, key: Key, origin: Key, token: AttemptToken) -> Given | None:
        """Give an effect for the call of a key, unless it has one; None where the effect was given for another."""

    async def deliver(self, fork: RunId, origins: Sequence[Key]) -> None:
        """Note that the fork knows the outcomes of these effects of its record."""

    async def let(self, fork: RunId, tool: str) -> list[Key]:
        """Return the keys of the tool's calls that were let run in the fork."""

    async def is_let(self, fork: RunId, key: Key) -> bool:
        """Say whether the call of a key was let run in the fork, whatever its tool."""

    async def let_run(self, fork: RunId, tool: str, key: Key, most: int | None) -> bool:
        """Let the call of a key run, unless as many others as `most` are let; say whether it may."""
