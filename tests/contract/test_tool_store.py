"""What every store must do with the registry of tools."""

import asyncio

from guard.core.effects import Instant, TenantId
from guard.core.tools import Declared, Moved, Tool
from guard.ports.store import Pin, Store
from tests.contract.given import TENANT
from twiceshy_contract.tools import ArgumentRoles, KeyDeclaration, ToolDeclaration

SHORT = ToolDeclaration(lease_seconds=10, declared_by="code")
LONG = ToolDeclaration(lease_seconds=60, declared_by="code")
BY_A_PERSON = ToolDeclaration(class_="idempotent", lease_seconds=90, declared_by="person")


async def declare(store: Store, name: str, declaration: ToolDeclaration, tenant: TenantId = TENANT) -> Tool:
    """Declare one tool; return it as it holds then."""
    match await store.tools.declare(tenant, {name: declaration}):
        case [Declared(tool=tool)]:
            return tool
        case other:
            raise AssertionError(other)


async def test_a_declaration_is_the_first_version(store: Store) -> None:
    declared = ToolDeclaration(
        class_="idempotent",
        key=KeyDeclaration(rule="step"),
        arguments=ArgumentRoles(identity=("/start",), content=("/title",), normalisers={"/start": "utc"}),
        provider_window_seconds=86_400,
    )
    tool = await declare(store, "hold", declared)
    assert (tool.tenant, tool.name, tool.version, tool.declaration) == (1, "hold", 1, declared)
    assert len(tool.digest) == 32
    assert await store.tools.held(TENANT, ["hold", "nobody"]) == {"hold": tool}


async def test_the_same_declaration_again_writes_nothing(store: Store) -> None:
    tool = await declare(store, "hold", SHORT)
    assert await declare(store, "hold", SHORT) == tool


async def test_another_declaration_is_the_next_version(store: Store) -> None:
    await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    assert (second.version, second.declaration) == (2, LONG)
    assert await store.tools.held(TENANT, ["hold"]) == {"hold": second}


async def test_code_that_declares_an_earlier_version_lets_it_hold_again(store: Store) -> None:
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    assert await declare(store, "hold", SHORT) == first
    assert await store.tools.held(TENANT, ["hold"]) == {"hold": first}
    assert await declare(store, "hold", LONG) == second
    assert (first.version, second.version) == (1, 2)


async def test_a_run_keeps_to_the_version_that_was_pinned_first(store: Store) -> None:
    one, other = await store.runs.open(TENANT, ["one", "other"])
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    assert await store.tools.pin(TENANT, [Pin(run=one.id, tool="hold", version=1)]) == [first]
    wishes = [Pin(run=one.id, tool="hold", version=2), Pin(run=other.id, tool="hold", version=2)]
    assert await store.tools.pin(TENANT, wishes) == [first, second]
    assert await store.tools.pin(TENANT, [Pin(run=one.id, tool="nobody", version=0)]) == [None]
    assert await store.tools.pinned(TENANT, one.id, ["hold", "nobody", "other"]) == {"hold": first}


async def test_whoever_asks_what_is_pinned_pins_nothing(store: Store) -> None:
    (one,) = await store.runs.open(TENANT, ["one"])
    await declare(store, "hold", SHORT)
    assert await store.tools.pinned(TENANT, one.id, ["hold"]) == {}
    second = await declare(store, "hold", LONG)
    assert await store.tools.pin(TENANT, [Pin(run=one.id, tool="hold", version=2)]) == [second]


async def test_a_person_who_declares_an_earlier_version_lets_it_hold_again(store: Store) -> None:
    short, long = ToolDeclaration(lease_seconds=10), ToolDeclaration(lease_seconds=60)
    first = await declare(store, "hold", short)
    await declare(store, "hold", long)
    assert await declare(store, "hold", short) == first
    assert len(await store.tools.every_version(TENANT, ["hold"])) == 2


async def test_a_person_may_go_back_to_an_earlier_declaration(store: Store) -> None:
    await declare(store, "hold", SHORT)
    await declare(store, "hold", LONG)
    third = await declare(store, "hold", ToolDeclaration(lease_seconds=10))
    assert (third.version, third.declaration.lease_seconds, third.declaration.declared_by) == (3, 10, "person")


async def test_what_a_person_said_holds_against_code(store: Store) -> None:
    said = await declare(store, "hold", BY_A_PERSON)
    raised = await declare(store, "hold", SHORT)
    assert raised.version == 2
    assert (raised.declaration.class_, raised.declaration.lease_seconds) == ("side_effect", 90)
    lower = ToolDeclaration(class_="read", lease_seconds=5, declared_by="code")
    assert await declare(store, "hold", lower) == raised
    assert said.version == 1


async def test_all_shows_the_newest_version_of_every_tool_by_name(store: Store) -> None:
    for name in ("zeta", "Alpha", "hold", "étage"):
        await declare(store, name, SHORT)
    await declare(store, "hold", LONG)
    await declare(store, "other", LONG, TenantId(2))
    shown = [(tool.name, tool.version) for tool in await store.tools.all(TENANT)]
    assert shown == [("Alpha", 1), ("hold", 2), ("zeta", 1), ("étage", 1)]
    assert await store.tools.held(TENANT, []) == {}


