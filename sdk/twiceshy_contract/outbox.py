"""Wire structs of the outbox: how messages are staged, asked for and told.

A message is staged in the transaction that records its effect as succeeded, and delivered by the relay from then on.
Its bytes are rendered and frozen when it is staged. `message.epoch` is its identity everywhere: the receiver sees the
same one however often it is sent, and another only where a person sends it anew on purpose.
"""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from twiceshy_contract.destinations import DestinationName
from twiceshy_contract.effects import Answer, BeginRequest
from twiceshy_contract.messages import SomeMessages
from twiceshy_contract.names import Person, Reason, RunName
from twiceshy_contract.wire import EffectKey

MessageState = Literal[
    "pending", "claimed", "sending", "dead", "unknown", "parked", "delivered", "cancelled", "withdrawn"
]
"""`dead`: it cannot be delivered, or was tried too often. `unknown`: it may have arrived. `parked`: it waits for a
person. `withdrawn`: its effect was taken back before it was sent."""
TryResult = Literal["retryable", "permanent", "unknown", "expired"]
"""What a try came to that did not deliver; `expired`: whoever sent it was gone."""


class StageRequest(BeginRequest, frozen=True, kw_only=True):
    """Begin and commit in one: record that the intent is done by staging its messages, under the same key and rules.

    `rendered_from` are the arguments that the messages were rendered from, where they are not the call's own: those
    that a person has put in their place.
    """

    messages: SomeMessages
    rendered_from: dict[str, object] | None = None


class StagedAnswer(Answer, frozen=True, kw_only=True, tag_field="decision", tag="staged"):
    """The messages are staged and will be delivered: one id for every row, in the order of messages and recipients."""

    messages: tuple[UUID, ...]
    committed_at: str


class RenderAnswer(Answer, frozen=True, kw_only=True, tag_field="decision", tag="render"):
    """Nothing is staged: a person has put `arguments` in the place of yours. Render the messages anew, and ask again.

    Send them as `rendered_from`, with the call's own arguments.
    """

    arguments: dict[str, object]


class AttemptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One try that did not deliver: what came of it, why, and when."""

    number: int
    epoch: int
    at: str
    result: TryResult
    detail: str


class MessageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A message as a line of a listing. `note` says why it stands as it does, `receipt` what its receiver said."""

    id: UUID
    epoch: int
    state: MessageState
    destination: str
    lane: str | None
    type: str | None
    recipient: str | None
    key: EffectKey | None
    run: str | None
    attempts: int
    staged_at: str
    due_at: str | None
    settled_at: str | None
    note: str | None
    receipt: str | None


class MessageView(MessageSummary, frozen=True, kw_only=True):
    """A message with its bytes, as text where they are text, and the tries that failed."""

    content_type: str
    headers: dict[str, str]
    body: str
    size: int
    tries: tuple[AttemptLine, ...]


class MessagePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of messages, newest first; `next` is the `after` of the next page."""

    items: tuple[MessageSummary, ...]
    next: str | None


class RedriveRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An operator sends messages again: `retry` under the same identity, or `anew` as a deliberate second effect.

    Either one message by its `id`, or all that are in a `state` and, where given, of a destination.
    """

    as_: Literal["retry", "anew"] = msgspec.field(name="as")
    reason: Reason
    by: Person | None = None
    id: UUID | None = None
    state: Literal["dead", "unknown", "parked"] | None = None
    destination: DestinationName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000

    def __post_init__(self) -> None:
        if (self.id is None) == (self.state is None):
            raise ValueError("name one message by its `id`, or all of a `state`")


class CancelMessageRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An operator takes a message back that was not sent."""

    reason: Reason
    by: Person | None = None


class RedriveAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages are to be sent again, how many of those that were meant are left, and why the first of them."""

    redriven: int
    left: int = 0
    reasons: tuple[str, ...] = ()


class OutboxQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the listing. Without a state, all that is not over."""

    state: MessageState | None = None
    destination: DestinationName | None = None
    run: RunName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None
