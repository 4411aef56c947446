"""Run an agent again from the record of a run: nothing is sent to a service, and no tool runs.

A replay is put around the code by a context variable, so that the runs that it enters are served by it. Code that asks
for what is not of the record is stopped; in no way does it reach the world through the guard.
"""

import asyncio
import inspect
import threading
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Final, Unpack

import msgspec

from twiceshy._log import Log
from twiceshy._overlaid import OwnLog
from twiceshy._recording import Recording
from twiceshy._redacted_record import Covering
from twiceshy._replay_errors import ReplayIncomplete, ReplayMisfit, ReplayPaused, ReplayStopped
from twiceshy._replay_options import ReplayOptions, of_child, patience_of, planned
from twiceshy._replay_plan import CLOCKS, Plan
from twiceshy._replayed import Replayed
from twiceshy._replaying import replaying
from twiceshy._restore import untag
from twiceshy._scripts import ReplayScript
from twiceshy._session import Session
from twiceshy.exceptions import SetupError

_OTHERS: Final = ("tool_call", "custom", "human", "child_run")


def replay(recording: Recording, agent: Callable[..., Any], **options: Unpack[ReplayOptions]) -> Replayed:
    """Run an agent from a recording, and say what it does otherwise. The options are those of ReplayOptions.

    `agent` is a function without parameters, or with one, which is given the run's recorded input. An `async def` one
    is run on an event loop of its own.
    """
    going = Replay(recording, options)
    return going.done(lambda: _settled(_called(agent, recording)))


async def replay_async(recording: Recording, agent: Callable[..., Any], **options: Unpack[ReplayOptions]) -> Replayed:
    """Do the same on the running event loop."""
    going = Replay(recording, options)
    return await going.done_async(lambda: _called(agent, recording))


class Part:
    """One run of a replay: its recording, what stands in front of its boundaries, and what it does."""

    def __init__(self, recording: Recording, plan: Plan, patience: float) -> None:
        self.recording: Final = recording
        self.script: Final = ReplayScript(recording, plan)
        self.own: Final = OwnLog(recording)
        self.session: Final = Session(Log(self.own), self.script, patience=patience, cover=Covering(recording))

    def finish(self) -> None:
        """Find what the code left out."""
        plan = self.script.plan
        asked = ("llm_call",) if plan.llm in ("recorded", "position") else ()
        clocks = CLOCKS if plan.mode != "retest" and not plan.overrides else ()
        self.script.found.finish((*_OTHERS, *asked, *clocks), plan.at if plan.mode == "fork" else None)


