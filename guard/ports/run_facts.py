"""What the service needs of a database for facts of runs: said whenever they become known, and never taken away."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from guard.core.effects import RunId
from twiceshy_contract.runs import Fact


class RunFactStore(Protocol):
    """Facts of runs. Of a name that was said several times the latest counts."""

    async def keep(self, run: RunId, facts: Mapping[str, Fact]) -> None:
        """Add facts of a run, whether it is open or ended; what is said already is not said again."""

    async def of(self, runs: Sequence[RunId]) -> dict[RunId, dict[str, Fact]]:
        """Return the facts of each of these runs, by name; a run without any may be missing."""
