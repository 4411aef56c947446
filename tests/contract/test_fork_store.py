"""What every store must do with forks: the runs, their records, and the calls that were let run."""

from uuid import UUID

import anyio
from msgspec.structs import replace

from guard.core.effects import AttemptToken, Effect, Key, RunId, TenantId
from guard.core.forks import Fork, LiveTool, Span
from guard.core.runs import Run
from guard.ports.forks import Gave, Given, Wanted
from guard.ports.search import RunFilter
from guard.ports.steps import Insert
from guard.ports.store import Pin, Store
from tests.contract.given import FIRST, LEASE, SECOND_TOKEN, TENANT, finish, intent, key, opened, written
from twiceshy_contract.names import KeyRule

ANY, OTHER = b"\x01" * 32, b"\x02" * 32
WANTED = Wanted(
    tool="create_calendar_hold",
    rule="once",
    step=None,
    business_key=None,
    occurrence=1,
    identity_digest=ANY,
    arguments_digest=ANY,
)


def fork_at(parent: Run, at: int) -> Fork:
    """Return a fork of a run with every term."""
    live = (LiveTool(tool="pay", when="arguments.amount < `5`", calls=2), LiveTool(tool="mail"))
    return Fork(parent=parent.name, parent_id=parent.id, at=at, reads="recorded", live=live)


async def did(store: Store, run: Run, number: int, *, ends: bool = True, **said: object) -> Effect:
    """Make an effect of a run; finish it unless told otherwise."""
    fields: dict[str, object] = {
        "rule": "once",
        "caller_step": None,
        "business_key": None,
        "occurrence": 1,
        "identity_digest": ANY,
        "arguments_digest": ANY,
    }
    wanted = replace(intent(number, run), **(fields | said))
    made = await written(store, Insert(intent=wanted, token=FIRST, lease=LEASE))
    return (await written(store, finish(number))).effect if ends else made.effect


def span(run: Run, after: int = 0, until: int | None = None) -> Span:
    """Return effects of a run."""
    return Span(run=run.id, after=after, until=until)


async def test_a_fork_is_a_run_whose_steps_go_on_from_its_cut(store: Store) -> None:
    parent = await opened(store, "main")
    fork = fork_at(parent, 3)
    made = await store.runs.fork(TENANT, "f", fork)
    assert (made.name, made.state, made.effects, made.fork) == ("f", "open", 3, fork)
    assert await store.runs.get(TENANT, "f") == made
    assert await opened(store, "f") == made
    assert (await did(store, made, 1)).intent.step == 4


async def test_a_fork_is_made_once_and_takes_no_name_from_a_run(store: Store) -> None:
    parent = await opened(store, "main")
    made = await store.runs.fork(TENANT, "f", fork_at(parent, 3))
    assert await store.runs.fork(TENANT, "f", fork_at(parent, 2)) == made
    assert await store.runs.fork(TENANT, "main", fork_at(parent, 0)) == parent
    (elsewhere,) = await store.runs.open(TenantId(2), ["f"])
    assert (elsewhere.fork, elsewhere.id == made.id) == (None, False)


async def test_a_fork_keeps_to_the_versions_of_its_parent(store: Store) -> None:
    parent = await opened(store, "main")
    await store.tools.pin(TENANT, [Pin(run=parent.id, tool="pay", version=0)])
    fork = await store.runs.fork(TENANT, "f", fork_at(parent, 0))
    await store.tools.pin(TENANT, [Pin(run=parent.id, tool="later", version=0)])
    await store.runs.fork(TENANT, "f", fork_at(parent, 0))
    assert [await store.forks.pinned(fork.id, tool) for tool in ("pay", "later")] == [0, None]


async def test_the_forks_of_a_run_are_listed_newest_first(store: Store) -> None:
    parent, other = await opened(store, "main"), await opened(store, "other")
    for name in ("a", "b", "c"):
        await store.runs.fork(TENANT, name, fork_at(parent, 0))
    await store.runs.fork(TENANT, "d", fork_at(other, 0))
    first, cursor = await store.runs.page(TENANT, RunFilter(fork_of=parent.id, limit=2))
    rest, end = await store.runs.page(TENANT, RunFilter(fork_of=parent.id, state="open", limit=2, after=cursor))
    assert ([run.name for run in first + rest], end) == (["c", "b", "a"], None)
    assert await store.runs.page(TenantId(2), RunFilter(fork_of=parent.id, limit=2)) == ([], None)