async def test_each_term_of_a_version_is_kept_and_never_changed(store: Store) -> None:
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    await declare(store, "hold", LONG)
    await declare(store, "hold", SHORT)
    newest, oldest = await store.tools.history(TENANT, "hold")
    assert (newest.tool, oldest.tool) == (second, first)
    ((began, ended),) = newest.terms
    assert oldest.terms[0] == (first.declared_at, began)
    assert oldest.terms[1] == (ended, None)
    assert began == second.declared_at
    assert first.declared_at < began < (ended or 0)
    assert await store.tools.history(TENANT, "nobody") == []
    assert await store.tools.history(TenantId(2), "hold") == []


async def test_what_held_at_an_instant_is_found_again(store: Store) -> None:
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    await declare(store, "hold", SHORT)
    other = await declare(store, "alpha", LONG)
    ended = (await store.tools.history(TENANT, "hold"))[0].terms[0][1]
    assert ended is not None
    expected = [
        (first.declared_at - 1, None),
        (first.declared_at, first),
        (second.declared_at - 1, first),
        (second.declared_at, second),
        (ended - 1, second),
        (ended, first),
        (other.declared_at + 10**12, first),
    ]
    assert [await store.tools.at(TENANT, "hold", Instant(at)) for at, _ in expected] == [held for _, held in expected]
    assert await store.tools.all(TENANT, second.declared_at) == [second]
    assert await store.tools.all(TENANT, Instant(first.declared_at - 1)) == []
    assert await store.tools.all(TENANT, Instant(other.declared_at)) == [other, first] == await store.tools.all(TENANT)


async def test_versions_are_found_by_their_numbers(store: Store) -> None:
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    wishes = [("hold", 1), ("hold", 2), ("hold", 3), ("nobody", 1)]
    assert await store.tools.versions(TENANT, wishes) == {("hold", 1): first, ("hold", 2): second}
    assert await store.tools.versions(TenantId(2), wishes) == {}


async def test_a_plan_says_what_would_hold_and_writes_nothing(store: Store) -> None:
    first = await declare(store, "hold", SHORT)
    second = await declare(store, "hold", LONG)
    wanted = {"new": SHORT, "hold": SHORT}
    new, again = await store.tools.plan(TENANT, wanted)
    assert (new.name, new.before, new.version, new.is_new, new.is_change) == ("new", None, 1, True, True)
    assert (again.before, again.version, again.is_new, again.is_change) == (second, 1, False, True)
    assert (again.declaration, again.digest) == (SHORT, first.digest)
    (same,) = await store.tools.plan(TENANT, {"hold": LONG})
    assert (same.version, same.is_new, same.is_change) == (2, False, False)
    assert await store.tools.all(TENANT) == [second]
    assert await store.tools.plan(TENANT, {}) == []


async def test_several_are_declared_together_at_one_instant(store: Store) -> None:
    old = await declare(store, "hold", SHORT)
    done = await store.tools.declare(TENANT, {"zeta": SHORT, "hold": LONG, "alpha": LONG})
    assert isinstance(done, list)
    assert [(one.planned.name, one.planned.version, one.tool.version) for one in done] == [
        ("zeta", 1, 1), ("hold", 2, 2), ("alpha", 1, 1),
    ]  # fmt: skip
    assert len({one.tool.declared_at for one in done}) == 1
    assert done[1].planned.before == old
    assert done[1].tool.declared_at > old.declared_at


async def test_what_is_not_as_it_was_seen_lets_nothing_be_declared(store: Store) -> None:
    await declare(store, "hold", SHORT)
    moved = await store.tools.declare(TENANT, {"other": SHORT, "hold": LONG}, {"other": 0, "hold": 0})
    assert moved == Moved({"hold": 1})
    assert [tool.name for tool in await store.tools.all(TENANT)] == ["hold"]
    assert (await declare(store, "hold", SHORT)).version == 1
    done = await store.tools.declare(TENANT, {"other": SHORT, "hold": LONG}, {"other": 0, "hold": 1})
    assert isinstance(done, list)
    again = await store.tools.declare(TENANT, {"other": SHORT, "hold": LONG}, {"other": 0, "hold": 1})
    assert isinstance(again, list)
    assert [one.planned.is_change for one in again] == [False, False]


async def test_many_who_declare_at_once_make_each_version_once(store: Store) -> None:
    leases = [ToolDeclaration(lease_seconds=10 + number % 4, declared_by="code") for number in range(12)]
    alone = (declare(store, "hold", declaration) for declaration in leases)
    together = (store.tools.declare(TENANT, {"hold": declaration, "other": SHORT}) for declaration in leases)
    await asyncio.gather(*alone, *together)
    history = await store.tools.history(TENANT, "hold")
    assert [held.tool.version for held in history] == [4, 3, 2, 1]
    terms = sorted(term for held in history for term in held.terms)
    assert [end for _, end in terms] == [*(begin for begin, _ in terms[1:]), None]
    assert [held.tool.version for held in await store.tools.history(TENANT, "other")] == [1]


async def test_two_thousand_tools_are_declared_together(store: Store) -> None:
    wanted = {f"tool-{number:04}": SHORT for number in range(2000)}
    assert isinstance(await store.tools.declare(TENANT, wanted), list)
    again = await store.tools.declare(TENANT, dict.fromkeys(wanted, LONG))
    assert isinstance(again, list)
    back = await store.tools.declare(TENANT, wanted)
    assert isinstance(back, list)
    assert {one.tool.version for one in back} == {1}
