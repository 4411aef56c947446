"""What every store must do with approvals: ask once, count one decision, and find what was decided."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from guard.core.approvals import Ballot, Counted, Edit, NotCounted, Question, Repeated
from guard.core.effects import SECOND, Duration, Key, TenantId
from guard.ports.approvals import ApprovalFilter, SameAs, Standing, Within
from guard.ports.store import Store
from tests.contract.given import TENANT, key
from tests.contract.rivals import compete, decide_the_same

YES = Ballot(person="bob", verdict="approve", reason="fine")
NO = Ballot(person="carol", verdict="deny", reason="too much")
LESS = Edit(b'{"amount":60}', b"less")
IN_RUN = Within("run-1")


def question(number: int = 1, **said: Any) -> Question:
    """Return what is asked, with every optional field filled but the deadline."""
    asked = Question(
        key=key(number),
        round=1,
        tool="refund",
        tool_version=3,
        run="run-1",
        digest=b"asked-" + bytes([number]),
        arguments='{"to":"Zoë"}'.encode(),
        summary="Refund 80 EUR to Zoë",
        evidence=b'{"because":"rule"}',
        requester="agent-7",
        quorum=2,
        four_eyes=False,
    )
    return replace(asked, **said)


async def asked(store: Store, number: int = 1, **said: Any) -> UUID:
    """Ask, where one approval is enough; return the approval's id."""
    return (await store.approvals.ask(TENANT, question(number, quorum=1, **said))).approval.id


async def standing(store: Store, approval: UUID) -> Standing:
    """Read an approval that must be there."""
    found = await store.approvals.get(TENANT, approval)
    assert found is not None
    return found


async def test_a_question_comes_back_as_it_was_asked(store: Store) -> None:
    made = await store.approvals.ask(TENANT, question())
    assert (made.approval.question, made.approval.asked_at, made.approval.expires_at) == (question(), made.at, None)
    assert made.approval.state_at(made.at) == "open"
    assert (await standing(store, made.approval.id)).approval == made.approval
    latest = await store.approvals.latest(TENANT, key(1))
    assert latest is not None
    assert latest.approval == made.approval


async def test_it_is_asked_once_for_a_key_and_a_round(store: Store) -> None:
    standings = await asyncio.gather(*(store.approvals.ask(TENANT, question()) for _ in range(8)))
    assert len({made.approval.id for made in standings}) == 1
    other = await store.approvals.ask(TENANT, question(2))
    assert other.approval.id != standings[0].approval.id


async def test_the_deadline_is_counted_by_the_database_from_when_it_was_asked(store: Store) -> None:
    made = await store.approvals.ask(TENANT, question(deadline=Duration(600 * SECOND)))
    assert made.approval.expires_at == made.at + 600 * SECOND


async def test_a_quorum_of_two_is_filled_by_two(store: Store) -> None:
    approval = (await store.approvals.ask(TENANT, question())).approval.id
    first = await store.approvals.decide(TENANT, approval, replace(YES, edit=LESS), IN_RUN)
    again = await store.approvals.decide(TENANT, approval, replace(YES, edit=LESS), IN_RUN)
    differs = await store.approvals.decide(TENANT, approval, Ballot(person="carol", verdict="approve"), IN_RUN)
    second = await store.approvals.decide(
        TENANT, approval, Ballot(person="carol", verdict="approve", edit=LESS), IN_RUN
    )
    assert first is not None
    assert again is not None
    assert differs is not None
    assert second is not None
    assert isinstance(first.said, Counted)
    assert (again.said, differs.said) == (Repeated(), NotCounted("other arguments"))
    assert isinstance(second.said, Counted)
    read = (await standing(store, approval)).approval
    assert read == second.standing.approval
    assert (read.decided, read.edit, read.decided_at) == ("approved", LESS, second.standing.at)
    assert [(vote.person, vote.reason, vote.edited_digest) for vote in read.votes] == [
        ("bob", "fine", b"less"),
        ("carol", None, b"less"),
    ]


async def test_a_denial_is_found_by_the_digest_of_the_arguments_in_its_run(store: Store) -> None:
    approval = await asked(store)
    told = await store.approvals.decide(TENANT, approval, NO, IN_RUN)
    assert told is not None
    assert told.standing.approval.decided == "denied"
    found = await store.approvals.denied(TENANT, "run-1", "refund", question().digest)
    assert found == told.standing.approval
    for run, tool, digest in (
        ("run-2", "refund", question().digest),
        ("run-1", "pay", question().digest),
        ("run-1", "refund", b"other"),
    ):
        assert await store.approvals.denied(TENANT, run, tool, digest) is None


async def test_what_was_edited_is_found_once_it_is_approved(store: Store) -> None:
    approval = (await store.approvals.ask(TENANT, question())).approval.id
    await store.approvals.decide(TENANT, approval, replace(YES, edit=LESS), IN_RUN)
    assert await store.approvals.edited(TENANT, IN_RUN, "refund", b"less") is None
    await store.approvals.decide(TENANT, approval, Ballot(person="carol", verdict="approve", edit=LESS), IN_RUN)
    for within in (IN_RUN, Within(None)):
        found = await store.approvals.edited(TENANT, within, "refund", b"less")
        assert found is not None
        assert found.id == approval
    assert await store.approvals.edited(TENANT, Within("run-2"), "refund", b"less") is None


