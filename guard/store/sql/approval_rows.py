"""How rows become approvals and votes, and the other way round."""

from typing import Any, Final, Literal
from uuid import UUID

import sqlalchemy as sa

from guard.core.approvals import Approval, Edit, Question, Vote
from guard.core.effects import Instant, Key, TenantId
from twiceshy_contract.approvals import Verdict

OPEN: Final = 1
APPROVED: Final = 2
DENIED: Final = 3
CANCELLED: Final = 4

_Decided = Literal["approved", "denied", "cancelled"] | None
_DECIDED: Final[dict[int, _Decided]] = {OPEN: None, APPROVED: "approved", DENIED: "denied", CANCELLED: "cancelled"}
_DECIDED_CODES: Final = {word: code for code, word in _DECIDED.items()}
_VERDICTS: Final[dict[int, Verdict]] = {1: "approve", 2: "deny"}
_VERDICT_CODES: Final = {word: code for code, word in _VERDICTS.items()}


def approval_of(row: sa.Row[Any], votes: tuple[Vote, ...]) -> Approval:
    """Return the approval of a row of `approvals` and its votes."""
    question = Question(
        key=Key(row.key),
        round=row.round,
        tool=row.tool,
        tool_version=row.tool_version,
        run=row.run,
        digest=row.digest,
        arguments=row.arguments,
        summary=row.summary,
        evidence=row.evidence or b"{}",
        requester=row.requester,
        quorum=row.quorum,
        four_eyes=bool(row.four_eyes),
    )
    return Approval(
        id=row.id,
        tenant=TenantId(row.tenant),
        question=question,
        asked_at=Instant(row.asked_at),
        expires_at=row.expires_at,
        decided=_DECIDED[row.state],
        decided_at=row.decided_at,
        edit=None
        if row.edited is None
        else Edit(row.edited, row.edited_digest, None if row.edited_key is None else Key(row.edited_key)),
        votes=votes,
        cancelled_by=row.cancelled_by,
        cancel_reason=row.cancel_reason,
    )


def question_row(question: Question, at: Instant) -> dict[str, object]:
    """Return the columns that hold what is asked, at this moment."""
    columns = {name: getattr(question, name) for name in Question.__struct_fields__ if name != "deadline"}
    expires_at = None if question.deadline is None else at + question.deadline
    return {**columns, "state": OPEN, "expires_at": expires_at}


def decided_row(approval: Approval) -> dict[str, object]:
    """Return the columns that a decision changes."""
    edit = approval.edit
    return {
        "state": _DECIDED_CODES[approval.decided],
        "decided_at": approval.decided_at,
        "edited": None if edit is None else edit.arguments,
        "edited_digest": None if edit is None else edit.digest,
        "edited_key": None if edit is None else edit.key,
        "cancelled_by": approval.cancelled_by,
        "cancel_reason": approval.cancel_reason,
    }


def vote_of(row: sa.Row[Any]) -> Vote:
    """Return the vote of a row of `approval_decisions`."""
    return Vote(
        person=row.person,
        verdict=_VERDICTS[row.verdict],
        at=Instant(row.at),
        reason=row.reason,
        edited_digest=row.edited_digest,
    )


def vote_row(approval: UUID, vote: Vote) -> dict[str, object]:
    """Return the row of a vote."""
    return {
        "approval": approval,
        "person": vote.person,
        "verdict": _VERDICT_CODES[vote.verdict],
        "at": vote.at,
        "reason": vote.reason,
        "edited_digest": vote.edited_digest,
    }
