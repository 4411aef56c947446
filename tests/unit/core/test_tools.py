"""Declarations of tools: their rules, their digest, and what a new one may change."""

import pytest

from guard.core.effects import TenantId
from guard.core.lease import Rules
from guard.core.tools import UNDECLARED_VERSION, Tool, declaration_digest, merged, planned, undeclared, what_is_said
from twiceshy_contract.names import EffectClass
from twiceshy_contract.tools import ArgumentRoles, DeclaredBy, KeyDeclaration, ToolDeclaration


def declared(class_: EffectClass, by: DeclaredBy, lease: float = 30) -> ToolDeclaration:
    return ToolDeclaration(class_=class_, declared_by=by, lease_seconds=lease)


def test_a_tool_that_nobody_declared_is_a_side_effect_with_the_defaults() -> None:
    tool = undeclared(TenantId(1), "book")
    assert tool.version == UNDECLARED_VERSION == 0
    assert tool.rules == Rules(
        effect_class="side_effect", lease=Rules().lease, attempts=5, backoff=Rules().backoff, provider_window=None
    )
    assert (tool.rules.lease, tool.rules.backoff, tool.rules.settle) == (30_000_000, 1_000_000, 10_000_000)


def test_the_rules_of_a_tool_are_its_declaration_in_microseconds() -> None:
    tool = undeclared(TenantId(1), "book")
    declaration = ToolDeclaration(
        class_="idempotent", lease_seconds=1.5, attempts=2, backoff_seconds=0.25, provider_window_seconds=60
    )
    rules = type(tool)(
        tenant=tool.tenant, name="book", version=1, digest=b"", declared_at=tool.declared_at, declaration=declaration
    ).rules
    assert (rules.effect_class, rules.lease, rules.attempts) == ("idempotent", 1_500_000, 2)
    assert (rules.backoff, rules.provider_window) == (250_000, 60_000_000)


def test_a_person_who_repeats_what_code_declared_makes_another_declaration() -> None:
    assert declaration_digest(declared("read", "code")) != declaration_digest(declared("read", "person"))


def test_the_digest_of_a_declaration_is_over_everything_in_it() -> None:
    others = [
        declared("read", "person"),
        declared("idempotent", "person"),
        declared("read", "person", lease=31),
        ToolDeclaration(class_="read", arguments=ArgumentRoles(content=("/a",))),
    ]
    assert len({declaration_digest(other) for other in others}) == 4


def test_a_window_is_part_of_what_is_declared() -> None:
    windows = (None, 60, 61)
    keys = [KeyDeclaration(scope="tenant", window_seconds=window) for window in windows]
    assert len({declaration_digest(ToolDeclaration(key=key)) for key in keys}) == 3


def test_the_digest_of_the_default_declaration_is_frozen() -> None:
    assert declaration_digest(ToolDeclaration()).hex() == (
        "6350ce838d76c74a5ef428260541f92c8e85385a7dc42a23589df31bc334027a"
    )


@pytest.mark.parametrize("by", ["person", "code", "hint"])
def test_a_first_declaration_holds(by: DeclaredBy) -> None:
    assert merged(declared("read", by), None) == declared("read", by)


def test_a_persons_word_holds_over_anything() -> None:
    lowered = declared("read", "person", lease=5)
    assert merged(lowered, declared("side_effect", "code")) == lowered
    assert merged(lowered, declared("side_effect", "person")) == lowered


@pytest.mark.parametrize(
    ("held", "code", "result"),
    [
        ("read", "idempotent", "idempotent"),
        ("read", "side_effect", "side_effect"),
        ("idempotent", "side_effect", "side_effect"),
        ("side_effect", "idempotent", "side_effect"),
        ("side_effect", "read", "side_effect"),
        ("idempotent", "read", "idempotent"),
        ("read", "read", "read"),
    ],
)
def test_code_may_raise_the_class_and_never_lower_it(held: EffectClass, code: EffectClass, result: EffectClass) -> None:
    assert merged(declared(code, "code", lease=9), declared(held, "code")) == declared(result, "code", lease=9)


