"""Several processes that record one run, each taking it over from the others."""

from guard.core.recording import TakenOver
from guard.ports.events import Appended
from guard.ports.store import Store
from tests.contract.given_logs import append, delivery, intent, one, recorded


async def record_the_same(store: Store, number: int) -> list[int]:
    """Take a run's log over and append to it, forty times; return which numbers this process gave."""
    given: list[int] = []
    for _ in range(40):
        run = await recorded(store)
        head = run.events
        for _ in range(3):
            result = await one(
                store, append(run, run.epoch, intent(head + 1, f"by-{number}"), delivery(head + 2, head + 1))
            )
            if isinstance(result, TakenOver):
                break
            assert isinstance(result, Appended), result
            assert (result.added, result.head) == (2, head + 2)
            given += [head + 1, head + 2]
            head = result.head
    return given
