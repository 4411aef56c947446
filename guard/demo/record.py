"""What the service recorded of an accident: the states that its effect went through, and who settled it."""

from urllib.parse import quote

import msgspec

from guard.demo.http import JsonService
from guard.demo.processes import ChildFailed


class Attempt(msgspec.Struct, frozen=True):
    """One try, as the service shows it."""

    report: str


class Effect(msgspec.Struct, frozen=True):
    """One effect, as the service shows it. Only an effect in doubt can be resolved as applied, which proves it was."""

    key: str
    state: str
    resolution: str | None = None
    attempts: tuple[Attempt, ...] = ()

    @property
    def was_in_doubt(self) -> bool:
        """Whether nobody knew for a while."""
        return (self.resolution or "").startswith("applied ")

    @property
    def states(self) -> tuple[str, ...]:
        """The states that it went through."""
        return ("executing", *(["in_doubt"] if self.was_in_doubt else []), self.state)

    def settled(self, answers: int) -> str:
        """Say who settled it, and how many answers came of it."""
        if self.resolution is None:
            return f"attempts that ran: {len(self.attempts)}; calls given its result: {answers}"
        reported = self.attempts[0].report
        doubt = "the lease ran out" if reported == "none" else f"the call reported {reported}"
        return f"{doubt}; {self.resolution}"


class _Page(msgspec.Struct, frozen=True):
    """A page of effects."""

    items: tuple[Effect, ...]


def recorded(guard: JsonService, run: str) -> Effect:
    """Read the one effect of a run. Raises ChildFailed where there is another number."""
    page = guard.get(f"/v1/effects?run={quote(run)}", _Page)
    if len(page.items) != 1:
        raise ChildFailed(f"The service recorded {len(page.items)} effects of the run {run} instead of one.")
    return guard.get(f"/v1/effects/{page.items[0].key}", Effect)
