"""What an effect's life is, written from the text alone: DESIGN 3 and 4, and the decisions 4, 5 and 6.

Nothing of the guard is imported and nothing of it was copied. Time is whole seconds of a clock that the machine moves.
"""

from dataclasses import dataclass, field
from typing import Final, Literal

SETTLE_SECONDS: Final = 10
_LONGEST_BACKOFF: Final = 60

Word = str
"""What a verb is answered with: `execute`, `replay`, `ok`, or the code of a problem."""
State = Literal["pending", "executing", "succeeded", "failed", "in_doubt"]
EffectClass = Literal["side_effect", "idempotent"]
Rule = Literal["once", "step", "business_key"]


def stricter(one: EffectClass, other: EffectClass) -> EffectClass:
    """Return the class that allows less."""
    return "side_effect" if "side_effect" in (one, other) else "idempotent"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """What the registry holds of a tool."""

    name: str
    class_: EffectClass
    attempts: int = 3
    backoff: int = 0
    lease: int = 25
    window: int | None = None
    may_repeat: bool = False
    has_roles: bool = True

    def pause(self, tries: int) -> int:
        """The longest pause after so many tries; the true one is drawn from zero to it."""
        return min(self.backoff << max(tries - 1, 0), _LONGEST_BACKOFF)


@dataclass(frozen=True, kw_only=True)
class Version:
    """A version of a tool; versions differ in the class alone."""

    number: int
    class_: EffectClass


UNDECLARED: Final = Version(number=0, class_="side_effect")
"""The version of a tool that nobody has declared."""


@dataclass(kw_only=True)
class Attempt:
    """One try. A fence of zero is a token that ended before it was granted anything."""

    token: str
    fence: int = 0
    epoch: int = 0
    deadline: int = 0
    report: str = "none"
    reported_at: int | None = None
    is_settled: bool = False

    @property
    def is_unresolved(self) -> bool:
        """It was granted a lease, and nobody knows what it did."""
        return self.fence > 0 and self.report in ("none", "unknown") and not self.is_settled

    @property
    def is_ended(self) -> bool:
        """It reported, or somebody settled it: its token never gets a lease."""
        return self.report != "none" or self.is_settled

    @property
    def settles_at(self) -> int:
        """From when on word that nothing was applied may be believed."""
        return (self.deadline if self.reported_at is None else self.reported_at) + SETTLE_SECONDS


