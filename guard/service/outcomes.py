"""What a use case answers: values that the web layer turns into HTTP, each matched once."""

import msgspec

from guard.core.effects import AttemptToken, Duration, Effect, Instant
from guard.service.records import Record
from twiceshy_contract.problems import ProblemCode


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt holds a lease of this length. `is_recorded`: the recorded arguments are the ones to run."""

    effect: Effect
    token: AttemptToken
    at: Instant
    lease: Duration
    is_recorded: bool


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """It happened before. `drift` names content that differs from the record.

    `record` is where the answer may be kept, for the next call that is the same to the letter.
    """

    effect: Effect
    drift: tuple[str, ...]
    record: Record | None = None


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The report, renewal or resolution was taken: the effect as it stands."""

    effect: Effect
    at: Instant


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the published list, what it is about, and when to ask again (seconds)."""

    code: ProblemCode
    detail: str
    effect: Effect | None = None
    paths: tuple[str, ...] = ()
    retry_after: float | None = None


BeginOutcome = Granted | Replayed | Refused
ReportOutcome = Settled | Refused
