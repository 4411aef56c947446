"""Approvals: a person must agree before an effect is executed, and what a person's word does.

One denial denies; as many approvals as the quorum approve, and all of them mean the same arguments. Nobody decides
twice, nor, with four eyes, about what they asked for themselves. The deadline is for deciding: what was approved in
time stays approved. What a decision does is said by `decide`; the store applies it to the row that it holds.
"""

from collections.abc import Sequence
from typing import Final, Literal, cast
from uuid import UUID

import msgspec

from guard.core.effects import Duration, Instant, Key, TenantId
from guard.core.templates import rendered_text, value_of
from twiceshy_contract.approvals import ApprovalState, Verdict
from twiceshy_contract.canonical import canonical
from twiceshy_contract.canonical import digest as digest_of
from twiceshy_contract.policies import ApprovalRule
from twiceshy_contract.refusals import JsonValue, Refusal

LONGEST_SUMMARY: Final = 2000
_CUT: Final = "…"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: whether an effect may run, with these arguments (JSON text) and no others."""

    key: Key
    round: int
    tool: str
    tool_version: int
    run: str | None
    digest: bytes
    arguments: bytes
    summary: str
    evidence: bytes
    requester: str | None
    quorum: int = 1
    four_eyes: bool = True
    deadline: Duration | None = None


class Edit(msgspec.Struct, frozen=True):
    """Arguments (JSON text) in the place of those that were asked for, as they are written, and their digest.

    `key` is that of the effect that a call with them would be; None where they name the effect that was asked for.
    """

    arguments: bytes
    digest: bytes
    key: Key | None = None

    @property
    def written(self) -> bytes:
        """The digest of the arguments to the letter, those too that name nothing."""
        return digest_of(cast("JsonValue", msgspec.json.decode(self.arguments)))


class Ballot(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says about a question."""

    person: str
    verdict: Verdict
    reason: str | None = None
    edit: Edit | None = None

    @property
    def edited_digest(self) -> bytes | None:
        """The digest of the arguments that the person put in, to the letter."""
        return None if self.edit is None else self.edit.written


class Vote(msgspec.Struct, frozen=True, kw_only=True):
    """What a person has said."""

    person: str
    verdict: Verdict
    at: Instant
    reason: str | None = None
    edited_digest: bytes | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A question as it was asked, and what became of it; `decided` is None while it waits or has run out."""

    id: UUID
    tenant: TenantId
    question: Question
    asked_at: Instant
    expires_at: Instant | None
    decided: Literal["approved", "denied", "cancelled"] | None = None
    decided_at: Instant | None = None
    edit: Edit | None = None
    votes: tuple[Vote, ...] = ()
    cancelled_by: str | None = None
    cancel_reason: str | None = None

    def state_at(self, now: Instant) -> ApprovalState:
        """Say how it stands by the clock of the database."""
        if self.decided is not None:
            return self.decided
        return "expired" if self.expires_at is not None and self.expires_at <= now else "open"

    @property
    def edit_key(self) -> Key | None:
        """The key of the effect that its edit names."""
        return None if self.edit is None else self.edit.key

    @property
    def is_withdrawn(self) -> bool:
        """Whether it was approved and then taken back, so that another round may be asked."""
        return self.decided == "cancelled" and self.denial is None and len(self.votes) >= self.question.quorum

    @property
    def denial(self) -> Vote | None:
        """The word that denied it."""
        return next((vote for vote in self.votes if vote.verdict == "deny"), None)


Objection = Literal["decided", "expired", "own request", "decided before", "other arguments", "begun"]
"""Why a word does not count."""


class Counted(msgspec.Struct, frozen=True):
    """The word counts: the approval after it."""

    approval: Approval


class Repeated(msgspec.Struct, frozen=True):
    """The same was said before, and counted."""


class NotCounted(msgspec.Struct, frozen=True):
    """The word does not count, and why."""

    objection: Objection


Weighed = Counted | Repeated | NotCounted


def decide(approval: Approval, ballot: Ballot, now: Instant) -> Weighed:
    """Say what a person's word does to an approval."""
    before = next((vote for vote in approval.votes if _is_same_person(vote.person, ballot.person)), None)
    if before is not None and (before.verdict, before.edited_digest) == (ballot.verdict, ballot.edited_digest):
        return Repeated()
    state = approval.state_at(now)
    if state != "open":
        return NotCounted("expired" if state == "expired" else "decided")
    requester = approval.question.requester
    if approval.question.four_eyes and requester is not None and _is_same_person(ballot.person, requester):
        return NotCounted("own request")
    if before is not None:
        return NotCounted("decided before")
    return _count(approval, ballot, now)