async def test_the_ancestors_of_a_fork_are_found_up_to_a_run_that_is_none(store: Store) -> None:
    main = await opened(store, "main")
    child = await store.runs.fork(TENANT, "child", fork_at(main, 3))
    grandchild = await store.runs.fork(TENANT, "grandchild", fork_at(child, 5))
    assert await store.forks.ancestors(main.id) == []
    assert await store.forks.ancestors(grandchild.id) == [grandchild.fork, child.fork]
    assert await store.forks.ancestors(RunId(UUID(int=9))) == []
    behind = await store.forks.behind([grandchild.id, child.id, main.id])
    assert sorted(behind) == sorted([child.id, main.id])
    assert await store.forks.behind([main.id]) == []


async def test_an_effect_of_the_calls_place_is_found_whatever_became_of_it(store: Store) -> None:
    run = await opened(store, "main")
    once = await did(store, run, 1, ends=False)
    step = await did(store, run, 2, rule="step", caller_step="7", identity_digest=OTHER)
    named = await did(store, run, 3, rule="business_key", business_key="order", occurrence=2)
    fork = RunId(UUID(int=9))

    async def in_place(rule: KeyRule, **said: object) -> Effect | None:
        wanted = replace(WANTED, rule=rule, **said)
        return await store.forks.find(fork, [span(run)], wanted, in_place=True)

    assert await in_place("once") == once
    assert await in_place("step", step="7") == step
    assert await in_place("business_key", business_key="order", occurrence=2) == named
    assert await in_place("business_key", business_key="order") is None
    assert await in_place("step", step="8") is None
    assert await in_place("once", identity_digest=OTHER) is None
    assert await in_place("once", tool="pay") is None


async def test_of_effects_alike_the_place_comes_first_then_the_arguments_then_the_step(store: Store) -> None:
    run = await opened(store, "main")
    await did(store, run, 1, ends=False)
    effects = [
        await did(store, run, 2, rule="step", caller_step="a", arguments_digest=OTHER),
        await did(store, run, 3, rule="step", caller_step="b"),
        await did(store, run, 4, arguments_digest=OTHER),
    ]
    found: list[Effect | None] = []
    besides: list[Key] = []
    for _ in range(4):
        effect = await store.forks.find(RunId(UUID(int=9)), [span(run)], WANTED, besides, in_place=False)
        found.append(effect)
        besides += [] if effect is None else [effect.intent.key]
    assert found == [effects[2], effects[1], effects[0], None]


async def test_spans_bound_what_is_found_and_the_first_span_comes_first(store: Store) -> None:
    run, other = await opened(store, "main"), await opened(store, "other")
    for number in (1, 2, 3):
        await did(store, run, number, occurrence=number)
    elsewhere = await did(store, other, 4, occurrence=4)

    async def step(*spans: Span) -> int | None:
        effect = await store.forks.find(RunId(UUID(int=9)), spans, WANTED, in_place=False)
        return None if effect is None else effect.intent.occurrence

    assert await step(span(run, after=1)) == 2
    assert await step(span(run, after=3)) is None
    assert await step(span(run, until=2)) == 1
    assert await step(span(run, after=3), span(other)) == elsewhere.intent.occurrence
    assert await step(span(other), span(run)) == elsewhere.intent.occurrence
    assert await step() is None


async def test_an_effect_is_given_to_one_call_of_a_fork_and_to_each_fork_anew(store: Store) -> None:
    run = await opened(store, "main")
    effect = await did(store, run, 1)
    fork, other = RunId(UUID(int=8)), RunId(UUID(int=9))
    given = Given(origin=effect, token=FIRST, delivered=False)
    assert await store.forks.given(fork, key(5)) is None
    assert await store.forks.give(fork, key(5), key(1), FIRST) == given
    assert await store.forks.give(fork, key(5), key(1), SECOND_TOKEN) == given
    assert await store.forks.give(fork, key(6), key(1), FIRST) is None
    assert await store.forks.give(other, key(6), key(1), FIRST) == given
    assert await store.forks.given(fork, key(5)) == given
    assert await store.forks.find(fork, [span(run)], WANTED, in_place=True) is None
    assert await store.forks.find(RunId(UUID(int=7)), [span(run)], WANTED, in_place=True) == effect


