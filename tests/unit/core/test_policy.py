"""What a call may do in a fork: the rule, and a table of class, registry's rule and situation written by hand."""

import msgspec
import pytest

from guard.core.forks import LiveTool, allowance
from guard.core.policy import ForkedCall, Ruled, outside, rule_on
from guard.core.templates import Known
from twiceshy_contract.names import EffectClass
from twiceshy_contract.policies import ForkRule
from twiceshy_contract.policy import PolicyDecision

CALL = ForkedCall(
    classes=("side_effect", "side_effect"),
    rules=("auto", "auto"),
    is_registered=True,
    recorded="nothing",
    allowance="not named",
    simulated="nothing",
    approval="missing",
    reads="live",
)
READ = msgspec.structs.replace(CALL, classes=("read", "read"), approval="not needed")
IDEMPOTENT = msgspec.structs.replace(CALL, classes=("idempotent", "idempotent"), approval="not needed")
ALLOWED = msgspec.structs.replace(CALL, allowance="allowed", approval="approved")

SITUATIONS = {
    "nothing": CALL,
    "recorded": msgspec.structs.replace(CALL, recorded="after the cut"),
    "simulated": msgspec.structs.replace(CALL, simulated="an outcome"),
    "allowed": ALLOWED,
    "before the cut": msgspec.structs.replace(CALL, recorded="before the cut"),
}
S, L, R, B, D = "suspend", "live", "recorded", "stub", "deny"
TABLE: dict[tuple[EffectClass, ForkRule], tuple[str, str, str, str, str]] = {
    # class, registry's rule: with nothing, recorded, simulated, allowed by the fork and approved, before the cut
    ("read", "auto"): (L, R, L, L, R),
    ("read", "live"): (L, R, L, L, R),
    ("read", "recorded"): (S, R, B, S, R),
    ("read", "stub"): (S, S, B, S, R),
    ("read", "suspend"): (S, S, S, S, R),
    ("read", "deny"): (D, D, D, D, R),
    ("idempotent", "auto"): (S, R, B, L, R),
    ("idempotent", "live"): (S, R, B, L, R),
    ("idempotent", "recorded"): (S, R, B, S, R),
    ("idempotent", "stub"): (S, S, B, S, R),
    ("idempotent", "suspend"): (S, S, S, S, R),
    ("idempotent", "deny"): (D, D, D, D, R),
    ("side_effect", "auto"): (S, R, B, L, R),
    ("side_effect", "live"): (S, R, B, L, R),
    ("side_effect", "recorded"): (S, R, B, S, R),
    ("side_effect", "stub"): (S, S, B, S, R),
    ("side_effect", "suspend"): (S, S, S, S, R),
    ("side_effect", "deny"): (D, D, D, D, R),
}


def ruled(call: ForkedCall, **said: object) -> tuple[PolicyDecision, str]:
    """Rule on a call with these facts in the place of its own."""
    ruling = rule_on(msgspec.structs.replace(call, **said))
    return ruling.decision, ruling.rule


@pytest.mark.parametrize(("effect_class", "rule"), TABLE)
def test_every_class_obeys_every_rule_of_the_registry_in_every_situation(
    effect_class: EffectClass, rule: ForkRule
) -> None:
    answers = [ruled(call, classes=(effect_class, effect_class), rules=(rule, rule))[0] for call in SITUATIONS.values()]
    assert tuple(answers) == TABLE[effect_class, rule]


@pytest.mark.parametrize(("effect_class", "rule"), TABLE)
def test_the_stricter_rule_counts_whether_it_is_the_recorded_one_or_that_of_today(
    effect_class: EffectClass, rule: ForkRule
) -> None:
    for rules in (("auto", rule), (rule, "auto")):
        answers = [ruled(call, classes=(effect_class, effect_class), rules=rules)[0] for call in SITUATIONS.values()]
        assert tuple(answers) == TABLE[effect_class, rule]


