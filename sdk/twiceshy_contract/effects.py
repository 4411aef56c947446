"""Wire structs of an effect: begin and its answers, commit, fail, renew, resolve, release, and the views."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from twiceshy_contract.events import MAX_EVENTS, Event
from twiceshy_contract.messages import Messages
from twiceshy_contract.names import (
    BusinessKey,
    CallerStep,
    FenceNumber,
    KeyRule,
    LeaseSeconds,
    Occurrence,
    Person,
    Priority,
    PublicState,
    Reason,
    RunName,
    ToolName,
    WaitSeconds,
    Worker,
)
from twiceshy_contract.outcomes import ErrorOutcome, TypeName
from twiceshy_contract.probes import ProbeView
from twiceshy_contract.wire import EffectKey


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body that a client sends."""


class BeginRequest(_Request, frozen=True, kw_only=True):
    """Ask for the right to run a tool once. `run` or `business_key` must name the scope.

    `attempt` is a UUID that the client draws at random for this try; asking again with it is safe.

    `delivered` are keys whose outcomes the caller knows from earlier answers of this run. `distinct` says that this
    is another intent than one that is in doubt. `requester` is the person for whom the agent acts. `priority` is that
    of the hold on the tool's resource. `saga` is the saga that the effect belongs to, `compensates` the key of the
    saga's effect that it takes back. `events` are those of the run's log that may not be kept yet, by the writer of
    this `epoch`: they are appended before anything else, and stay, whatever the answer is. `nth` says in a fork which
    of the calls like this one that its program has made since it was started this is: the n-th is given what the n-th
    was given before.
    """

    tool: ToolName
    arguments: dict[str, object]
    attempt: UUID
    run: RunName | None = None
    business_key: BusinessKey | None = None
    step: CallerStep | None = None
    occurrence: Occurrence = 1
    lease_seconds: LeaseSeconds | None = None
    wait_seconds: WaitSeconds = 0
    worker: Worker | None = None
    reopen: bool = False
    delivered: Annotated[tuple[EffectKey, ...], msgspec.Meta(max_length=1000)] = ()
    distinct: bool = False
    requester: Person | None = None
    priority: Priority = 0
    saga: RunName | None = None
    compensates: EffectKey | None = None
    events: Annotated[tuple[Event, ...], msgspec.Meta(max_length=MAX_EVENTS)] = ()
    epoch: Annotated[int, msgspec.Meta(ge=1)] | None = None
    nth: Occurrence | None = None

    def __post_init__(self) -> None:
        if self.events and (self.epoch is None or self.run is None):
            raise ValueError("`events` are of a `run`, and written by its writer: name the `epoch` that it was given")


