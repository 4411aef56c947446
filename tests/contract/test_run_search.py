"""What every store must do with what runs are about, with late facts, and with listings by either."""

import asyncio

import pytest
from sqlalchemy import Connection

from guard.core.runs import Run
from guard.ports.search import RunFilter
from guard.ports.store import Store
from guard.store.sql.run_pages import select_page
from tests.contract.given import TENANT, opened
from tests.contract.given_logs import rows
from tests.contract.plans import plans
from twiceshy_contract.runs import Fact, RunAbout

ABOUT = RunAbout(
    workflow="contracts",
    agent="reader",
    agent_version="1.4",
    prompt_version="7",
    model="small",
    temperature=0.2,
    tags=("eu", "night", "eu"),
    reference="contract-17",
    input={"text": "Über"},
)


async def test_what_a_run_is_about_is_kept_as_it_was_first_said(store: Store) -> None:
    told = await store.runs.tell(TENANT, "r", ABOUT, None)
    assert (told.name, told.state, told.about, told.child_of) == ("r", "open", ABOUT, None)
    assert await store.runs.tell(TENANT, "r", RunAbout(workflow="other", tags=("late",)), None) == told
    assert await store.runs.get(TENANT, "r") == told
    assert await _names(store, RunFilter(workflow="other")) == []
    assert await _names(store, RunFilter(tags=("late",))) == []


async def test_a_run_that_was_opened_without_words_is_told_later_and_after_its_end(store: Store) -> None:
    run = await opened(store, "r")
    assert run.about is None
    assert await store.runs.tell(TENANT, "r", None, None) == run
    await store.runs.end(TENANT, "r", "finished")
    told = await store.runs.tell(TENANT, "r", ABOUT, None)
    assert (told.id, told.about, told.state) == (run.id, ABOUT, "finished")


async def test_of_many_who_say_what_a_run_is_about_one_is_believed(store: Store) -> None:
    said = [RunAbout(workflow=f"w-{number}", tags=(f"t-{number}",)) for number in range(8)]
    told = await asyncio.gather(*(store.runs.tell(TENANT, "r", about, None) for about in said))
    assert len({run.about.workflow if run.about else None for run in told}) == 1
    tagged = [await _names(store, RunFilter(tags=(f"t-{number}",))) for number in range(8)]
    assert sorted(tagged) == [[]] * 7 + [["r"]]


async def test_a_child_is_made_with_its_parent_and_keeps_it(store: Store) -> None:
    await opened(store, "main")
    child = await store.runs.tell(TENANT, "child", None, "main")
    assert child.child_of == "main"
    assert await store.runs.tell(TENANT, "child", None, "main") == child
    assert await store.runs.tell(TENANT, "child", ABOUT, "another") == child
    assert (await store.runs.tell(TENANT, "child", ABOUT, None)).child_of == "main"
    root = await store.runs.tell(TENANT, "main", ABOUT, "child")
    assert (root.child_of, root.about) == (None, None)
    await store.runs.tell(TENANT, "sibling", None, "main")
    assert await _names(store, RunFilter(child_of="main")) == ["sibling", "child"]


async def test_runs_are_listed_by_all_that_is_asked_newest_first(store: Store) -> None:
    for name, workflow, tags in (
        ("a", "contracts", ("eu", "night")), ("b", "contracts", ("eu",)), ("c", "mail", ("eu", "night")),
    ):  # fmt: skip
        await store.runs.tell(TENANT, name, RunAbout(workflow=workflow, tags=tags, reference=f"ref-{name}"), None)
    await opened(store, "d")
    assert await _names(store, RunFilter(workflow="contracts")) == ["b", "a"]
    assert await _names(store, RunFilter(reference="ref-c")) == ["c"]
    assert await _names(store, RunFilter(tags=("eu",))) == ["c", "b", "a"]
    assert await _names(store, RunFilter(tags=("night", "eu", "night"))) == ["c", "a"]
    assert await _names(store, RunFilter(tags=("night",), workflow="contracts")) == ["a"]
    assert await _names(store, RunFilter(workflow="Contracts")) == []
    await store.runs.end(TENANT, "b", "failed")
    assert await _names(store, RunFilter(tags=("eu",), state="failed")) == ["b"]
    first, cursor = await store.runs.page(TENANT, RunFilter(tags=("eu",), limit=2))
    rest, end = await store.runs.page(TENANT, RunFilter(tags=("eu",), limit=2, after=cursor))
    assert ([run.name for run in first], [run.name for run in rest], end) == (["c", "b"], ["a"], None)