def test_the_stricter_of_two_rules_is_the_one_that_leaves_less() -> None:
    assert ruled(ALLOWED, rules=("live", "auto")) == ("live", "allowed by the fork")
    assert ruled(ALLOWED, rules=("live", "recorded")) == ("suspend", "registry: recorded")
    assert ruled(ALLOWED, rules=("stub", "recorded"), recorded="after the cut") == ("suspend", "registry: stub")
    assert ruled(ALLOWED, rules=("suspend", "stub"), simulated="an outcome") == ("suspend", "registry: suspend")
    assert ruled(ALLOWED, rules=("suspend", "deny")) == ("deny", "registry: deny")


def test_a_tool_that_was_or_is_a_side_effect_counts_as_one() -> None:
    assert ruled(READ, classes=("side_effect", "read")) == ("suspend", "nothing may answer")
    assert ruled(READ, classes=("read", "side_effect")) == ("suspend", "nothing may answer")
    assert ruled(READ, classes=("read", "read", "side_effect")) == ("suspend", "nothing may answer")
    assert ruled(READ, classes=("read", "idempotent")) == ("suspend", "nothing may answer")


def test_what_nobody_registered_counts_as_a_side_effect_whatever_its_class_says() -> None:
    assert ruled(READ, is_registered=False) == ("suspend", "not registered")
    assert ruled(READ, is_registered=False, allowance="allowed", approval="missing") == ("suspend", "needs approval")
    assert ruled(READ, is_registered=False, recorded="after the cut") == ("recorded", "recorded")


def test_before_the_cut_all_is_from_the_record_whatever_the_registry_says() -> None:
    assert ruled(CALL, recorded="before the cut", rules=("deny", "deny")) == ("recorded", "before the cut")
    assert ruled(READ, recorded="before the cut") == ("recorded", "before the cut")
    assert ruled(ALLOWED, recorded="before the cut") == ("recorded", "before the cut")


def test_before_the_cut_other_arguments_and_a_missing_outcome_stop_the_fork() -> None:
    assert ruled(ALLOWED, recorded="arguments differ", simulated="an outcome") == ("suspend", "arguments differ")
    assert ruled(ALLOWED, recorded="outcome unknown") == ("suspend", "outcome unknown")


def test_the_record_comes_before_all_that_is_live_and_a_read_before_its_simulator() -> None:
    assert ruled(ALLOWED, recorded="after the cut") == ("recorded", "recorded")
    assert ruled(READ, recorded="after the cut") == ("recorded", "recorded")
    assert ruled(READ, simulated="an outcome") == ("live", "read")
    assert ruled(ALLOWED, simulated="an outcome") == ("live", "allowed by the fork")


def test_reads_go_live_unless_the_fork_takes_them_from_the_record_only() -> None:
    assert ruled(READ) == ("live", "read")
    assert ruled(READ, reads="recorded") == ("suspend", "reads: recorded")
    assert ruled(READ, reads="recorded", simulated="an outcome") == ("stub", "simulator")
    assert ruled(READ, reads="recorded", allowance="allowed") == ("live", "allowed by the fork")
    assert ruled(IDEMPOTENT, reads="live") == ("suspend", "nothing may answer")


@pytest.mark.parametrize("standing", ["not needed", "missing", "open", "expired"])
def test_a_side_effect_that_the_fork_lets_run_waits_for_its_approval(standing: str) -> None:
    assert ruled(ALLOWED, approval=standing, simulated="an outcome") == ("suspend", "needs approval")


def test_an_approval_that_an_idempotent_tool_asks_for_is_needed_in_a_fork_as_well() -> None:
    assert ruled(IDEMPOTENT, allowance="allowed") == ("live", "allowed by the fork")
    assert ruled(IDEMPOTENT, allowance="allowed", approval="open") == ("suspend", "needs approval")
    assert ruled(IDEMPOTENT, allowance="allowed", approval="approved") == ("live", "allowed by the fork")
    assert ruled(IDEMPOTENT, allowance="allowed", approval="denied") == ("deny", "approval denied")


