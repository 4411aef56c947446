"""Pauses of forks in the store: one for a key, answered once, spent by one attempt."""

import asyncio
from uuid import UUID

import pytest

from guard.core.effects import SECOND, AttemptToken, Duration, Key, RunId, TenantId
from guard.core.forks import Fork, child_of
from guard.core.pauses import PauseAnswer, Stop
from guard.core.retention import KEPT_IN_RUN
from guard.ports.pauses import PauseFilter
from guard.ports.search import RunFilter
from guard.ports.store import Store
from tests.contract.given_logs import rows

RUN, OTHER = RunId(UUID(int=1)), RunId(UUID(int=2))
ONE, TWO = AttemptToken(UUID(int=1)), AttemptToken(UUID(int=2))
INJECT = PauseAnswer(word="inject", outcome=b'{"result":1}')
DENY = PauseAnswer(word="deny", reason="no")
ALLOW = PauseAnswer(word="allow", reason="yes")

pytestmark = pytest.mark.anyio


def stop(number: int = 1, run: RunId = RUN, words: bytes = b"a") -> Stop:
    """Return a stop of a run."""
    return Stop(
        run=run,
        tenant=TenantId(1),
        key=Key(bytes([number]) * 32),
        tool="pay",
        arguments=b'{"to":"dan"}',
        identity_digest=b"identity",
        arguments_digest=words,
        rule="nothing may answer",
    )


async def test_a_stop_is_kept_once_and_found_by_run_and_key(store: Store) -> None:
    first = await store.pauses.keep(stop())
    assert (first.stop, first.answer, first.spent_by) == (stop(), None, None)
    assert await store.pauses.keep(stop()) == first
    assert await store.pauses.find(RUN, stop().key) == first
    assert await store.pauses.find(OTHER, stop().key) is None
    assert await store.pauses.find(RUN, stop(2).key) is None


async def test_a_pause_is_answered_once(store: Store) -> None:
    await store.pauses.keep(stop())
    answered = await store.pauses.answer(RUN, stop().key, INJECT, "ann")
    assert answered is not None
    assert (answered.answer, answered.answered_by) == (INJECT, "ann")
    assert (answered.answered_at or 0) >= answered.at
    assert await store.pauses.answer(RUN, stop().key, DENY, "bob") == answered
    assert await store.pauses.answer(RUN, stop(2).key, DENY, "bob") is None
    assert await store.pauses.keep(stop()) == answered


async def test_of_many_answers_at_once_one_counts(store: Store) -> None:
    await store.pauses.keep(stop())
    answers = [PauseAnswer(word="deny", reason=f"{number}") for number in range(8)]
    told = await asyncio.gather(*(store.pauses.answer(RUN, stop().key, answer, None) for answer in answers))
    assert len({pause.answer.reason for pause in told if pause is not None and pause.answer is not None}) == 1


async def test_an_answer_is_spent_by_the_first_attempt(store: Store) -> None:
    await store.pauses.keep(stop())
    assert await store.pauses.spend(RUN, stop().key, ONE) is None
    await store.pauses.answer(RUN, stop().key, ALLOW, None)
    assert [await store.pauses.spend(RUN, stop().key, token) for token in (ONE, TWO, ONE)] == [ONE] * 3
    assert await store.pauses.spend(RUN, stop(2).key, ONE) is None


async def test_a_pause_gives_way_to_another_call_of_its_key_until_its_answer_is_spent(store: Store) -> None:
    other = stop(words=b"b")
    await store.pauses.keep(stop())
    assert (await store.pauses.keep(other)).stop == other
    await store.pauses.answer(RUN, other.key, ALLOW, "ann")
    again = await store.pauses.keep(stop())
    assert (again.stop, again.answer, again.answered_by) == (stop(), None, None)
    assert await store.pauses.find(RUN, stop().key) == again
    await store.pauses.answer(RUN, stop().key, ALLOW, None)
    await store.pauses.spend(RUN, stop().key, ONE)
    kept = await store.pauses.keep(other)
    assert (kept.stop, kept.spent_by) == (stop(), ONE)


async def test_pauses_are_listed_oldest_first_by_page_and_state(store: Store) -> None:
    for number in (3, 1, 2):
        await store.pauses.keep(stop(number))
    await store.pauses.keep(stop(4, OTHER))
    await store.pauses.answer(RUN, stop(1).key, DENY, None)
    page, after = await store.pauses.page(RUN, PauseFilter(limit=2))
    rest, end = await store.pauses.page(RUN, PauseFilter(limit=2, after=after))
    assert ([pause.stop.key[0] for pause in page + rest], end) == ([3, 1, 2], None)
    found = {
        state: [pause.stop.key[0] for pause in (await store.pauses.page(RUN, PauseFilter(state=state)))[0]]
        for state in ("open", "answered")
    }
    assert found == {"open": [3, 2], "answered": [1]}
    with pytest.raises(ValueError, match="cursor"):
        await store.pauses.page(RUN, PauseFilter(after="nonsense"))


async def test_a_salt_is_drawn_once_and_whether_a_call_was_let_run_is_known_by_its_key(store: Store) -> None:
    first, again = await asyncio.gather(store.salts.of(TenantId(1)), store.salts.of(TenantId(1)))
    assert (len(first), first) == (32, again)
    fork = await store.runs.open(TenantId(1), ["f"])
    await store.forks.let_run(fork[0].id, "pay", Key(b"k" * 32), None)
    assert await store.forks.is_let(fork[0].id, Key(b"k" * 32)) is True
    assert await store.forks.is_let(OTHER, Key(b"k" * 32)) is False


async def test_a_child_of_a_fork_is_listed_as_a_fork_of_what_it_has_the_record_of(store: Store) -> None:
    main, sub = await store.runs.open(TenantId(1), ["main", "main.sub"])
    fork = await store.runs.fork(TenantId(1), "why", Fork(parent="main", parent_id=main.id, at=0))
    assert fork.fork is not None
    terms = child_of(fork.id, fork.fork, ("main.sub", sub.id))
    child = await store.runs.fork(TenantId(1), "why.sub", terms, "why")
    new = await store.runs.fork(TenantId(1), "why.new", child_of(fork.id, fork.fork, None), "why")
    assert (child.fork, child.child_of, child.effects) == (terms, "why", 0)
    assert (new.child_of, await store.forks.ancestors(new.id)) == ("why", [new.fork])
    listed = {of: (await store.runs.page(TenantId(1), RunFilter(fork_of=of)))[0] for of in (main.id, sub.id)}
    assert {of: [run.name for run in runs] for of, runs in listed.items()} == {main.id: ["why"], sub.id: ["why.sub"]}


async def test_where_a_fork_stopped_is_forgotten_with_the_fork(store: Store, database_url: str) -> None:
    (run,) = await store.runs.open(TenantId(1), ["f"])
    await store.pauses.keep(stop(run=run.id))
    await store.runs.end(TenantId(1), "f", "finished")
    await store.retention.expire_of_run(run.id, {}, Duration(SECOND), 10)
    assert await store.pauses.find(run.id, stop().key) is not None
    await rows(database_url, f"UPDATE runs SET ended_at = ended_at - {KEPT_IN_RUN}")
    await store.retention.expire_of_run(run.id, {}, Duration(SECOND), 10)
    assert await store.retention.empty(run.id, 10) is False
    assert await store.pauses.find(run.id, stop().key) is None
