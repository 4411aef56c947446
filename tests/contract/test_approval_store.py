"""What every store must do with approvals: ask once, count one decision, and find what was decided."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from guard.core.approvals import Ballot, Counted, Edit, NotCounted, Question, Repeated
from guard.core.effects import SECOND, Duration, Key, TenantId
from guard.ports.approvals import ApprovalFilter, SameAs, Standing
from guard.ports.store import Store
from tests.contract.given import TENANT, key
from tests.contract.rivals import compete, decide_the_same

YES = Ballot(person="bob", verdict="approve", reason="fine")
NO = Ballot(person="carol", verdict="deny", reason="too much")
LESS = Edit(b'{"amount":60}', b"less")


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
    first = await store.approvals.decide(TENANT, approval, replace(YES, edit=LESS))
    again = await store.approvals.decide(TENANT, approval, replace(YES, edit=LESS))
    differs = await store.approvals.decide(TENANT, approval, Ballot(person="carol", verdict="approve"))
    second = await store.approvals.decide(TENANT, approval, Ballot(person="carol", verdict="approve", edit=LESS))
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
        ("bob", "fine", LESS.written),
        ("carol", None, LESS.written),
    ]


async def test_a_denial_is_found_by_the_digest_of_the_arguments_in_its_run(store: Store) -> None:
    approval = await asked(store)
    told = await store.approvals.decide(TENANT, approval, NO)
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
    edit = replace(LESS, key=key(9))
    await store.approvals.decide(TENANT, approval, replace(YES, edit=edit))
    assert await store.approvals.edited(TENANT, key(9), b"other") == []
    await store.approvals.decide(TENANT, approval, Ballot(person="carol", verdict="approve", edit=edit))
    for named, digest in ((key(9), b"other"), (key(1), b"less")):
        (found,) = await store.approvals.edited(TENANT, named, digest)
        assert (found.id, found.edit) == (approval, edit)
    assert await store.approvals.edited(TENANT, key(1), b"other") == []
    assert await store.approvals.edited(TenantId(2), key(9), b"less") == []
    await store.approvals.cancel(TENANT, approval, None, "wrong")
    assert await store.approvals.edited(TENANT, key(9), b"less") == []


async def test_arguments_that_are_asked_for_or_came_from_another_edit_are_not_put_in(store: Store) -> None:
    one, other = await asked(store, 1), await asked(store, 2)

    async def edited(approval: UUID, named: int | None, edits: int = 0) -> object:
        edit = replace(LESS, key=None if named is None else key(named))
        told = await store.approvals.decide(TENANT, approval, replace(YES, edit=edit), edits)
        assert told is not None
        return told.said

    assert await edited(one, 2) == SameAs(key(2))
    assert (await standing(store, one)).approval.votes == ()
    assert isinstance(await edited(other, 9), Counted)
    assert await edited(one, 9) == SameAs(key(2))
    assert isinstance(await edited(one, 9, edits=1), Counted)
    assert isinstance(await edited(await asked(store, 3), None), Counted)


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
        await store.approvals.decide(TENANT, first, ballot)
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
    assert await store.approvals.decide(other, approval, YES) is None
    assert await store.approvals.cancel(other, approval, "bob", "x") is None
    with pytest.raises(LookupError):
        await store.approvals.ask(other, question())


async def test_a_listing_is_filtered_by_state_run_and_tool_a_page_at_a_time(store: Store) -> None:
    wait, approved, denied = await asked(store, 1), await asked(store, 2), await asked(store, 3, tool="pay")
    expired = await asked(store, 4, run="run-2", deadline=Duration(0))
    taken = await asked(store, 5)
    await store.approvals.decide(TENANT, approved, YES)
    await store.approvals.decide(TENANT, denied, NO)
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
        ids = [await asked(store, 100 + 2 * number + at) for at in (0, 1)]
        edit = replace(LESS, key=key(1000 + number))
        told = await asyncio.gather(*(store.approvals.decide(TENANT, one, replace(YES, edit=edit)) for one in ids))
        kinds = Counter(type(one.said) for one in told if one is not None)
        assert kinds == {Counted: 1, SameAs: 1}


async def test_what_waits_about_an_effect_or_a_run_is_taken_back_and_nothing_else(store: Store) -> None:
    one, other, approved = await asked(store, 1), await asked(store, 2), await asked(store, 3)
    elsewhere = await asked(store, 4, run="run-2")
    await store.approvals.decide(TENANT, approved, YES)
    assert await store.approvals.withdraw(TENANT, key(1), "carol", "no need") == [one]
    assert await store.approvals.withdraw(TENANT, "run-1", None, "it is over") == [other]
    assert await store.approvals.withdraw(TENANT, "run-1", None, "it is over") == []
    read = (await standing(store, one)).approval
    assert (read.decided, read.cancelled_by, read.cancel_reason) == ("cancelled", "carol", "no need")
    assert (await standing(store, elsewhere)).approval.decided is None
    assert (await standing(store, approved)).approval.decided == "approved"
