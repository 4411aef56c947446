"""What a person's answer is worth for a call that comes again."""

from uuid import UUID

import msgspec
import pytest

from guard.core.effects import AttemptToken, Instant, Key, RunId, TenantId
from guard.core.pauses import Pause, PauseAnswer, Stop, answered, is_given, may_give_way
from twiceshy_contract.forks import PauseWord

STOP = Stop(
    run=RunId(UUID(int=1)),
    tenant=TenantId(1),
    key=Key(b"k"),
    tool="pay",
    arguments=b"{}",
    identity_digest=b"identity",
    arguments_digest=b"arguments",
    rule="nothing may answer",
)
OTHER_WORDS = msgspec.structs.replace(STOP, arguments_digest=b"other")
OTHER_CALL = msgspec.structs.replace(STOP, identity_digest=b"other", arguments_digest=b"other")
ONE, TWO = AttemptToken(UUID(int=1)), AttemptToken(UUID(int=2))


def pause(word: PauseWord | None = None, spent_by: AttemptToken | None = None) -> Pause:
    """Return a pause with an answer."""
    answer = None if word is None else PauseAnswer(word=word, outcome=b"1", reason="r")
    return Pause(stop=STOP, at=Instant(1), answer=answer, spent_by=spent_by)


@pytest.mark.parametrize(
    ("word", "same", "in_other_words", "other_call"),
    [
        (None, "nothing", "nothing", "nothing"),
        ("inject", "injected", "injected", "nothing"),
        ("deny", "denied", "denied", "nothing"),
        ("allow", "allowed", "nothing", "nothing"),
    ],
)
def test_yes_is_bound_to_the_arguments_and_all_else_to_what_names_the_call(
    word: PauseWord | None, same: str, in_other_words: str, other_call: str
) -> None:
    assert [answered(pause(word), stop) for stop in (STOP, OTHER_WORDS, OTHER_CALL)] == [
        same, in_other_words, other_call,
    ]  # fmt: skip


def test_nothing_was_answered_where_nothing_stopped() -> None:
    assert answered(None, STOP) == "nothing"


def test_yes_goes_on_to_hold_for_the_effect_that_it_let_run() -> None:
    assert answered(pause("allow"), OTHER_WORDS, is_let=True) == "allowed"
    assert answered(pause("allow"), OTHER_CALL, is_let=True) == "nothing"


def test_a_pause_gives_way_to_a_call_that_it_does_not_answer_until_its_answer_is_used() -> None:
    assert [may_give_way(pause(), stop) for stop in (STOP, OTHER_WORDS)] == [False, True]
    assert [may_give_way(pause("deny"), stop) for stop in (STOP, OTHER_WORDS, OTHER_CALL)] == [False, False, True]
    assert [may_give_way(pause("allow"), stop) for stop in (STOP, OTHER_WORDS)] == [False, True]
    assert may_give_way(pause("allow", ONE), OTHER_WORDS) is False
    changed = msgspec.structs.replace(STOP, identity_digest=b"other")
    assert may_give_way(pause("inject"), changed) is True


def test_an_outcome_is_given_to_one_call_where_every_call_counts() -> None:
    assert is_given(pause("inject", ONE), TWO, "allow") is True
    assert is_given(pause("inject", ONE), ONE, "allow") is False
    assert is_given(pause("inject"), TWO, "allow") is False
    assert is_given(pause("inject", ONE), TWO, "replay") is False
    assert is_given(pause("allow", ONE), TWO, "allow") is False
    assert is_given(pause(), TWO, "allow") is False
