"""What a person's word does to an approval, and when a person is asked."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.approvals import (
    LONGEST_SUMMARY,
    Approval,
    Ballot,
    Counted,
    Edit,
    NotCounted,
    Question,
    Repeated,
    cancel,
    decide,
    is_needed,
    is_stricter,
    strictest,
    summary_of,
)
from guard.core.effects import Instant, Key, TenantId
from twiceshy_contract.policies import ApprovalRule
from twiceshy_contract.refusals import JsonValue

LESS, LEAST = Edit(b'{"amount":60}', b"less"), Edit(b'{"amount":10}', b"least")


def asked(expires_at: int | None = None, **said: Any) -> Approval:
    """Return an approval that alice's agent asked for at 100, and which nobody has spoken about."""
    question = Question(
        key=Key(b"k" * 32),
        round=1,
        tool="refund",
        tool_version=1,
        run="run-1",
        digest=b"asked",
        arguments=b'{"amount":80}',
        summary="refund 80",
        evidence=b"{}",
        requester="alice",
    )
    return Approval(
        id=UUID(int=1),
        tenant=TenantId(1),
        question=replace(question, **said),
        asked_at=Instant(100),
        expires_at=None if expires_at is None else Instant(expires_at),
    )


def after(approval: Approval, *ballots: Ballot, at: int = 200) -> Approval:
    """Return an approval after words that all count."""
    for ballot in ballots:
        weighed = decide(approval, ballot, Instant(at))
        assert isinstance(weighed, Counted), weighed
        approval = weighed.approval
    return approval


def yes(person: str, edit: Edit | None = None) -> Ballot:
    return Ballot(person=person, verdict="approve", edit=edit)


def no(person: str, reason: str | None = None) -> Ballot:
    return Ballot(person=person, verdict="deny", reason=reason)


def test_one_approval_approves_where_one_is_enough() -> None:
    approval = after(asked(), yes("bob"))
    assert (approval.state_at(Instant(200)), approval.decided_at, approval.denial) == ("approved", 200, None)
    assert [(vote.person, vote.verdict, vote.at) for vote in approval.votes] == [("bob", "approve", 200)]


def test_a_quorum_of_two_needs_two_persons() -> None:
    approval = after(asked(quorum=2), yes("bob"))
    assert approval.state_at(Instant(200)) == "open"
    assert decide(approval, yes("bob"), Instant(201)) == Repeated()
    assert after(approval, yes("carol"), at=202).decided == "approved"


def test_one_denial_denies_whatever_the_quorum() -> None:
    approval = after(asked(quorum=3), yes("bob"), no("carol", "too much"))
    assert (approval.decided, approval.denial and approval.denial.reason) == ("denied", "too much")
    assert decide(approval, yes("dave"), Instant(300)) == NotCounted("decided")


def test_whoever_asked_may_not_decide_with_four_eyes_and_may_without() -> None:
    assert decide(asked(), yes("alice"), Instant(200)) == NotCounted("own request")
    assert decide(asked(), no("alice"), Instant(200)) == NotCounted("own request")
    assert after(asked(four_eyes=False), yes("alice")).decided == "approved"


def test_nobody_decides_twice_and_the_same_said_again_is_the_same() -> None:
    approval = after(asked(quorum=2), yes("bob", LESS))
    assert decide(approval, yes("bob", LESS), Instant(300)) == Repeated()
    for other in (no("bob"), yes("bob"), yes("bob", LEAST)):
        assert decide(approval, other, Instant(300)) == NotCounted("decided before")
    approved = after(asked(), yes("bob"))
    assert decide(approved, yes("bob"), Instant(300)) == Repeated()
    assert decide(approved, no("bob"), Instant(300)) == NotCounted("decided")


@pytest.mark.parametrize(("at", "state"), [(499, "open"), (500, "expired"), (501, "expired")])
def test_an_approval_expires_at_its_deadline_which_is_no_denial(at: int, state: str) -> None:
    assert asked(expires_at=500).state_at(Instant(at)) == state


def test_after_the_deadline_nobody_decides_and_before_it_what_is_decided_stays() -> None:
    late = asked(expires_at=500)
    assert decide(late, yes("bob"), Instant(500)) == NotCounted("expired")
    assert cancel(late, "bob", "no use", Instant(500), has_begun=False) == NotCounted("expired")
    assert after(late, yes("bob"), at=499).state_at(Instant(9000)) == "approved"


def test_all_who_approve_mean_the_same_edited_arguments() -> None:
    approval = after(asked(quorum=2), yes("bob", LESS))
    assert (approval.edit, approval.decided) == (LESS, None)
    assert decide(approval, yes("carol", LEAST), Instant(201)) == NotCounted("other arguments")
    assert decide(approval, yes("carol"), Instant(201)) == NotCounted("other arguments")
    both = after(approval, yes("carol", LESS))
    assert (both.decided, both.edit, both.votes[1].edited_digest) == ("approved", LESS, LESS.written)
    plain = after(asked(quorum=2), yes("bob"))
    assert decide(plain, yes("carol", LESS), Instant(201)) == NotCounted("other arguments")