def test_what_stopped_a_call_is_said_by_the_nearest_rule() -> None:
    assert ruled(CALL) == ("suspend", "nothing may answer")
    assert ruled(CALL, allowance="used up") == ("suspend", "live calls used up")
    assert ruled(CALL, allowance="other arguments") == ("suspend", "arguments not allowed")
    assert ruled(CALL, simulated="a failure") == ("suspend", "simulator failed")
    assert ruled(CALL, rules=("auto", "stub")) == ("suspend", "registry: stub")
    assert ruled(CALL, rules=("recorded", "auto")) == ("suspend", "registry: recorded")


def test_a_call_outside_of_forks_may_run() -> None:
    assert outside() == Ruled("live", "not in a fork")


KNOWN: Known = {"arguments": {"amount": 5, "to": "bob"}}


@pytest.mark.parametrize(
    ("terms", "made", "said"),
    [
        (None, 0, "not named"),
        (LiveTool(tool="pay"), 99, "allowed"),
        (LiveTool(tool="pay", calls=1), 0, "allowed"),
        (LiveTool(tool="pay", calls=1), 1, "used up"),
        (LiveTool(tool="pay", calls=2), 1, "allowed"),
        (LiveTool(tool="pay", when="arguments.amount < `10`"), 0, "allowed"),
        (LiveTool(tool="pay", when="arguments.amount > `10`"), 0, "other arguments"),
        (LiveTool(tool="pay", when="arguments.amount"), 0, "other arguments"),
        (LiveTool(tool="pay", when="length(arguments.amount)"), 0, "other arguments"),
        (LiveTool(tool="pay", when="arguments.amount > `10`", calls=1), 1, "other arguments"),
    ],
)
def test_the_terms_allow_so_many_calls_whose_condition_is_true(terms: LiveTool | None, made: int, said: str) -> None:
    assert allowance(terms, KNOWN, made) == said


def test_a_persons_outcome_stands_in_the_tools_place_and_a_persons_no_denies() -> None:
    for recorded in ("nothing", "after the cut", "arguments differ", "outcome unknown"):
        assert ruled(CALL, recorded=recorded, answered="injected") == ("stub", "injected")
        assert ruled(CALL, recorded=recorded, answered="denied") == ("deny", "denied by a person")
    assert ruled(READ, answered="injected") == ("stub", "injected")
    assert ruled(ALLOWED, answered="denied") == ("deny", "denied by a person")


def test_a_persons_yes_lets_a_call_run_that_no_rule_lets_run() -> None:
    asked_by_none = msgspec.structs.replace(CALL, approval="not needed", answered="allowed")
    for said in (
        {}, {"allowance": "used up"}, {"rules": ("suspend", "auto")}, {"rules": ("stub", "stub")},
        {"recorded": "arguments differ"}, {"is_registered": False}, {"simulated": "an outcome"},
    ):  # fmt: skip
        assert ruled(asked_by_none, **said) == ("live", "allowed once")


def test_a_persons_yes_does_not_stand_for_the_approval_that_the_tool_itself_asks_for() -> None:
    for standing, decided in (
        ("missing", ("suspend", "needs approval")),
        ("open", ("suspend", "needs approval")),
        ("expired", ("suspend", "needs approval")),
        ("approved", ("live", "allowed once")),
        ("denied", ("deny", "approval denied")),
    ):
        assert ruled(CALL, answered="allowed", approval=standing) == decided


def test_the_registrys_denial_is_stronger_than_what_a_person_answers_and_the_past_stays() -> None:
    for answered in ("injected", "denied", "allowed"):
        denied = ruled(CALL, answered=answered, rules=("auto", "deny"), approval="not needed")
        assert denied == ("deny", "registry: deny")
        assert ruled(CALL, answered=answered, recorded="before the cut") == ("recorded", "before the cut")