class Replay:
    """One replay of one recording, and of those of its children that are given with it."""

    def __init__(self, recording: Recording, options: ReplayOptions) -> None:
        self._plan: Plan = planned(recording, options)
        self._patience = patience_of(options)
        self._root = Part(recording, self._plan, self._patience)
        self._parts: dict[str, Part] = {}
        self._children = {child.run: child for child in options.get("children", ())}
        self._lock = threading.RLock()

    def session_for(self, run: str) -> Session:
        """Return the boundaries of a run: the first that the code enters is the recorded one, whatever its name."""
        with self._lock:
            if not self._parts:
                self._parts[run] = self._root
            elif run not in self._parts and run in self._children:
                child = self._children[run]
                self._parts[run] = Part(child, of_child(self._plan, child), self._patience)
        part = self._parts.get(run)
        if part is None:
            raise self._root.script.fail(self._root.script.found.of_another_run(run))
        return part.session

    def input_of(self, run: str) -> object:
        """Return what the agent of a run was given when it was recorded."""
        part = self._parts.get(run, self._root)
        return input_of(part.recording)

    def refusal(self, what: str) -> ReplayStopped:
        """Return the error of code that reaches for the world beside the record."""
        return self._root.script.fail(self._root.script.found.outside(what))

    def done(self, agent: Callable[[], Any]) -> Replayed:
        """Run the agent and return what came of it."""
        value, error = None, None
        with replaying(self):
            try:
                value = agent()
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as raised:  # noqa: BLE001 - how the code ends is what is asked
                error = raised
                _let_go(raised)
        return self._replayed(value, error)

    async def done_async(self, agent: Callable[[], Any]) -> Replayed:
        """Do the same on an event loop."""
        value, error = None, None
        with replaying(self):
            try:
                value = agent()
                if inspect.isawaitable(value):
                    value = await value
            except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
                raise
            except BaseException as raised:  # noqa: BLE001 - how the code ends is what is asked
                error = raised
                _let_go(raised)
        return self._replayed(value, error)

    def _replayed(self, value: Any, error: BaseException | None) -> Replayed:
        parts = [self._root, *(part for part in self._parts.values() if part is not self._root)]
        stopped = next((part.script.stopped for part in parts if part.script.stopped is not None), None)
        if stopped is None and isinstance(error, ReplayStopped):
            stopped = error
        if isinstance(stopped, ReplayMisfit):
            raise stopped.refusal
        if isinstance(error, SetupError) and stopped is None:
            raise error
        if stopped is None:
            for part in parts:
                part.finish()
            self._compare(value, error)
        if isinstance(stopped, ReplayPaused):
            stopped.events = tuple(self._root.own.events)
        found = [divergence for part in parts for divergence in part.script.found]
        return Replayed(
            recording=self._root.recording,
            log=self._root.own.recording(),
            mode=self._plan.mode,
            value=value if stopped is None else None,
            error=stopped or error,
            divergences=tuple(sorted(found, key=lambda one: one.is_note)),
            paused=stopped if isinstance(stopped, ReplayPaused) else None,
            incomplete=stopped if isinstance(stopped, ReplayIncomplete) else None,
            unused_overrides=self._plan.overrides.unused,
            is_counterfactual=any(part.session.log.is_counterfactual for part in parts),
        )

    def _compare(self, value: Any, error: BaseException | None) -> None:
        """Find whether the code fails now, and note where it comes to something else than a fact says.

        A fact is said of a run at whatever time, by whomever: it is no part of what is replayed.
        """
        found, head = self._root.script.found, self._root.recording.head
        fact = head.facts.get("outcome")
        if isinstance(value, dict):
            value = value.get("outcome")
        if error is not None and head.state == "finished":
            found.failed(error)
        elif fact is not None and type(fact) is type(value) and fact != value:
            found.beside_fact(fact, value)


def _let_go(error: BaseException) -> None:
    """Let the code's frames go while nothing reaches the world: generators that end with them act in the replay."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        raised = waiting.pop()
        if raised is None or any(raised is one for one in seen):
            continue
        seen.append(raised)
        traceback.clear_frames(raised.__traceback__)
        members = raised.exceptions if isinstance(raised, BaseExceptionGroup) else ()
        waiting += [raised.__cause__, raised.__context__, *members]


def input_of(recording: Recording) -> object:
    """Return what the recorded agent was given; None where that was not said."""
    about = recording.head.about
    return None if about is None or about.input is msgspec.UNSET else untag(recording.whole(about.input))


def _called(agent: Callable[..., Any], recording: Recording) -> Any:
    """Call the agent, with the recorded input where it asks for one."""
    try:
        parameters = inspect.signature(agent).parameters.values()
    except (TypeError, ValueError):
        return agent()
    required = [
        one for one in parameters if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if len(required) > 1:
        raise SetupError(
            f"replay: the agent takes {len(required)} arguments; give a function without any, or with one, which is "
            "given the run's recorded input."
        )
    if not required:
        return agent()
    given = input_of(recording)
    only = required[0]
    return agent(**{only.name: given}) if only.kind is only.KEYWORD_ONLY else agent(given)


def _settled(value: Any) -> Any:
    if not inspect.isawaitable(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(value))
    if inspect.iscoroutine(value):
        value.close()
    raise SetupError("replay: an event loop runs here already; use `await replay_async(...)`.")


async def _awaited(value: Awaitable[Any]) -> Any:
    asyncio.get_running_loop().set_exception_handler(_without_stops)
    return await value


def _without_stops(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing of tasks that the replay itself has stopped and nobody asked."""
    if not isinstance(context.get("exception"), ReplayStopped):
        loop.default_exception_handler(context)