async def test_a_call_keeps_what_it_was_given_first(store: Store) -> None:
    run = await opened(store, "main")
    first = await did(store, run, 1)
    await did(store, run, 2, occurrence=2)
    fork = RunId(UUID(int=9))
    await store.forks.give(fork, key(5), key(1), FIRST)
    assert await store.forks.give(fork, key(5), key(2), FIRST) == Given(origin=first, token=FIRST, delivered=False)


async def test_what_a_fork_knows_is_noted_for_that_fork_only(store: Store) -> None:
    run = await opened(store, "main")
    effect = await did(store, run, 1)
    forks = [RunId(UUID(int=8)), RunId(UUID(int=9))]
    for fork in forks:
        await store.forks.give(fork, key(5), key(1), FIRST)
    await store.forks.deliver(forks[0], [key(1), key(2)])
    known = [await store.forks.given(fork, key(5)) for fork in forks]
    assert known == [Given(origin=effect, token=FIRST, delivered=delivered) for delivered in (True, False)]


async def test_only_so_many_calls_of_a_tool_are_let_run_whoever_asks_at_once(store: Store) -> None:
    fork = await store.runs.fork(TENANT, "f", fork_at(await opened(store, "main"), 0))
    answers: dict[int, bool] = {}

    async def ask(number: int) -> None:
        answers[number] = await store.forks.let_run(fork.id, "pay", key(number), 3)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(ask, number)
    let = sorted(key(number) for number, may_run in answers.items() if may_run)
    assert len(let) == 3
    assert sorted(await store.forks.let(fork.id, "pay")) == let
    assert await store.forks.let_run(fork.id, "pay", let[0], 3)
    assert await store.forks.let(fork.id, "mail") == []
    assert await store.forks.let_run(fork.id, "pay", key(99), None)
    assert not await store.forks.let_run(fork.id, "pay", key(98), 4)


async def test_of_many_calls_at_once_one_is_given_the_effect(store: Store) -> None:
    await did(store, await opened(store, "main"), 1)
    given: list[Given] = []

    async def ask(number: int) -> None:
        found = await store.forks.give(RunId(UUID(int=9)), key(number), key(1), AttemptToken(UUID(int=number)))
        given.extend([] if found is None else [found])

    async with anyio.create_task_group() as group:
        for number in range(10, 18):
            group.start_soon(ask, number)
    assert len(given) == 1


async def test_what_was_given_for_many_calls_is_found_at_once(store: Store) -> None:
    run = await opened(store, "main")
    for number in (1, 2):
        await did(store, run, number, occurrence=number)
    fork, other = RunId(UUID(int=8)), RunId(UUID(int=9))
    await store.forks.give(fork, key(5), key(1), FIRST)
    await store.forks.give(fork, key(6), key(2), SECOND_TOKEN)
    await store.forks.deliver(fork, [key(2)])
    first = Gave(token=FIRST, delivered=False, is_failed=False, arguments_digest=ANY)
    second = Gave(token=SECOND_TOKEN, delivered=True, is_failed=False, arguments_digest=ANY)
    wanted = [key(number) for number in range(4, 600)]
    assert await store.forks.gave(fork, wanted) == {key(5): first, key(6): second}
    assert await store.forks.gave(fork, [key(6)]) == {key(6): second}
    assert await store.forks.gave(other, wanted) == {}


async def test_the_versions_that_some_runs_keep_to_are_found(store: Store) -> None:
    main, other = await opened(store, "main"), await opened(store, "other")
    await store.tools.pin(TENANT, [Pin(run=main.id, tool="pay", version=0)])
    assert await store.forks.pins([main.id, other.id], "pay") == {0}
    assert await store.forks.pins([other.id], "pay") == set()
    assert await store.forks.pins([main.id], "mail") == set()
