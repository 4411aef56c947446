"""Wire structs of a run's log: intents and deliveries, as the SDK numbers them, and what they refer to.

A run's events count from 1 without a gap. An *intent* is written when the agent's code enters a boundary to the world,
a *delivery* when the outcome reaches that code again; a delivery names its intent. Values are in payload form: tagged
JSON in which `{"$blob": digest}` stands for a value that is kept by its content, and `{"$list": digest}` for a list
whose blob is a ListNode. A digest is the SHA-256 of a blob's text, in 64 lower-case hex digits.
"""

from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from twiceshy_contract.names import NAME_FORM, RunName, ToolName
from twiceshy_contract.outcomes import ErrorOutcome, TypeName
from twiceshy_contract.policies import Part, Pointer
from twiceshy_contract.wire import EffectKey

BLOB: Final = "$blob"
LIST: Final = "$list"
INLINE_BYTES: Final = 1024
"""A value whose text is longer is kept by its content."""
MAX_EVENTS: Final = 1000
"""The most events of one append."""
MAX_EVENT_BYTES: Final = 128 * 2**10
"""Of an event's own text. What it holds by content is not part of that."""
MAX_REFERENCES: Final = 2**16
"""What the events and blobs of one append may name."""
MAX_BLOB_BYTES: Final = 8 * 2**20
MAX_APPEND_BYTES: Final = 16 * 2**20

EventKind = Literal["llm_call", "tool_call", "time", "random", "uuid", "sleep", "child_run", "human", "custom"]
"""The boundaries between an agent's code and the world."""
OutcomeKind = Literal["result", "error", "unknown", "cancelled", "expired"]
"""How a boundary ended for the code: `unknown` and `expired` where no outcome could be told."""
Source = Literal["live", "recorded", "simulator", "injected", "override", "stand_in"]
"""Where an outcome comes from. Beside `live` and `recorded`, what follows from it is counterfactual."""

Seq = Annotated[int, msgspec.Meta(ge=1, le=2**53 - 1)]
"""An event's number in its run."""
Micros = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
"""Microseconds: of time since 1970-01-01 UTC by the recorder's clock, or of a duration."""
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
BoundaryName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NAME_FORM)]


class Intent(Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="phase", tag="intent"):
    """The code entered a boundary: `name` is the tool, model or function, `digest` what the call is matched by.

    `scope` is the path of named scopes around it, `child` the run that it starts. A `counterfactual` event follows
    from an outcome that the world did not give. In a fork, `origin` is the call of its parent's log that it stands for.
    `redacted` are the places that the sender has left out of the arguments before any were kept by their content.
    """

    seq: Seq
    at: Micros
    kind: EventKind
    name: BoundaryName
    digest: Digest
    arguments: object = msgspec.UNSET
    scope: Annotated[str, msgspec.Meta(max_length=500)] = ""
    child: RunName | None = None
    counterfactual: bool = False
    origin: Seq | None = None
    redacted: tuple[Pointer, ...] = ()


class ChildHead(Part, frozen=True, kw_only=True):
    """How far a child run had come when its outcome was delivered."""

    run: RunName
    events: Annotated[int, msgspec.Meta(ge=0)]


class Delivery(Part, frozen=True, kw_only=True, omit_defaults=True, tag_field="phase", tag="delivery"):
    """An outcome reached the code, `took` after its intent. `empty` says that its result holds nothing.

    `effect` and `step` are those of a guarded tool's effect.
    """

    seq: Seq
    at: Micros
    intent: Seq
    outcome: OutcomeKind
    took: Micros = 0
    value: object = msgspec.UNSET
    value_type: TypeName | None = None
    error: ErrorOutcome | msgspec.UnsetType = msgspec.UNSET
    empty: bool = False
    source: Source = "live"
    effect: EffectKey | None = None
    step: Annotated[int, msgspec.Meta(ge=0)] | None = None
    child: ChildHead | None = None
    counterfactual: bool = False


Event: TypeAlias = Intent | Delivery


class ListNode(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A list that is kept by its content: all of the list `after`, then `items` in payload form."""

    items: tuple[object, ...]
    after: Digest | None = None


class AppendRequest(Part, frozen=True, kw_only=True, omit_defaults=True):
    """Append events of a run in their order, by its writer of this `epoch`. What is there already may be among them.

    `blobs` are texts of JSON by their digests, of what the events name and the service may not have.
    """

    epoch: Annotated[int, msgspec.Meta(ge=1)]
    events: Annotated[tuple[Event, ...], msgspec.Meta(max_length=MAX_EVENTS)] = ()
    blobs: dict[Digest, str] = {}  # noqa: RUF012 - msgspec copies an empty one


class AppendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The run's log is kept up to `next_seq`, without it."""

    run: str
    next_seq: int


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a run's log in its order; `next` is the `after` of the next page (null: the log ends here)."""

    items: tuple[Event, ...]
    next: int | None


class ReadBlobsRequest(Part, frozen=True, kw_only=True):
    """Read blobs by their digests."""

    digests: Annotated[tuple[Digest, ...], msgspec.Meta(min_length=1, max_length=1000)]


class BlobsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Texts by their digests, as many as fit into one answer, in the order that was asked; `left` are the others.

    What is in neither is not kept.
    """

    blobs: dict[str, str]
    left: tuple[str, ...] = ()


class FoundEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a search found: its run and number there, its arguments, and how it ended (null: not yet).

    `arguments` are in payload form.
    """

    run: str
    seq: int
    at: int
    kind: EventKind
    name: str
    arguments: object
    outcome: OutcomeKind | None
    empty: bool | None


class FoundEvents(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a search, newest runs first; `next` is the `after` of the next page."""

    items: tuple[FoundEvent, ...]
    next: str | None


class EventQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Search calls by what is indexed of them.

    `argument` names one by its name at the top of the arguments, such as `jurisdiction`; `prefix` is how its text
    begins, `equals` all of it. `since` is by the clock of the database.
    """

    name: ToolName | None = None
    kind: EventKind | None = None
    argument: str | None = None
    prefix: str | None = None
    equals: str | None = None
    empty: bool | None = None
    outcome: OutcomeKind | None = None
    run: RunName | None = None
    workflow: str | None = None
    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None
