"""Runs that go on from a log at the service: the same run after a crash, and a fork of a recorded one.

What the log has is served as it was delivered. What it has no outcome for gets today's: a tool is asked for under the
same intent, and the service knows whether it happened.
"""

from twiceshy._environment import Environment
from twiceshy._fork import Forking
from twiceshy._going_on import GoingOn
from twiceshy._overrides import Overrides
from twiceshy._recording import Recording
from twiceshy._replay_plan import Plan
from twiceshy._script import Script
from twiceshy._scripts import ReplayScript
from twiceshy._steps import Flow, Raised, Returned
from twiceshy.exceptions import SetupError
from twiceshy_contract.events import Delivery
from twiceshy_contract.runs import RunView


class Resuming:
    """Makes what stands in front of a run's boundaries: its own log, as far as there is one."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def __call__(self, view: RunView) -> Script | None:
        """Return the script of a run that was just opened; it may wait for the service."""
        return resumed(Recording.fetch(self._environment, view.run)) if view.events else None


class CutAt:
    """Makes what stands in front of a fork: the log of its parent up to the cut, or its own where it goes on."""

    def __init__(self, environment: Environment, forking: Forking) -> None:
        self._environment = environment
        self._forking = forking
        self._parent: Recording | None = None

    def step(self) -> int:
        """Fetch the parent's log; return the newest step of its effects that was delivered before the cut."""
        parent = self._parent = self._parent or Recording.fetch(self._environment, self._forking.parent)
        cut = self._forking.at_event or 0
        if not 1 <= cut <= len(parent) + 1:
            raise SetupError(
                f"The fork {self._forking.request.fork!r}: at_event is an event of the run {parent.run}, from 1 to "
                f"{len(parent) + 1}; it is {cut}."
            )
        Overrides(self._forking.overrides, parent)
        return newest_step(parent, cut)

    def within(self, entering: Flow[Returned | Raised]) -> Flow[Returned | Raised]:
        """Enter the fork, and let go of the parent's log where no script has taken it."""
        try:
            return (yield from entering)
        finally:
            if self._parent is not None:
                self._parent.close()
                self._parent = None

    def __call__(self, view: RunView) -> Script | None:
        """Return the script of the fork, or of one of its children, which go on from their own logs."""
        if view.run != self._forking.request.fork:
            return Resuming(self._environment)(view)
        parent, cut = self._parent, self._forking.at_event or 0
        self._parent = None
        if parent is None:
            return None
        overrides, live = Overrides(self._forking.overrides, parent), self._forking.request.live
        named = frozenset(terms.tool for terms in live)
        script = ReplayScript(parent, Plan(mode="fork", at=cut, overrides=overrides, live=named, is_online=True))
        if not view.events:
            return script
        if view.events < cut - 1:
            parent.close()
            raise SetupError(
                f"The fork {view.run} was stopped at its event {view.events}, before the cut at {cut}. Make it again "
                "under another name."
            )
        own = Recording.fetch(self._environment, view.run)
        return GoingOn(resumed(own), script, own)


def cutting(environment: Environment, forking: Forking | None) -> CutAt | None:
    """Return what cuts a log, where the fork is one of a recorded run."""
    return None if forking is None or forking.at_event is None else CutAt(environment, forking)


def resumed(recording: Recording) -> ReplayScript:
    """Return the script of a run that goes on from its own log."""
    return ReplayScript(recording, Plan(mode="resume", overrides=Overrides((), recording), is_online=True))


def newest_step(recording: Recording, cut: int) -> int:
    """Return the newest step of a run's effects whose outcome was delivered before an event; 0 where none was."""
    steps = (
        event.step
        for event in recording.events[: cut - 1]
        if isinstance(event, Delivery) and event.effect is not None and event.step is not None
    )
    return max(steps, default=0)