@dataclass(kw_only=True)
class Effect:
    """One intended action on the world, as it was recorded and as it stands.

    `tool` is the tool as it is declared today, `version` the one that the effect began under.
    """

    tool: Tool
    version: Version
    arguments: dict[str, object]
    state: State = "pending"
    fence: int = 0
    attempts: dict[str, Attempt] = field(default_factory=dict)
    tries: int = 0
    retry_from: int = 0
    retry_until: int = 0
    """The retry time lies between the two; they differ where the service drew it."""
    epoch: int = 0
    """Counts the downstream keys."""
    epoch_since: int | None = None
    """When the first lease was granted under the present downstream key."""
    is_closed: bool = False
    outcome: object = None
    committed_by: str | None = None
    resolution: object = None
    evidence: list[tuple[str, object]] = field(default_factory=list)
    is_cancelled: bool = False
    is_delivered: bool = False
    """Whether its run has shown that it knows the outcome."""

    @property
    def class_(self) -> EffectClass:
        """The class that counts, the stricter of two: a lowered one counts for new effects only."""
        return stricter(self.tool.class_, self.version.class_)

    @property
    def latest(self) -> Attempt | None:
        """The attempt that was granted a lease last."""
        return next((attempt for attempt in self.attempts.values() if attempt.fence == self.fence > 0), None)

    @property
    def is_final(self) -> bool:
        """It is over."""
        return self.state in ("succeeded", "failed")

    @property
    def is_exhausted(self) -> bool:
        """It was tried as often as its tool allows."""
        return self.tries >= self.tool.attempts

    def is_over(self, rule: Rule) -> bool:
        """Say whether the same call is meant anew: it may be repeated, or is idempotent and known to have ended.

        Not known: what a caller has given a name of its own, and what a person ended.
        """
        if self.state == "succeeded" and self.tool.may_repeat:
            return True
        is_known = self.is_delivered and rule == "once" and not self.is_cancelled
        return is_known and self.class_ == "idempotent"

    def unresolved(self, besides: Attempt | None = None) -> list[Attempt]:
        """Attempts of which nobody knows what they did."""
        return [attempt for attempt in self.attempts.values() if attempt.is_unresolved and attempt is not besides]

    def settles_at(self) -> int | None:
        """From when on word that nothing was applied may be believed; None where no attempt is unresolved."""
        return max((attempt.settles_at for attempt in self.unresolved()), default=None)

    def touch(self, now: int) -> None:
        """Judge the deadline, as every touch does. What is harmless may be tried again at once."""
        held = self.latest
        if self.state == "executing" and held is not None and now >= held.deadline:
            if self.class_ == "side_effect":
                self.state = "in_doubt"
            else:
                self.wait_until(now)

    def wait_until(self, earliest: int, latest: int | None = None) -> None:
        """Go to pending; the retry time is a moment between the two."""
        self.state, self.retry_from, self.retry_until = "pending", earliest, latest or earliest

    def may_run_beside(self, lease: int, now: int, version: Version | None = None) -> bool:
        """Say whether running again while an attempt is unresolved can do no harm.

        Always for an idempotent tool; else while the provider surely answers from its record until a lease from now
        and the settle time are over, and the version that the earlier attempts ran under promised it.
        """
        if self.class_ == "idempotent":
            return True
        if self.tool.window is None or self.epoch_since is None or version not in (None, self.version):
            return False
        return now + lease + SETTLE_SECONDS <= self.epoch_since + self.tool.window

    def grant(self, token: str, lease: int, now: int) -> None:
        """Let an attempt execute."""
        self.fence += 1
        self.tries += 1
        self.epoch_since = now if self.epoch_since is None else self.epoch_since
        self.attempts[token] = Attempt(token=token, fence=self.fence, epoch=self.epoch, deadline=now + lease)
        self.state, self.is_closed = "executing", False

    def renew_lease(self, attempt: Attempt, lease: int, now: int, version: Version | None = None) -> bool:
        """Move the deadline, never back; not where another attempt is in doubt and the window may end before it."""
        if self.unresolved(besides=attempt) and not self.may_run_beside(lease, now, version):
            return False
        attempt.deadline = max(attempt.deadline, now + lease)
        self.state, self.is_closed = "executing", False
        return True

    def clear(self, earliest: int, latest: int | None = None) -> None:
        """Go to pending because nothing was applied; what is tried next goes under another downstream key."""
        self.epoch, self.epoch_since, self.is_closed = self.epoch + 1, None, False
        self.wait_until(earliest, latest)

    def may_have_happened_twice(self, speaker: Attempt) -> bool:
        """Say whether another attempt may have acted as well, or nothing was believed of this one."""
        return not self._is_harmless([speaker]) and (speaker is not self.latest or self.state == "pending")

    def may_happen_twice(self, speaker: Attempt) -> bool:
        """Say whether a success of this attempt is a second one, beside the one on record."""
        granted = [attempt for attempt in self.attempts.values() if attempt.fence > 0]
        said = [attempt for attempt in granted if attempt.report == "succeeded"]
        return not self._is_harmless([*said, speaker]) and (len(granted) > 1 or bool(said))

    def _is_harmless(self, acted: list[Attempt]) -> bool:
        """Say whether all of these may have acted: of an idempotent tool, or under one key that a provider knows."""
        has_one_key = self.tool.window is not None and all(attempt.epoch == self.epoch for attempt in acted)
        return self.class_ == "idempotent" or has_one_key

    def end(self, state: State, outcome: object, by: str | None) -> None:
        """Record a result or an error."""
        self.state, self.outcome, self.committed_by, self.is_closed = state, outcome, by, False
