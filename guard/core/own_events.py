"""What the service tells of itself: that a person is asked, and what became of that.

Only what an operator's summary says travels: arguments may be nobody's business at the other end.
"""

import msgspec

from guard.core.approvals import Approval
from guard.core.effects import Duration, Instant, moment
from guard.core.outbox import JSON, Place, Staged, message_id
from twiceshy_contract.destinations import OwnEvent


def staged_event(event: OwnEvent, approval: Approval, place: Place, at: Instant) -> Staged:
    """Return the message that tells one destination of an approval as it stands at this moment.

    Its id follows from what it tells, so that the same told twice makes the same row.
    """
    state = approval.state_at(at)
    question = approval.question
    told = f"{event}/{state}".encode()
    body = {
        "type": event,
        "at": moment(at).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "data": {
            "approval": str(approval.id),
            "key": question.key.hex(),
            "tool": question.tool,
            "run": question.run,
            "summary": question.summary,
            "state": state,
            "decided_by": _deciders(approval),
            "reason": _reason(approval),
        },
    }
    return Staged(
        message=message_id(approval.id.bytes + told, place.id),
        destination_id=place.id,
        destination=place.name,
        lane=None,
        type=event,
        recipient=None,
        content_type=JSON,
        headers=b"{}",
        body=msgspec.json.encode(body),
        delay=Duration(0),
        not_after=Duration(0),
    )


def _deciders(approval: Approval) -> list[str]:
    """Name who decided; nobody where it is open, or was taken back by the service itself."""
    if approval.decided is None:
        return []
    if approval.decided == "cancelled":
        return [] if approval.cancelled_by is None else [approval.cancelled_by]
    verdict = "approve" if approval.decided == "approved" else "deny"
    return [vote.person for vote in approval.votes if vote.verdict == verdict]


def _reason(approval: Approval) -> str | None:
    if approval.decided == "denied" and approval.denial is not None:
        return approval.denial.reason
    return approval.cancel_reason
