"""What the service tells of itself is the same however often it is told, and holds no arguments."""

from uuid import UUID

import msgspec
import pytest

from guard.core.approvals import Approval, Question, Vote
from guard.core.effects import Instant, Key, TenantId
from guard.core.outbox import Place
from guard.core.own_events import staged_event
from twiceshy_contract.destinations import LogDestination

NOW = Instant(1_700_000_000_000_000)
PLACE = Place(id=7, name="ops", state="active", settings=LogDestination())
OPEN = Approval(
    id=UUID(int=1),
    tenant=TenantId(1),
    question=Question(
        key=Key(b"k" * 32),
        round=1,
        tool="refund",
        tool_version=1,
        run="r",
        digest=b"d",
        arguments=b'{"card":"4111"}',
        summary="Refund 80",
        evidence=b"{}",
        requester=None,
    ),
    asked_at=NOW,
    expires_at=None,
)
APPROVED = Vote(person="alice", verdict="approve", at=NOW)
DENIED = Vote(person="bob", verdict="deny", at=NOW, reason="no")


def data(approval: Approval) -> dict[str, object]:
    body = msgspec.json.decode(staged_event("approval.decided", approval, PLACE, NOW).body)
    found: dict[str, object] = body["data"]
    return found


def test_an_event_is_a_message_of_its_type_for_one_destination() -> None:
    row = staged_event("approval.requested", OPEN, PLACE, NOW)
    assert (row.destination_id, row.destination, row.type, row.content_type) == (
        7, "ops", "approval.requested", "application/json"
    )  # fmt: skip
    assert msgspec.json.decode(row.body) == {
        "type": "approval.requested",
        "at": "2023-11-14T22:13:20.000000Z",
        "data": {
            "approval": "00000000-0000-0000-0000-000000000001",
            "key": (b"k" * 32).hex(),
            "tool": "refund",
            "run": "r",
            "summary": "Refund 80",
            "state": "open",
            "decided_by": [],
            "reason": None,
        },
    }


@pytest.mark.parametrize(
    ("said", "state", "by", "reason"),
    [
        ({"decided": "approved", "votes": (APPROVED,)}, "approved", ["alice"], None),
        ({"decided": "denied", "votes": (APPROVED, DENIED)}, "denied", ["bob"], "no"),
        ({"decided": "denied"}, "denied", [], None),
        ({"decided": "cancelled", "cancelled_by": "ann", "cancel_reason": "wrong"}, "cancelled", ["ann"], "wrong"),
        ({"decided": "cancelled", "cancel_reason": "its run is over"}, "cancelled", [], "its run is over"),
        ({"expires_at": NOW}, "expired", [], None),
    ],
)
def test_who_decided_and_why_is_told(said: dict[str, object], state: str, by: list[str], reason: str | None) -> None:
    told = data(msgspec.structs.replace(OPEN, **said))
    assert (told["state"], told["decided_by"], told["reason"]) == (state, by, reason)


def test_an_id_is_that_of_what_is_told_and_to_whom() -> None:
    approved = msgspec.structs.replace(OPEN, decided="approved", votes=(APPROVED,))
    cancelled = msgspec.structs.replace(approved, decided="cancelled")
    other = msgspec.structs.replace(PLACE, id=8)
    ids = [
        staged_event("approval.requested", OPEN, PLACE, NOW).message,
        staged_event("approval.requested", OPEN, other, NOW).message,
        staged_event("approval.decided", approved, PLACE, NOW).message,
        staged_event("approval.decided", cancelled, PLACE, NOW).message,
    ]
    assert len(set(ids)) == 4
    assert staged_event("approval.requested", OPEN, PLACE, Instant(NOW + 1)).message == ids[0]
