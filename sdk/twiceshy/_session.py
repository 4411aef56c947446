"""One run's boundaries in this process: what is entered there, what really runs, and what the record serves.

Recording and replaying are one flow: a script may stand in front of it, a log always stands behind.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._child_names import Children
from twiceshy._event_loop import is_on_loop
from twiceshy._log import Entry, Log
from twiceshy._passing import Passing
from twiceshy._paused import see
from twiceshy._pump import PATIENCE_SECONDS, Pump
from twiceshy._replay_errors import ReplayPaused, ReplayStopped
from twiceshy._scopes import current_scope
from twiceshy._script import Matched, Script
from twiceshy._waiting import Waiting
from twiceshy._writer import Writer
from twiceshy.exceptions import RunSuspended, SetupError

UNSEEN: Final = (RunSuspended, ReplayStopped, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends the code and is no outcome of a boundary."""
_ROOM_SECONDS: Final = 30.0
"""How long a call waits while too much of the log waits to be taken."""

_inside: Final[ContextVar[tuple["Session", ...]]] = ContextVar("twiceshy_inside_boundary", default=())


def is_inside(session: "Session") -> bool:
    """Say whether the code here is itself what a boundary of a run really runs: it belongs to that outcome."""
    return session in _inside.get()


def is_inside_any() -> bool:
    """Say whether the code here is what a boundary of some run really runs."""
    return bool(_inside.get())


class Entered(msgspec.Struct, frozen=True):
    """A boundary that was entered, and what stands in its place (None: it really runs)."""

    entry: Entry
    place: Matched | None = None

    @property
    def instead(self) -> Callable[[], Any] | None:
        """What runs in its place."""
        return None if self.place is None else self.place.instead

    @property
    def turn(self) -> int | None:
        """The recorded call whose turn is taken by what really runs."""
        place = self.place
        return place.intent.seq if place is not None and place.runs and place.intent is not None else None

    def waiting(self) -> Waiting | None:
        """Return the outcome that is there already and waits for its turn; None where something has to run first."""
        place = self.place
        if place is None:
            return None
        if place.ends is not None:
            return Waiting(self.entry, Outcome(kind="unknown", error=place.ends), None, ends=True)
        if place.outcome is None:
            return None
        return Waiting(self.entry, place.outcome, None if place.intent is None or place.is_new else place.intent.seq)


def _as_it_is(boundary: Boundary) -> Boundary:
    return boundary


