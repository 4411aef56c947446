"""Group commit: what waits goes together, and one command never fails another."""

import asyncio
from collections.abc import Callable, Generator, Sequence

import pytest

from guard.core.effects import AttemptToken, Effect, Evidence, Instant, Key, RunId, TenantId
from guard.ports.steps import Found, Look, Step, StepResult, Written
from guard.ports.store import EffectFilter, Newest, Rival, StatementFailed, StoreUnavailable, Tally
from guard.service.intake import Intake
from guard.service.measures import Measures

pytestmark = pytest.mark.anyio
POISON = Key(b"poison")


class ScriptedStore:
    """A store of one lane that answers every look with nothing, once it is let."""

    def __init__(self, before: Callable[[Sequence[Step]], None] = lambda _steps: None) -> None:
        self.batches: list[int] = []
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()
        self._before = before

    @property
    def lanes(self) -> int:
        return 1

    async def overdue(self, limit: int) -> list[Key]:
        return []

    async def page(self, tenant: TenantId, chosen: EffectFilter) -> tuple[list[Effect], str | None]:
        return [], None

    async def evidence(self, key: Key) -> list[Evidence]:
        return []

    async def tally(self, tenant: TenantId) -> Tally:
        return Tally(in_doubt=0, executing=0)

    async def newest(self, slot: bytes, occurrence: int, token: AttemptToken, arguments_digest: bytes) -> Newest:
        return Newest()

    async def rival(self, slot: bytes, besides: Key) -> Rival | None:
        return None

    async def keep_slot(self, key: Key, slot: bytes) -> None:
        return

    async def deliver(self, tenant: TenantId, run: RunId, keys: Sequence[Key]) -> None:
        return

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        self.batches.append(len(steps))
        self.asked.set()
        await self.may_answer.wait()
        self._before(steps)
        return [Found(effect=None, at=Instant(7)) for _ in steps]


def look(key: Key, times: int = 1) -> Generator[Step, StepResult, str]:
    for _ in range(times):
        yield Look(key=key)
    return key.decode()


def ignore(_written: Written) -> None:
    """Hear of nothing."""


async def answers(intake: Intake, works: Sequence[Generator[Step, StepResult, str]]) -> list[object]:
    return list(await asyncio.gather(*(intake.do(b"", work) for work in works), return_exceptions=True))


async def test_what_arrives_while_a_batch_is_in_flight_goes_together_in_the_next() -> None:
    store = ScriptedStore()
    intake = Intake(store, ignore, Measures())
    intake.start()
    first = asyncio.create_task(intake.do(b"", look(Key(b"first"))))
    await store.asked.wait()
    rest = asyncio.gather(*(intake.do(b"", look(Key(str(n).encode()))) for n in range(5)))
    await asyncio.sleep(0)
    store.may_answer.set()
    assert await first == "first"
    assert await rest == ["0", "1", "2", "3", "4"]
    assert store.batches == [1, 5]
    await intake.close()


def refuse_poison(steps: Sequence[Step]) -> None:
    if any(isinstance(step, Look) and step.key == POISON for step in steps):
        raise StatementFailed("a value that the database does not take")


async def test_a_statement_that_the_database_refuses_fails_alone() -> None:
    store = ScriptedStore(refuse_poison)
    store.may_answer.set()
    intake = Intake(store, ignore, Measures())
    intake.start()
    keys = [b"a", b"b", POISON, b"c", b"d"]
    heard = await answers(intake, [look(Key(key)) for key in keys])
    assert [str(answer) for answer in heard] == ["a", "b", "a value that the database does not take", "c", "d"]
    await intake.close()


async def test_a_batch_whose_reply_was_lost_is_sent_once_more() -> None:
    losses = ["connection reset"]

    def lose_once(_steps: Sequence[Step]) -> None:
        if losses:
            raise StoreUnavailable(losses.pop())

    store = ScriptedStore(lose_once)
    store.may_answer.set()
    intake = Intake(store, ignore, Measures())
    intake.start()
    assert await answers(intake, [look(Key(b"a")), look(Key(b"b"))]) == ["a", "b"]
    assert store.batches == [2, 2]
    await intake.close()


async def test_a_store_that_stays_away_is_told_to_everyone_and_the_lane_lives_on() -> None:
    is_away = [True]

    def stay_away(_steps: Sequence[Step]) -> None:
        if is_away[0]:
            raise StoreUnavailable("nobody there")

    store = ScriptedStore(stay_away)
    store.may_answer.set()
    intake = Intake(store, ignore, Measures())
    intake.start()
    heard = await answers(intake, [look(Key(b"a")), look(Key(b"b"))])
    assert [type(answer) for answer in heard] == [StoreUnavailable, StoreUnavailable]
    is_away[0] = False
    assert await answers(intake, [look(Key(b"c"))]) == ["c"]
    await intake.close()


async def test_a_use_case_of_several_steps_shares_batches_with_others() -> None:
    store = ScriptedStore()
    store.may_answer.set()
    intake = Intake(store, ignore, Measures())
    intake.start()
    assert await answers(intake, [look(Key(b"a"), times=3), look(Key(b"b"), times=3)]) == ["a", "b"]
    assert store.batches == [2, 2, 2]
    await intake.close()


def broken(key: Key) -> Generator[Step, StepResult, str]:
    yield Look(key=key)
    raise ValueError("a defect")


async def test_a_use_case_with_a_defect_fails_alone() -> None:
    store = ScriptedStore()
    store.may_answer.set()
    intake = Intake(store, ignore, Measures())
    intake.start()
    heard = await answers(intake, [look(Key(b"a")), broken(Key(b"b")), look(Key(b"c"))])
    assert [str(answer) for answer in heard] == ["a", "a defect", "c"]
    await intake.close()