def _is_same_person(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()


def _count(approval: Approval, ballot: Ballot, now: Instant) -> Counted | NotCounted:
    vote = Vote(
        person=ballot.person, verdict=ballot.verdict, at=now, reason=ballot.reason, edited_digest=ballot.edited_digest
    )
    votes = (*approval.votes, vote)
    if ballot.verdict == "deny":
        return Counted(msgspec.structs.replace(approval, votes=votes, decided="denied", decided_at=now))
    if any(other.edited_digest != vote.edited_digest for other in approval.votes):
        return NotCounted("other arguments")
    counted = msgspec.structs.replace(approval, votes=votes, edit=ballot.edit)
    if len(votes) < approval.question.quorum:
        return Counted(counted)
    return Counted(msgspec.structs.replace(counted, decided="approved", decided_at=now))


def cancel(approval: Approval, by: str | None, reason: str, now: Instant, *, has_begun: bool) -> Weighed:
    """Say what taking a question back does to it; what was approved is taken back until its effect has begun."""
    if approval.decided == "cancelled":
        return Repeated()
    state = approval.state_at(now)
    if state == "approved" and has_begun:
        return NotCounted("begun")
    if state not in ("open", "approved"):
        return NotCounted("expired" if state == "expired" else "decided")
    return Counted(
        msgspec.structs.replace(approval, decided="cancelled", decided_at=now, cancelled_by=by, cancel_reason=reason)
    )


def is_needed(rule: ApprovalRule | None, arguments: JsonValue) -> bool:
    """Say whether a rule wants a person for a call: unless its expression says exactly false."""
    if rule is None:
        return False
    if rule.when is None:
        return True
    try:
        return value_of(rule.when, {"arguments": arguments}) is not False
    except Refusal:
        return True


def is_stricter(rule: ApprovalRule, question: Question) -> bool:
    """Say whether a rule wants more persons, or others, than were asked."""
    return rule.quorum > question.quorum or (rule.four_eyes and not question.four_eyes)


def strictest(rules: Sequence[ApprovalRule]) -> ApprovalRule:
    """Return the rule that satisfies all of several, in the words of the first; the default where there is none."""
    if not rules:
        return ApprovalRule()
    deadlines = [rule.deadline_seconds for rule in rules if rule.deadline_seconds is not None]
    return msgspec.structs.replace(
        rules[0],
        quorum=max(rule.quorum for rule in rules),
        four_eyes=any(rule.four_eyes for rule in rules),
        deadline_seconds=min(deadlines, default=None),
    )


def summary_of(template: str | None, known: dict[str, JsonValue]) -> str:
    """Say what is asked, by the rule's template; without one, or where it fails, as the call is written."""
    said = ""
    if template is not None:
        try:
            said = rendered_text(template, known).strip()
        except Refusal:
            said = ""
    said = said or _call_in_words(known)
    return said if len(said) <= LONGEST_SUMMARY else said[: LONGEST_SUMMARY - len(_CUT)] + _CUT


def _call_in_words(known: dict[str, JsonValue]) -> str:
    arguments = known["arguments"]
    members = arguments.items() if isinstance(arguments, dict) else ()
    return f"{known['tool']}({', '.join(f'{name}={canonical(value).decode()}' for name, value in members)})"
