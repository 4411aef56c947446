"""One tenant's flood of begins: another's call is in the next transaction, and reports are taken and go first."""

import asyncio
from collections.abc import Generator, Sequence

from guard.core.effects import Key, TenantId
from guard.ports.steps import Look, Step, StepResult
from guard.service.intake import Intake
from guard.service.measures import Measures
from guard.service.queues import MAX_BATCH, MOST_STARTS, Overloaded
from tests.unit.service.test_intake import ScriptedStore, ignore

FLOOD = 10_000
ANN, BOB = TenantId(1), TenantId(2)


def work(name: str) -> Generator[Step, StepResult, str]:
    yield Look(key=Key(name.encode()))
    return name


class Flooded:
    """A lane whose first transaction is under way while one tenant begins ten thousand times."""

    def __init__(self) -> None:
        self.transactions: list[list[str]] = []
        self.store = ScriptedStore(self._note)
        self.measures = Measures()
        self.intake = Intake(self.store, ignore, self.measures)
        self.begun: list[asyncio.Task[str]] = []

    def _note(self, steps: Sequence[Step]) -> None:
        self.transactions.append([step.key.decode() for step in steps if isinstance(step, Look)])

    async def flood(self) -> None:
        """Begin so often that no more is taken."""
        self.intake.start()
        self.begun.append(asyncio.create_task(self.intake.admit(b"", work("first"), ANN)))
        await self.store.asked.wait()
        self.begun += [asyncio.create_task(self.intake.admit(b"", work(str(n)), ANN)) for n in range(FLOOD)]
        await asyncio.sleep(0)

    async def ended(self) -> list[str | BaseException]:
        """Let the store answer; return what each begin of the flood came to."""
        self.store.may_answer.set()
        heard = await asyncio.gather(*self.begun, return_exceptions=True)
        await self.intake.close()
        return heard


async def test_the_call_of_another_tenant_is_in_the_next_transaction_and_the_flood_keeps_its_order() -> None:
    flooded = Flooded()
    await flooded.flood()
    other = asyncio.create_task(flooded.intake.admit(b"", work("bob's"), BOB))
    await asyncio.sleep(0)
    heard = await flooded.ended()
    assert await other == "bob's"
    first, second = flooded.transactions[:2]
    assert (first, len(second)) == (["first"], MAX_BATCH)
    assert "bob's" in second
    done = [name for names in flooded.transactions[1:] for name in names if name != "bob's"]
    assert done == [str(number) for number in range(MOST_STARTS)]
    refused = [one for one in heard if isinstance(one, Overloaded)]
    assert len(refused) == FLOOD - MOST_STARTS
    assert heard[: MOST_STARTS + 1] == ["first", *done]
    assert f'twiceshy_put_off_total{{why="queue"}} {float(len(refused))}' in flooded.measures.text().decode()


async def test_a_report_of_the_flooding_tenant_is_taken_and_goes_before_its_begins() -> None:
    flooded = Flooded()
    await flooded.flood()
    report = asyncio.create_task(flooded.intake.do(b"", work("commit"), ANN))
    await asyncio.sleep(0)
    await flooded.ended()
    assert await report == "commit"
    assert flooded.transactions[1][0] == "commit"
