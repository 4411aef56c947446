"""The same steps, many at once in one world and each alone in another: same answers, same records."""

import random
from collections import Counter
from typing import Final

import pytest
from msgspec.structs import replace

from guard.core.effects import AttemptToken, Duration, Effect, Fence, Instant
from guard.core.runs import Run
from guard.ports.steps import Finish, Found, Insert, Look, Replace, RunClosed, Sibling, Step, StepResult, Written
from guard.ports.store import Store
from guard.store.sql.order import in_order
from tests.contract.given import FIRST, LEASE, RESULT, SECOND_TOKEN, TENANT, in_doubt, insert, key

NUMBERS: Final = range(1, 60)
ROUNDS: Final = 40
OVER: Final = "over"
RUNS: Final = ("a", "b", OVER, None)


class World:
    """Effects and runs of one side, whose names are nobody else's."""

    def __init__(self, store: Store, name: str, first: int) -> None:
        self._store = store
        self._name = name
        self._first = first
        self._runs: dict[str, Run] = {}

    async def open(self) -> None:
        """Open the runs, and end one."""
        names = [name for name in RUNS if name is not None]
        runs = await self._store.runs.open(TENANT, [f"{self._name}-{name}" for name in names])
        self._runs = dict(zip(names, runs, strict=True))
        await self._store.runs.end(TENANT, f"{self._name}-{OVER}", "finished")

    def insert(self, number: int, run: str | None, *, alone: bool, is_silent: bool) -> Insert:
        """Return the step that begins an effect; every fifth has the same arguments."""
        step = insert(self._first + number, None if run is None else self._runs[run])
        rule = "once" if number % 3 else "step"
        said = replace(step.intent, rule=rule, business_key=None, identity_digest=bytes(31) + bytes([number % 5]))
        return replace(step, intent=said, alone=alone, lease=Duration(-1) if is_silent else LEASE)

    def finish(self, number: int, token: AttemptToken, fence: int, known: Effect | None) -> Finish:
        """Return the step that records success."""
        return Finish(key=key(self._first + number), token=token, fence=Fence(fence), outcome=RESULT, known=known)

    async def see(self, number: int) -> Effect | None:
        """Read an effect, where there is one."""
        (answer,) = await self._store.effects.apply(0, [Look(key=key(self._first + number))])
        effect: Effect | None = getattr(answer, "effect", None)
        return effect

    async def change(self, number: int, how: str) -> None:
        """Let something come between: doubt, doubt that is given up, another attempt, a slot."""
        effect = await self.see(number)
        if effect is None or effect.life.state != "executing":
            return
        life = in_doubt(effect, Instant(1)).life
        lost = replace(life.attempts[-1], token=FIRST)
        second = replace(lost, token=SECOND_TOKEN, fence=effect.life.fence + 1, report="none", reported_at=None)
        planned = {
            "doubt": life,
            "given up": replace(life, closed=True),
            "again": replace(effect.life, fence=second.fence, attempts=(lost, second)),
        }
        if how in planned and len(effect.life.attempts) == 1:
            await self._store.effects.apply(
                0, [Replace(seen=effect.version, effect=replace(effect, life=planned[how]))]
            )
        elif how == "slot":
            await self._store.effects.keep_slot(key(self._first + number), bytes([number]) * 32)

    async def counts(self) -> list[int]:
        """Return how many effects each run counts."""
        return [run.effects for run in await self._store.runs.open(TENANT, [run.name for run in self._runs.values()])]

    def plain(self, effect: Effect | None) -> object:
        """Return an effect without what differs between worlds: key, names and instants."""
        if effect is None:
            return None
        attempts = tuple(
            replace(one, granted_at=Instant(0), deadline=Instant(0), reported_at=None if one.reported_at is None else 0)
            for one in effect.life.attempts
        )
        ended_at = None if effect.life.ended_at is None else Instant(0)
        since = None if effect.life.epoch_since is None else Instant(0)
        life = replace(effect.life, attempts=attempts, ended_at=ended_at, epoch_since=since)
        number = int.from_bytes(effect.intent.key[6:], "big") - self._first
        run = None if effect.intent.run is None else effect.intent.run.removeprefix(f"{self._name}-")
        intent = replace(effect.intent, key=key(number), run_id=None, run=run, began_at=Instant(0))
        return replace(effect, intent=intent, life=life)


def told(world: World, answer: StepResult) -> tuple[type, object]:
    """Return what was answered; of several siblings in doubt any may be shown."""
    is_sibling = isinstance(answer, Sibling)
    return type(answer), None if is_sibling else world.plain(getattr(answer, "effect", None))


@pytest.mark.parametrize("seed", range(4))
async def test_many_at_once_come_to_what_each_comes_to_alone(store: Store, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    together, alone = World(store, "together", 0), World(store, "alone", 1_000)
    await together.open()
    await alone.open()
    seen: dict[int, list[Effect]] = {}
    kinds: Counter[type] = Counter()
    for _ in range(ROUNDS):
        steps: list[Step] = []
        others: list[Step] = []
        is_alone = chance.random() < 0.4  # then nothing in the batch makes or settles the doubt that it asks for
        for number in chance.sample(NUMBERS, chance.randint(4, 14)):
            if is_alone or chance.random() < 0.6:
                run = chance.choice(RUNS[:-1] if is_alone else RUNS)
                is_silent = not is_alone and chance.random() < 0.1
                steps.append(together.insert(number, run, alone=is_alone, is_silent=is_silent))
                others.append(alone.insert(number, run, alone=is_alone, is_silent=is_silent))
            else:
                token, fence = chance.choice(((FIRST, 1), (FIRST, 1), (SECOND_TOKEN, 2), (SECOND_TOKEN, 1)))
                known = chance.choice([None, *seen.get(number, [])])
                steps.append(together.finish(number, token, fence, known))
                others.append(alone.finish(number, token, fence, None))
        answers = [told(together, answer) for answer in await store.effects.apply(0, steps)]
        expected: dict[int, tuple[type, object]] = {}
        for place, step in in_order(others):
            (answer,) = await store.effects.apply(0, [step])
            expected[place] = told(alone, answer)
        assert answers == [expected[place] for place in range(len(steps))]
        kinds.update(kind for kind, _ in answers)
        for number in chance.sample(NUMBERS, 4):
            how = chance.choice(("doubt", "given up", "again", "slot", "look"))
            await together.change(number, how)
            await alone.change(number, how)
            effect = await together.see(number)
            if effect is not None and effect.life.state == "executing":
                seen.setdefault(number, []).append(effect)
    for number in NUMBERS:
        assert together.plain(await together.see(number)) == alone.plain(await alone.see(number))
    assert set(kinds) == {Written, Found, RunClosed, Sibling}
    assert await together.counts() == await alone.counts()
