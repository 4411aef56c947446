"""What a use case answers: values that the web layer turns into HTTP, each matched once."""

from uuid import UUID

import msgspec

from guard.core.effects import AttemptToken, Duration, Effect, Instant, Key
from guard.core.holds import Hold
from guard.service.records import Record
from twiceshy_contract.effects import Provenance
from twiceshy_contract.problems import ProblemCode


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt holds a lease of this length. `arguments` are the ones to run in the place of the caller's.

    `is_new` says that this begin was granted it: the attempt had it not before.
    """

    effect: Effect
    token: AttemptToken
    at: Instant
    lease: Duration
    arguments: dict[str, object] | None = None
    is_new: bool = False


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """It happened before. `drift` names content that differs from the record.

    `record` is where the answer may be kept, for the next call that is the same to the letter. `is_shared` says that
    another run than the caller's did it.
    """

    effect: Effect
    drift: tuple[str, ...]
    record: Record | None = None
    is_shared: bool = False


class Stubbed(msgspec.Struct, frozen=True, kw_only=True):
    """A fork may not run the tool: an outcome in its place (JSON text), and which rule decided so.

    `drift` names content that differs from the record.
    """

    tool: str
    tool_version: int
    run: str
    outcome: bytes
    provenance: Provenance
    rule: str
    origin: Key | None = None
    drift: tuple[str, ...] = ()


class Awaiting(msgspec.Struct, frozen=True, kw_only=True):
    """A person must decide about the effect, which is pending."""

    effect: Effect
    approval: UUID
    summary: str
    quorum: int
    expires_at: Instant | None


class MessagesStaged(msgspec.Struct, frozen=True, kw_only=True):
    """The intent is done: its messages, by their ids, were staged with it and will be delivered."""

    effect: Effect
    at: Instant
    messages: tuple[UUID, ...]


class RenderAnew(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is staged: the messages were rendered from other arguments than these, which are the ones to run."""

    effect: Effect
    arguments: dict[str, object]


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The report, renewal or resolution was taken: the effect as it stands."""

    effect: Effect
    at: Instant


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A problem of the published list, what it is about, and when to ask again (seconds).

    `hold` is the claim that stands in the way, `pause` the key of a call at which a fork stopped.
    """

    code: ProblemCode
    detail: str
    effect: Effect | None = None
    paths: tuple[str, ...] = ()
    retry_after: float | None = None
    hold: Hold | None = None
    pause: Key | None = None


BeginOutcome = Granted | Replayed | Stubbed | Awaiting | Refused
StageOutcome = MessagesStaged | RenderAnew | Replayed | Stubbed | Awaiting | Refused
ReportOutcome = Settled | Refused