async def test_arguments_that_another_question_has_are_not_put_in(store: Store) -> None:
    one, other = await asked(store, 1), await asked(store, 2)
    theirs = Edit(b"{}", question(2).digest)
    told = await store.approvals.decide(TENANT, one, replace(YES, edit=theirs), IN_RUN)
    assert told is not None
    assert told.said == SameAs(key(2))
    assert (await standing(store, one)).approval.votes == ()
    elsewhere = await store.approvals.decide(TENANT, other, replace(YES, edit=LESS), IN_RUN)
    assert elsewhere is not None
    told = await store.approvals.decide(TENANT, one, replace(YES, edit=LESS), IN_RUN)
    assert told is not None
    assert told.said == SameAs(key(2))
    told = await store.approvals.decide(TENANT, one, replace(YES, edit=LESS), None)
    assert told is not None
    assert isinstance(told.said, Counted)


async def test_a_question_is_taken_back_with_who_and_why(store: Store) -> None:
    approval = await asked(store)
    told = await store.approvals.cancel(TENANT, approval, "carol", "not needed")
    assert told is not None
    read = (await standing(store, approval)).approval
    assert (read.decided, read.cancelled_by, read.cancel_reason) == ("cancelled", "carol", "not needed")
    assert read.decided_at == told.standing.at
    again = await store.approvals.cancel(TENANT, approval, None, "again")
    assert again is not None
    assert again.said == Repeated()


@pytest.mark.parametrize(("ballot", "becomes"), [(None, "cancelled"), (YES, "cancelled"), (NO, "denied")])
async def test_a_later_round_takes_back_what_still_covers(store: Store, ballot: Ballot | None, becomes: str) -> None:
    first = await asked(store)
    if ballot is not None:
        await store.approvals.decide(TENANT, first, ballot, IN_RUN)
    second = await store.approvals.ask(TENANT, question(round=2))
    assert (await standing(store, first)).approval.decided == becomes
    latest = await store.approvals.latest(TENANT, key(1))
    assert latest is not None
    assert (latest.approval.id, latest.approval.decided) == (second.approval.id, None)


async def test_there_is_nothing_where_nothing_was_asked_or_another_tenant_did(store: Store) -> None:
    approval = await asked(store)
    other = TenantId(2)
    assert await store.approvals.get(TENANT, uuid4()) is None
    assert await store.approvals.get(other, approval) is None
    assert await store.approvals.latest(TENANT, Key(b"x" * 32)) is None
    assert await store.approvals.decide(other, approval, YES, None) is None
    assert await store.approvals.cancel(other, approval, "bob", "x") is None
    with pytest.raises(LookupError):
        await store.approvals.ask(other, question())


async def test_a_listing_is_filtered_by_state_run_and_tool_a_page_at_a_time(store: Store) -> None:
    wait, approved, denied = await asked(store, 1), await asked(store, 2), await asked(store, 3, tool="pay")
    expired = await asked(store, 4, run="run-2", deadline=Duration(0))
    taken = await asked(store, 5)
    await store.approvals.decide(TENANT, approved, YES, IN_RUN)
    await store.approvals.decide(TENANT, denied, NO, IN_RUN)
    await store.approvals.cancel(TENANT, taken, None, "x")

    async def listed(**chosen: Any) -> list[UUID]:
        found, _, cursor = await store.approvals.page(TENANT, ApprovalFilter(**chosen))
        assert cursor is None
        return [approval.id for approval in found]

    assert await listed() == [taken, expired, denied, approved, wait]
    assert await listed(state="open") == [wait]
    assert await listed(state="approved") == [approved]
    assert await listed(state="denied") == [denied]
    assert await listed(state="expired") == [expired]
    assert await listed(state="cancelled") == [taken]
    assert await listed(run="run-2") == [expired]
    assert await listed(tool="pay") == [denied]
    first, at, cursor = await store.approvals.page(TENANT, ApprovalFilter(limit=3))
    assert cursor is not None
    assert first[1].state_at(at) == "expired"
    rest, _, end = await store.approvals.page(TENANT, ApprovalFilter(limit=3, after=cursor))
    assert ([approval.id for approval in (*first, *rest)], end) == ([taken, expired, denied, approved, wait], None)
    with pytest.raises(ValueError, match="cursor"):
        await store.approvals.page(TENANT, ApprovalFilter(after="nonsense"))


async def test_of_rivals_in_several_processes_one_decides(store: Store, database_url: str) -> None:
    approvals = [await asked(store, number) for number in range(30)]
    said = compete(database_url, decide_the_same, 3)
    for at, approval in enumerate(approvals):
        assert Counter(words[at] for words in said) == {"counted": 1, "decided": 2}
        assert len((await standing(store, approval)).approval.votes) == 1


async def test_of_two_who_edit_to_the_same_arguments_at_once_one_is_refused(store: Store) -> None:
    for number in range(10):
        run, digest = f"race-{number}", b"race-%d" % number
        ids = [await asked(store, 100 + 2 * number + at, run=run) for at in (0, 1)]
        told = await asyncio.gather(
            *(store.approvals.decide(TENANT, one, replace(YES, edit=Edit(b"{}", digest)), Within(run)) for one in ids)
        )
        kinds = Counter(type(one.said) for one in told if one is not None)
        assert kinds == {Counted: 1, SameAs: 1}
