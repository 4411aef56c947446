"""Several processes over one database, started together; what each does stands here, where a new process finds it."""

import asyncio
import os
import random
import traceback
from collections.abc import Callable, Coroutine
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from guard.core.effects import AttemptToken
from guard.ports.steps import Replace, Step, StepResult, Written
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT, finish, in_doubt, insert, look, opened

_SECONDS = 120
Work = Callable[[Store, int], Coroutine[Any, Any, Any]]


def compete(url: str, work: Work, count: int) -> list[Any]:
    """Run the work in several processes at once; return what each returned, in the order of their numbers."""
    context = get_context("forkserver")  # which imports all of this once, and has opened no database
    context.set_forkserver_preload(["tests.contract.rivals", "tests.contract.relay_rivals"])
    barrier, results = context.Barrier(count), context.Queue()
    children = [context.Process(target=_child, args=(url, work, number, barrier, results)) for number in range(count)]
    for child in children:
        child.start()
    returned = dict(results.get(timeout=_SECONDS) for _ in children)
    for child in children:
        child.join(_SECONDS)
        child.close()
    results.close()
    results.join_thread()
    failures = [value for value in returned.values() if isinstance(value, str)]
    assert not failures, "\n".join(failures)
    return [returned[number] for number in range(count)]


async def begin_the_same(store: Store, number: int) -> list[bool]:
    """Try to begin the same forty effects as the others; say which were won."""
    run = await opened(store)
    won = []
    for at in range(40):
        answers = await store.effects.apply(0, [insert(at, run, AttemptToken(uuid4()))])
        won.append(isinstance(answers[0], Written))
    return won


async def replace_the_same(store: Store, number: int) -> int:
    """Raise the tries of the one effect thirty times, over the version last seen; return how many were written."""
    effect, count = await look(store), 0
    for _ in range(30):
        planned = replace(effect, life=replace(effect.life, tries=effect.life.tries + 1))
        (answer,) = await store.effects.apply(0, [Replace(seen=effect.version, effect=planned)])
        assert not isinstance(answer, str)
        count += isinstance(answer, Written)
        effect = _effect(answer)
    return count


async def cross_the_others(store: Store, number: int) -> int:
    """Send batches whose keys and runs overlap with those of the others, in any order."""
    chance = random.Random(number)  # noqa: S311
    runs = await store.runs.open(TENANT, ["a", "b", "c"])
    for turn in range(60):
        numbers = chance.sample(range(turn, turn + 30), 12)
        steps: list[Step] = [insert(at, chance.choice(runs), AttemptToken(uuid4())) for at in numbers[:6]]
        seen = await store.effects.apply(0, steps)
        effects = [_effect(answer) for answer in seen]
        again: list[Step] = [insert(at, chance.choice(runs), AttemptToken(uuid4())) for at in numbers[6:]]
        for effect in effects:
            latest = effect.life.attempts[-1]
            planned = in_doubt(effect, effect.intent.began_at)
            again.append(Replace(seen=effect.version, effect=planned, open_run=planned.intent.run_id))
            again.append(finish(int.from_bytes(effect.intent.key[6:], "big"), latest.token, latest.fence))
        chance.shuffle(again)
        await store.effects.apply(turn % store.effects.lanes, again)
    return os.getpid()


async def begin_and_commit_together(store: Store, number: int) -> tuple[int, int]:
    """Begin the same four hundred effects as the others, ten at a time and in any order, and commit what anyone began.

    Returns how many were begun here, and how many were committed.
    """
    chance = random.Random(number)  # noqa: S311
    runs = await store.runs.open(TENANT, ["a", "b", "c"])
    begun, committed = 0, 0
    left: list[Step] = []
    for turn in range(41):
        first = turn * 10
        numbers = list(range(first, first + 10)) if turn < 40 else []
        chance.shuffle(numbers)
        steps = [*left, *(insert(at, runs[at % 3]) for at in numbers)]
        answers = await store.effects.apply(0, steps)
        wins = [isinstance(answer, Written) for answer in answers]
        committed, begun = committed + sum(wins[: len(left)]), begun + sum(wins[len(left) :])
        left = [replace(finish(at), known=_effect(answers[len(left) + place])) for place, at in enumerate(numbers)]
    return begun, committed


async def declare_by_turns(store: Store, number: int) -> None:
    """Declare one tool over and over, each time with another lease."""
    from twiceshy_contract.tools import ToolDeclaration

    for turn in range(10):
        await store.tools.declare(TENANT, {"book": ToolDeclaration(lease_seconds=10 + number * 10 + turn)})


async def decide_the_same(store: Store, number: int) -> list[str]:
    """Decide the same approvals as the others, each as another person; return what became of each word."""
    from guard.core.approvals import Ballot, NotCounted
    from guard.ports.approvals import ApprovalFilter

    asked, _, _ = await store.approvals.page(TENANT, ApprovalFilter(limit=100))
    said: list[str] = []
    for approval in sorted(asked, key=lambda one: one.question.key):
        ballot = Ballot(person=f"person-{number}", verdict="deny" if number % 2 else "approve")
        told = await store.approvals.decide(TENANT, approval.id, ballot)
        assert told is not None
        said.append(told.said.objection if isinstance(told.said, NotCounted) else "counted")
    return said


async def open_the_same(store: Store, number: int) -> list[str]:
    """Open the same twenty runs as the others, in another order; return their ids."""
    names = [f"run-{at}" for at in range(20)]
    shuffled = random.Random(number).sample(names, 20)  # noqa: S311
    runs = {run.name: str(run.id) for run in await store.runs.open(TENANT, shuffled)}
    return [runs[name] for name in names]


def _effect(answer: StepResult) -> Any:
    effect = getattr(answer, "effect", None)
    assert effect is not None, answer
    return effect


def _child(url: str, work: Work, number: int, barrier: Barrier, results: "Queue[tuple[int, Any]]") -> None:
    try:
        results.put((number, asyncio.run(_work(url, work, number, barrier))))
    except BaseException:  # noqa: BLE001 - the parent shows it
        results.put((number, traceback.format_exc()))


async def _work(url: str, work: Work, number: int, barrier: Barrier) -> Any:
    store = await open_store(url)
    try:
        await asyncio.to_thread(barrier.wait, _SECONDS)
        return await work(store, number)
    finally:
        await store.close()