class ReportedError(ErrorOutcome, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error as an attempt reports it."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a tool: `result`, what it returned in tagged form, or `error`, why it refused. Never both.

    `result_type` names the type that the result had, where its tagged form does not tell.
    """

    result: object = msgspec.UNSET
    error: ErrorOutcome | msgspec.UnsetType = msgspec.UNSET
    result_type: str | None = None

    @property
    def failure(self) -> ErrorOutcome | None:
        """The error, where the tool refused."""
        return self.error if isinstance(self.error, ErrorOutcome) else None


class Opaque(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is kept of a result that is too large or cannot be written as JSON."""

    type: str
    size: int | None
    sha256: str | None
    reason: str


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Content arguments that differ from the recorded call, as JSON Pointers."""

    content: tuple[str, ...]


class RepeatOf(msgspec.Struct, frozen=True, kw_only=True):
    """The earlier call that this one repeats: its run and its step there."""

    run: str | None
    step: int | None


class SharedFrom(msgspec.Struct, frozen=True, kw_only=True):
    """The answer is another run's: the run that did it (null: none was named)."""

    run: str | None


Provenance = Literal["recorded", "simulator", "injected"]
"""Where a fork's answer comes from: its parent's record, the tool's simulator, or a person."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What every answer about one effect carries. `step` counts the run's effects; it enters no key.

    `next_seq` is where the run's log goes on, where the request brought events.
    """

    key: EffectKey
    state: PublicState
    tool: str
    tool_version: int
    run: str | None
    step: int | None
    occurrence: int
    generation: int
    fence: int
    next_seq: int | msgspec.UnsetType = msgspec.UNSET


class ExecuteAnswer(Answer, frozen=True, kw_only=True, tag_field="decision", tag="execute"):
    """You hold the lease: run the tool, then commit or fail with this fence.

    `arguments`, where not null, are the ones to run instead of yours. Count `lease_seconds_left` from before
    you sent the request. Send `downstream_key` to a provider that takes an idempotency key.
    """

    attempt: UUID
    arguments: dict[str, object] | None
    downstream_key: str
    lease_expires_at: str
    lease_seconds: float
    lease_seconds_left: float


class ReplayAnswer(Answer, frozen=True, kw_only=True, tag_field="decision", tag="replay"):
    """It happened before: the recorded result or error. `said` tells a model so, such as `done at step 3`."""

    outcome: Outcome
    committed_at: str
    repeat_of: RepeatOf
    drift: Drift | None = None
    shared: SharedFrom | None = None
    said: str = ""


class StubAnswer(msgspec.Struct, frozen=True, kw_only=True, tag_field="decision", tag="stub"):
    """A fork may not run the tool: an outcome in its place, where it comes from, and the rule that decided so.

    `origin` is the key of the effect whose outcome it is: once it is known, send it in `delivered`.
    """

    tool: str
    tool_version: int
    run: str
    outcome: Outcome
    provenance: Provenance
    rule: str
    origin: EffectKey | None = None
    drift: Drift | None = None
    next_seq: int | msgspec.UnsetType = msgspec.UNSET


class AwaitAnswer(Answer, frozen=True, kw_only=True, tag_field="decision", tag="await_approval"):
    """A person must decide; no lease is held meanwhile. Read `/v1/approvals/{approval}` with `wait` to hear it."""

    approval: UUID
    summary: str
    quorum: int
    expires_at: str | None


BeginAnswer = ExecuteAnswer | ReplayAnswer | StubAnswer | AwaitAnswer


class CommitRequest(_Request, frozen=True, kw_only=True):
    """The tool has run: record its result, in tagged form, and stage its messages in the same transaction.

    `result_type` names the type that it had, where the tagged form does not tell: a replay into another type can
    then say what was put in.
    """

    attempt: UUID
    fence: FenceNumber
    result: object
    result_type: TypeName | None = None
    outbox: Messages = ()


class FailRequest(_Request, frozen=True, kw_only=True):
    """The tool has not run to its end: `not_applied` (try again later), `rejected` (final), or `unknown`."""

    attempt: UUID
    fence: FenceNumber
    kind: Literal["not_applied", "rejected", "unknown"]
    error: ReportedError
    retry_after: Annotated[float, msgspec.Meta(ge=0, le=86_400)] | None = None


class RenewRequest(_Request, frozen=True, kw_only=True):
    """The tool is still running: move the lease's deadline."""

    attempt: UUID
    fence: FenceNumber
    lease_seconds: LeaseSeconds | None = None


class ResolveRequest(_Request, frozen=True, kw_only=True):
    """A person or a probe settles doubt. `fence` is the one that was looked at.

    An effect that was applied and whose `result` nobody gives (null is a result) is recorded with an opaque one.

    `as_of` is the member of that name of the view that was read before the provider was asked: word that nothing
    was applied is then weighed as of that moment. Without it, the word counts as just learned.
    """

    as_: Literal["applied", "not_applied", "closed"] = msgspec.field(name="as")
    fence: FenceNumber
    reason: Reason
    result: object = msgspec.UNSET
    outbox: Messages = ()
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class EffectAnswer(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """The effect after commit, fail, renew, resolve or release. The lease's times only while it is held."""

    outcome: Outcome | None = None
    committed_at: str | None = None
    lease_expires_at: str | None = None
    lease_seconds_left: float | None = None
    retry_after_seconds: float | None = None


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One try: its fence, when its lease was granted and ends, what it reported, whether it is settled."""

    fence: int
    granted_at: str
    deadline: str
    report: str
    reported_at: str | None
    settled: bool


class EvidenceView(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that contradicts the record: who reported what, and when."""

    at: str
    attempt: UUID | None
    kind: str
    body: object


class EffectSummary(Answer, frozen=True, kw_only=True):
    """An effect as a line of a listing. Since `expired_at` its arguments and outcome are gone."""

    rule: KeyRule
    business_key: str | None
    began_at: str
    ended_at: str | None
    lease_expires_at: str | None
    worker: str | None
    closed: bool
    expired_at: str | None = None


class EffectView(EffectSummary, frozen=True, kw_only=True):
    """An effect with everything that is known of it, at the database's time `as_of`.

    While it is in doubt, ask the provider whether nothing was applied only after `settles_at`. `probe` is how the
    questions that are asked by themselves stand. `messages` are the ids of those that it staged.
    """

    as_of: str
    caller_step: str | None
    arguments: dict[str, object]
    outcome: Outcome | None
    downstream_key: str
    retry_at: str | None
    settles_at: str | None
    resolution: str | None
    attempts: tuple[AttemptView, ...]
    evidence: tuple[EvidenceView, ...]
    probe: ProbeView | None = None
    messages: tuple[UUID, ...] = ()


class EffectPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of effects, newest first; `next` is the `after` of the next page."""

    items: tuple[EffectSummary, ...]
    next: str | None
