"""What every store must do with the registry of tools."""

from guard.core.effects import TenantId
from guard.ports.store import Pin, Store
from tests.contract.given import TENANT
from twiceshy_contract.tools import ArgumentRoles, KeyDeclaration, ToolDeclaration

SHORT = ToolDeclaration(lease_seconds=10, declared_by="code")
LONG = ToolDeclaration(lease_seconds=60, declared_by="code")
BY_A_PERSON = ToolDeclaration(class_="idempotent", lease_seconds=90, declared_by="person")


async def test_a_declaration_is_the_first_version(store: Store) -> None:
    declared = ToolDeclaration(
        class_="idempotent",
        key=KeyDeclaration(rule="step"),
        arguments=ArgumentRoles(identity=("/start",), content=("/title",), normalisers={"/start": "utc"}),
        provider_window_seconds=86_400,
    )
    tool = await store.tools.declare(TENANT, "hold", declared)
    assert (tool.tenant, tool.name, tool.version, tool.declaration) == (1, "hold", 1, declared)
    assert len(tool.digest) == 32
    assert await store.tools.held(TENANT, ["hold", "nobody"]) == {"hold": tool}


async def test_the_same_declaration_again_writes_nothing(store: Store) -> None:
    tool = await store.tools.declare(TENANT, "hold", SHORT)
    assert await store.tools.declare(TENANT, "hold", SHORT) == tool


async def test_another_declaration_is_the_next_version(store: Store) -> None:
    await store.tools.declare(TENANT, "hold", SHORT)
    second = await store.tools.declare(TENANT, "hold", LONG)
    assert (second.version, second.declaration) == (2, LONG)
    assert await store.tools.held(TENANT, ["hold"]) == {"hold": second}


async def test_code_that_declares_an_earlier_version_lets_it_hold_again(store: Store) -> None:
    first = await store.tools.declare(TENANT, "hold", SHORT)
    second = await store.tools.declare(TENANT, "hold", LONG)
    assert await store.tools.declare(TENANT, "hold", SHORT) == first
    assert await store.tools.held(TENANT, ["hold"]) == {"hold": first}
    assert await store.tools.declare(TENANT, "hold", LONG) == second
    assert (first.version, second.version) == (1, 2)


async def test_a_run_keeps_to_the_version_that_was_pinned_first(store: Store) -> None:
    one, other = await store.runs.open(TENANT, ["one", "other"])
    first = await store.tools.declare(TENANT, "hold", SHORT)
    second = await store.tools.declare(TENANT, "hold", LONG)
    assert await store.tools.pin(TENANT, [Pin(run=one.id, tool="hold", version=1)]) == [first]
    wishes = [Pin(run=one.id, tool="hold", version=2), Pin(run=other.id, tool="hold", version=2)]
    assert await store.tools.pin(TENANT, wishes) == [first, second]
    assert await store.tools.pin(TENANT, [Pin(run=one.id, tool="nobody", version=0)]) == [None]


async def test_a_person_may_go_back_to_an_earlier_declaration(store: Store) -> None:
    await store.tools.declare(TENANT, "hold", SHORT)
    await store.tools.declare(TENANT, "hold", LONG)
    third = await store.tools.declare(TENANT, "hold", ToolDeclaration(lease_seconds=10))
    assert (third.version, third.declaration.lease_seconds, third.declaration.declared_by) == (3, 10, "person")


async def test_what_a_person_said_holds_against_code(store: Store) -> None:
    said = await store.tools.declare(TENANT, "hold", BY_A_PERSON)
    raised = await store.tools.declare(TENANT, "hold", SHORT)
    assert raised.version == 2
    assert (raised.declaration.class_, raised.declaration.lease_seconds) == ("side_effect", 90)
    lower = ToolDeclaration(class_="read", lease_seconds=5, declared_by="code")
    assert await store.tools.declare(TENANT, "hold", lower) == raised
    assert said.version == 1


async def test_all_shows_the_newest_version_of_every_tool_by_name(store: Store) -> None:
    for name in ("zeta", "Alpha", "hold", "étage"):
        await store.tools.declare(TENANT, name, SHORT)
    await store.tools.declare(TENANT, "hold", LONG)
    await store.tools.declare(TenantId(2), "other", LONG)
    shown = [(tool.name, tool.version) for tool in await store.tools.all(TENANT)]
    assert shown == [("Alpha", 1), ("hold", 2), ("zeta", 1), ("étage", 1)]
    assert await store.tools.held(TENANT, []) == {}