@pytest.mark.parametrize("by", ["code", "hint"])
def test_nobody_changes_anything_of_a_persons_declaration_but_to_raise_the_class(by: DeclaredBy) -> None:
    held = declared("idempotent", "person", lease=7)
    assert merged(declared("read", by, lease=9), held) == held
    assert merged(declared("side_effect", by, lease=9), held) == declared("side_effect", "person", lease=7)


def test_a_hint_changes_nothing_of_what_code_declared_but_to_raise_the_class() -> None:
    held = declared("idempotent", "code", lease=7)
    assert merged(declared("read", "hint", lease=9), held) == held
    assert merged(declared("side_effect", "hint", lease=9), held) == declared("side_effect", "code", lease=7)


@pytest.mark.parametrize("by", ["code", "hint"])
def test_who_is_believed_more_than_a_hint_replaces_it_and_never_lowers_its_class(by: DeclaredBy) -> None:
    held = declared("idempotent", "hint", lease=7)
    assert merged(declared("read", by, lease=9), held) == declared("idempotent", by, lease=9)
    assert merged(declared("side_effect", by, lease=9), held) == declared("side_effect", by, lease=9)


@pytest.mark.parametrize("by", ["person", "code", "hint"])
def test_a_person_may_lower_what_anybody_said(by: DeclaredBy) -> None:
    assert merged(declared("read", "person"), declared("side_effect", by)) == declared("read", "person")


def tool(version: int, declaration: ToolDeclaration) -> Tool:
    held = undeclared(TenantId(1), "book")
    return Tool(
        tenant=held.tenant, name="book", version=version, digest=declaration_digest(declaration),
        declared_at=held.declared_at, declaration=declaration,
    )  # fmt: skip


def test_a_first_declaration_is_planned_as_version_1() -> None:
    plan = planned("book", declared("read", "person"), None, {})
    assert (plan.before, plan.version_before, plan.version, plan.is_new, plan.is_change) == (None, 0, 1, True, True)
    assert plan.digest == declaration_digest(declared("read", "person"))


def test_another_declaration_is_planned_as_the_version_after_the_last() -> None:
    first = tool(1, declared("read", "person"))
    known = {first.digest: 1, b"2": 2, b"3": 3}
    plan = planned("book", declared("idempotent", "person"), first, known)
    assert (plan.version_before, plan.version, plan.is_new, plan.is_change) == (1, 4, True, True)


def test_a_declaration_that_was_made_before_is_planned_to_hold_again() -> None:
    first, second = tool(1, declared("read", "person")), tool(2, declared("idempotent", "person"))
    known = {first.digest: 1, second.digest: 2}
    again = planned("book", declared("read", "person"), second, known)
    assert (again.version_before, again.version, again.is_new, again.is_change) == (2, 1, False, True)
    same = planned("book", declared("idempotent", "person"), second, known)
    assert (same.version, same.is_new, same.is_change) == (2, False, False)


def test_what_a_person_said_makes_a_plan_of_a_hint_that_changes_nothing() -> None:
    held = tool(1, declared("side_effect", "person", lease=7))
    plan = planned("book", declared("read", "hint"), held, {held.digest: 1})
    assert (plan.is_change, plan.declaration) == (False, held.declaration)


def test_what_says_nothing_new_is_written_as_code_of_before_reads_it() -> None:
    assert what_is_said(ToolDeclaration(lease_seconds=5)) == {
        "class": "side_effect",
        "key": {"rule": "once", "scope": "run"},
        "arguments": {"identity": (), "content": (), "ignored": (), "normalisers": {}},
        "lease_seconds": 5,
        "attempts": 5,
        "backoff_seconds": 1,
        "provider_window_seconds": None,
        "declared_by": "person",
    }
    assert what_is_said(ToolDeclaration(loop_limit=3))["loop_limit"] == 3