def test_an_open_question_is_taken_back_once() -> None:
    weighed = cancel(asked(), "bob", "not needed", Instant(300), has_begun=False)
    assert isinstance(weighed, Counted)
    taken = weighed.approval
    assert (taken.state_at(Instant(300)), taken.cancelled_by, taken.cancel_reason) == ("cancelled", "bob", "not needed")
    assert cancel(taken, "carol", "again", Instant(301), has_begun=False) == Repeated()
    assert decide(taken, yes("carol"), Instant(301)) == NotCounted("decided")
    denied = after(asked(), no("bob"))
    assert cancel(denied, "carol", "too late", Instant(301), has_begun=False) == NotCounted("decided")
    assert not taken.is_withdrawn


def test_what_was_approved_is_taken_back_until_its_effect_has_begun() -> None:
    approved = after(asked(), yes("bob", replace(LESS, key=Key(b"o" * 32))))
    assert (approved.edit_key, after(asked(), yes("bob")).edit_key) == (b"o" * 32, None)
    assert cancel(approved, "bob", "wrong", Instant(300), has_begun=True) == NotCounted("begun")
    weighed = cancel(approved, "bob", "wrong", Instant(300), has_begun=False)
    assert isinstance(weighed, Counted)
    assert (weighed.approval.decided, weighed.approval.is_withdrawn) == ("cancelled", True)


def test_a_person_is_one_however_the_name_is_written() -> None:
    assert decide(asked(), yes(" Alice"), Instant(300)) == NotCounted("own request")
    assert decide(after(asked(quorum=2), yes("bob")), yes("BOB "), Instant(300)) == Repeated()
    assert isinstance(decide(asked(requester=None), yes("Alice"), Instant(300)), Counted)


def test_edits_agree_to_the_letter_not_only_in_what_names_a_call() -> None:
    approval = after(asked(quorum=2), yes("bob", Edit(b'{"memo":"a"}', b"same")))
    other = yes("carol", Edit(b'{"memo":"b"}', b"same"))
    assert decide(approval, other, Instant(300)) == NotCounted("other arguments")


def test_a_rule_is_stricter_than_a_question_where_it_wants_more_persons_or_others() -> None:
    question = asked(quorum=2, four_eyes=False).question
    assert not is_stricter(ApprovalRule(quorum=2, four_eyes=False), question)
    assert is_stricter(ApprovalRule(quorum=3, four_eyes=False), question)
    assert is_stricter(ApprovalRule(quorum=1), question)
    assert not is_stricter(ApprovalRule(quorum=1), asked().question)


def test_a_person_is_needed_where_the_rule_says_so_and_where_it_cannot_say() -> None:
    when = ApprovalRule(when="arguments.amount > `50`")
    assert not is_needed(None, {"amount": 80})
    assert is_needed(ApprovalRule(), {"amount": 1})
    assert is_needed(when, {"amount": 80})
    assert not is_needed(when, {"amount": 50})
    assert is_needed(ApprovalRule(when="length(arguments.amount) > `1`"), {"amount": 1})


@pytest.mark.parametrize(
    ("amount", "who"),
    [
        ({"$dec": "5000"}, "a person"),
        ({"$dec": "50.01"}, "a person"),
        ({"$dec": "1E+400"}, "a person"),
        ({"$int": "90071992547409930"}, "a person"),
        ({"$dec": "50"}, "nobody"),
        ({"$dec": "-0.5"}, "nobody"),
        ({"$int": "49"}, "nobody"),
        ("5000", "a person"),
        ({"value": 1}, "a person"),
        (None, "a person"),
    ],
)
def test_an_amount_is_a_number_whatever_its_tag_and_what_is_none_is_shown_to_a_person(
    amount: JsonValue, who: str
) -> None:
    is_asked = is_needed(ApprovalRule(when="arguments.amount > `50`"), {"amount": amount})
    assert ("a person" if is_asked else "nobody") == who


def test_a_person_is_asked_where_a_rule_finds_nothing_to_judge() -> None:
    assert is_needed(ApprovalRule(when="arguments.amount > `50`"), {})
    assert is_needed(ApprovalRule(when="arguments.note"), {"note": "false"})


def test_the_strictest_of_several_rules_satisfies_all_in_the_words_of_the_first() -> None:
    assert strictest([]) == ApprovalRule()
    one = ApprovalRule(quorum=1, four_eyes=True, deadline_seconds=600, summary="one")
    other = ApprovalRule(quorum=2, four_eyes=False, deadline_seconds=60, summary="other")
    assert strictest([one, other]) == ApprovalRule(quorum=2, four_eyes=True, deadline_seconds=60, summary="one")
    assert strictest([ApprovalRule(four_eyes=False)]) == ApprovalRule(four_eyes=False)


def test_a_summary_says_the_call_in_words_where_no_template_does() -> None:
    known: dict[str, Any] = {"tool": "refund", "arguments": {"amount": 80, "to": "bob"}}
    assert summary_of(None, known) == 'refund(amount=80, to="bob")'
    assert summary_of("Refund ${arguments.amount} EUR to ${arguments.to}", known) == "Refund 80 EUR to bob"
    assert summary_of("${length(arguments.amount)}", known) == 'refund(amount=80, to="bob")'
    assert summary_of("  ${arguments.nothing} ", known) == 'refund(amount=80, to="bob")'
    assert summary_of(None, {"tool": "refund", "arguments": None}) == "refund()"


def test_a_summary_is_cut_where_it_is_too_long() -> None:
    said = summary_of("${arguments.text}", {"tool": "mail", "arguments": {"text": "x" * 3000}})
    assert (len(said), said[-2:]) == (LONGEST_SUMMARY, "x…")
