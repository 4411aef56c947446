"""What the two databases have in common: lanes for batches, and transactions for all other statements."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sqlalchemy import Connection

from guard.core.effects import Instant
from guard.ports.steps import Step, StepResult

ResultT = TypeVar("ResultT")


class Database(Protocol):
    """One database, reached by its own driver. Every method raises the port's errors only."""

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply a batch in one transaction."""

    async def read(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in one statement."""

    async def read_at_once(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in several statements that see one moment."""

    async def write(self, work: Callable[[Connection, Instant], ResultT]) -> ResultT:
        """Do work in one transaction, at the database's time; it is done again where others stood in its way."""

    async def close(self) -> None:
        """Give back all connections."""