class Session:
    """A run's boundaries."""

    def __init__(
        self,
        log: Log,
        script: Script | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        writer: Writer | None = None,
        cover: Callable[[Boundary], Boundary] = _as_it_is,
    ) -> None:
        """Take the log, what stands in front of it, and the writer that brings the log to the service.

        `cover` leaves out of a boundary what the log may not have.
        """
        self.log: Final = log
        self.script: Final = script
        self.writer: Final = writer
        self.children: Final = Children()
        self._cover = cover
        self._pump = Pump(log, script, patience=patience)

    def perform(self, boundary: Boundary, live: Callable[[], Outcome]) -> Any:
        """Pass a boundary, blocking: return or raise its outcome, of the record or of `live`."""
        return self.outcome_of(boundary, live).give()

    async def perform_async(self, boundary: Boundary, live: Callable[[], Awaitable[Outcome]]) -> Any:
        """Pass a boundary on an event loop."""
        return (await self.outcome_of_async(boundary, live)).give()

    def outcome_of(self, boundary: Boundary, live: Callable[[], Outcome]) -> Outcome:
        """Pass a boundary, blocking, and return how it ended."""
        passing = self.enter(boundary)
        outcome = passing.served
        if outcome is None:
            token = _inside.set((*_inside.get(), self))
            try:
                outcome = live()
            finally:
                _inside.reset(token)
        passing.give(outcome)
        return outcome

    async def outcome_of_async(self, boundary: Boundary, live: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Do the same on an event loop."""
        passing = await self.enter_async(boundary)
        outcome = passing.served
        if outcome is None:
            with self.inside():
                outcome = await live()
        await passing.give_async(outcome)
        return outcome

    def enter(self, boundary: Boundary) -> Passing:
        """Enter a boundary, blocking: write its intent, and find what stands in its place."""
        if self.writer is not None and self.writer.is_full and not is_on_loop():
            self.writer.make_room(_ROOM_SECONDS)
        boundary = self._cover(boundary)
        entered = self._enter(boundary)
        waiting, instead = entered.waiting(), entered.instead
        if waiting is None and instead is not None:
            with self.inside(), self._fitting():
                waiting = Waiting(entered.entry, _in_its_place(boundary, instead), None)
        return Passing(self._pump, entered.entry, waiting, entered.turn)

    async def enter_async(self, boundary: Boundary) -> Passing:
        """Enter a boundary on an event loop."""
        if self.writer is not None and self.writer.is_full:
            await asyncio.to_thread(self.writer.make_room, _ROOM_SECONDS)
        boundary = self._cover(boundary)
        if self.script is not None and not self.script.is_over:
            await self._wait_for_earlier(boundary, self.script)
        entered = self._enter(boundary)
        waiting, instead = entered.waiting(), entered.instead
        if waiting is None and instead is not None:
            with self.inside(), self._fitting():
                waiting = Waiting(entered.entry, await _in_its_place_async(boundary, instead), None)
        return Passing(self._pump, entered.entry, waiting, entered.turn)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let what runs in the block be what a boundary really runs."""
        token = _inside.set((*_inside.get(), self))
        try:
            yield
        finally:
            _inside.reset(token)

    @contextmanager
    def _fitting(self) -> Iterator[None]:
        """End the code where what stands in for a call does not fit it: `except Exception` goes on from no mistake."""
        try:
            yield
        except SetupError as misfit:
            if self.script is None:
                raise
            stopped = self.script.refuse(misfit)
            self._pump.stop(stopped)
            raise stopped from misfit

    async def _wait_for_earlier(self, boundary: Boundary, script: Script) -> None:
        called, digest = _scoped(boundary), self.log.digest(boundary)
        await self._pump.wait_while(lambda: script.is_early(called, digest))

    def _enter(self, boundary: Boundary) -> Entered:
        boundary = _scoped(boundary)
        if self.script is None:
            return Entered(self.log.intent(boundary))
        try:
            place = self.script.match(boundary, self.log.digest(boundary))
        except ReplayStopped as stopped:
            self._pump.stop(stopped)
            raise
        if place is not None and place.intent is not None and self.script.continues:
            entered = Entered(self.log.again(place.intent.seq), place)
        else:
            entered = Entered(self.log.intent(boundary, None if place is None else place.origin), place)
        if place is not None and place.stops is not None:
            if isinstance(place.stops, ReplayPaused):
                see(place.stops)
            self._pump.stop(place.stops)
            raise place.stops
        self._pump.entered()
        return entered


def _scoped(boundary: Boundary) -> Boundary:
    scope = current_scope()
    return replace(boundary, scope=scope) if scope else boundary


def _in_its_place(boundary: Boundary, instead: Callable[[], Any]) -> Outcome:
    _require_parameters(boundary, instead)
    outcome = observed(instead)
    if inspect.isawaitable(outcome.value):
        if inspect.iscoroutine(outcome.value):
            outcome.value.close()
        raise SetupError(f"What stands in for {boundary.name} is async, and the call is not; give a plain function.")
    return replace(outcome, source="stand_in")


async def _in_its_place_async(boundary: Boundary, instead: Callable[[], Any]) -> Outcome:
    _require_parameters(boundary, instead)

    async def settled() -> Any:
        value = instead()
        return await value if inspect.isawaitable(value) else value

    return replace(await observed_async(settled), source="stand_in")


def _require_parameters(boundary: Boundary, instead: Callable[[], Any]) -> None:
    """Raise SetupError where a stand-in does not take what the call passes."""
    passed = instead if isinstance(instead, functools.partial) else functools.partial(instead)
    try:
        signature = inspect.signature(passed.func)
    except (TypeError, ValueError):  # it says nothing of its parameters
        return
    try:
        signature.bind(*passed.args, **passed.keywords)
    except TypeError as misfit:
        names = ", ".join(passed.keywords) or "none"
        raise SetupError(
            f"What stands in for {boundary.name} does not take its arguments ({names}): {misfit}. Give it parameters "
            "of these names, or **arguments."
        ) from misfit


def observed(call: Callable[[], Any]) -> Outcome:
    """Call, and return what the code will see of it. What ends the code passes."""
    try:
        return Outcome(kind="result", value=call())
    except UNSEEN:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever is raised is the outcome
        return failed(error)


async def observed_async(call: Callable[[], Awaitable[Any]]) -> Outcome:
    """Await a call, and return what the code will see of it. What ends the code passes."""
    try:
        return Outcome(kind="result", value=await call())
    except UNSEEN:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever is raised is the outcome
        return failed(error)


def failed(error: BaseException) -> Outcome:
    """Return the outcome that an error is."""
    return Outcome(kind="cancelled" if isinstance(error, asyncio.CancelledError) else "error", error=error)
