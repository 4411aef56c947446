"""Wire structs of approvals: what a person is asked, and what persons have said."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from twiceshy_contract.names import Person, Reason
from twiceshy_contract.wire import EffectKey

ApprovalState = Literal["open", "approved", "denied", "expired", "cancelled"]
"""`expired`: nobody decided before the deadline, which is no denial. `cancelled`: the question was taken back."""
Verdict = Literal["approve", "deny"]
ApprovalWait = Annotated[float, msgspec.Meta(ge=0, le=30)]


class _Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A body that a client sends."""


class DecideRequest(_Request, frozen=True, kw_only=True):
    """A person decides. Said again by the same person, the same is taken once.

    `arguments`, with `approve`, are to be run in the place of those that were asked for; all who approve must agree on
    them. `by` is who decides; where the service knows its approvers by their tokens, that is the token's name, and may
    be left out.
    """

    verdict: Verdict
    by: Person | None = None
    reason: Reason | None = None
    arguments: dict[str, object] | None = None


class CancelApprovalRequest(_Request, frozen=True, kw_only=True):
    """The question is taken back: who says so, and why. What it was asked for does not run."""

    reason: Reason
    by: Person | None = None


class VoteView(msgspec.Struct, frozen=True, kw_only=True):
    """What one person said, and whether with other arguments than those that were asked for."""

    by: str
    verdict: Verdict
    at: str
    reason: str | None
    edited: bool


class ApprovalView(msgspec.Struct, frozen=True, kw_only=True):
    """An approval at the database's time `as_of`.

    It is bound to the effect `key`, to the `arguments` and to the version of the tool, and spent by that effect: it
    covers all its attempts. `round` counts the questions about one effect. `quorum` is how many must approve; one
    denial denies. With `four_eyes` the `requester` may not decide. `edited` are the arguments that run in the place of
    `arguments`. `evidence` says why a person is asked.
    """

    id: UUID
    key: EffectKey
    round: int
    state: ApprovalState
    tool: str
    tool_version: int
    run: str | None
    summary: str
    arguments: dict[str, object]
    edited: dict[str, object] | None
    evidence: dict[str, object]
    requester: str | None
    quorum: int
    four_eyes: bool
    decisions: tuple[VoteView, ...]
    asked_at: str
    expires_at: str | None
    decided_at: str | None
    cancelled_by: str | None
    reason: str | None
    as_of: str


class ApprovalPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of approvals, newest first; `next` is the `after` of the next page."""

    items: tuple[ApprovalView, ...]
    next: str | None