async def test_the_latest_fact_of_a_name_counts(store: Store) -> None:
    run, other = await opened(store, "r"), await opened(store, "s")
    assert await store.run_facts.of([run.id, other.id]) == {}
    assert await store.run_facts.of([]) == {}
    await store.run_facts.keep(run.id, {"score": 61, "outcome": "open", "escalated": False, "ratio": 0.5})
    await store.run_facts.keep(run.id, {"outcome": "resolved", "escalated": True})
    await store.run_facts.keep(other.id, {"outcome": "open"})
    facts = await store.run_facts.of([run.id, other.id])
    assert facts == {
        run.id: {"escalated": True, "outcome": "resolved", "ratio": 0.5, "score": 61}, other.id: {"outcome": "open"},
    }  # fmt: skip
    assert list(facts[run.id]) == ["escalated", "outcome", "ratio", "score"]
    assert facts[run.id]["escalated"] is True


async def test_facts_are_only_added_and_the_same_again_adds_none(store: Store, database_url: str) -> None:
    run = await opened(store, "r")
    for value in (True, True, False, True, 1, 1.0):
        await store.run_facts.keep(run.id, {"escalated": value})
    kept = await rows(database_url, "SELECT value FROM run_facts ORDER BY at")
    assert kept == [("true",), ("false",), ("true",), ("1",)]


async def test_facts_that_are_said_at_once_come_one_after_the_other(store: Store, database_url: str) -> None:
    run = await opened(store, "r")
    await asyncio.gather(*(store.run_facts.keep(run.id, {"score": number, "n": -number}) for number in range(10)))
    kept = await rows(database_url, "SELECT name, at FROM run_facts")
    assert (len(kept), len(set(kept))) == (20, 20)
    facts = (await store.run_facts.of([run.id]))[run.id]
    assert facts["score"] == -int(facts["n"])


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("escalated", True, ["c", "a"]), ("escalated", False, ["b"]), ("score", 61.0, ["a"]), ("score", "61", ["b"]),
        ("outcome", "résolu \x00", ["a"]), ("outcome", "Résolu \x00", []), ("nothing", True, []), ("escalated", 1, []),
    ],
)  # fmt: skip
async def test_runs_are_found_by_the_facts_that_hold(store: Store, name: str, value: Fact, found: list[str]) -> None:
    said: dict[str, list[dict[str, Fact]]] = {
        "a": [{"escalated": False}, {"escalated": True, "score": 61, "outcome": "résolu \x00"}],
        "b": [{"escalated": True, "score": "61"}, {"escalated": False}],
        "c": [{"escalated": True}, {"escalated": False}, {"escalated": True}],
    }
    for run, facts in said.items():
        of = (await opened(store, run)).id
        for each in facts:
            await store.run_facts.keep(of, each)
    assert await _names(store, RunFilter(facts=((name, value),))) == found
    assert await _names(store, RunFilter(facts=((name, value), ("escalated", True)))) == [
        run for run in found if run != "b"
    ]


async def _names(store: Store, chosen: RunFilter) -> list[str]:
    found, cursor = await store.runs.page(TENANT, chosen)
    assert cursor is None
    return [run.name for run in found]


@pytest.mark.parametrize(
    ("chosen", "index"),
    [
        (RunFilter(workflow="w"), "runs_workflow"), (RunFilter(reference="r"), "runs_reference"),
        (RunFilter(child_of="c"), "runs_child_of"), (RunFilter(tags=("t",)), "run_tags"),
        (RunFilter(facts=(("f", 1),)), "run_facts_value"),
    ],
)  # fmt: skip
async def test_an_index_leads_to_the_runs(database_url: str, chosen: RunFilter, index: str) -> None:
    def work(connection: Connection) -> list[Run]:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return select_page(connection, TENANT, chosen, None)

    (plan,) = await plans(database_url, work)
    assert index in plan
    assert "SCAN runs" not in plan
