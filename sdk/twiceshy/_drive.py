"""The two drivers of a flow. They act and do not decide.

The async one sees the telling of an outcome through once the tool has run, or once it was interrupted before: a
cancelled caller still reports what happened, for a few seconds. In a pause between two attempts nothing is left to be
told, and a cancellation passes at once.
"""

import asyncio
import inspect
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeAlias

from twiceshy._effect import CurrentEffect, Rendering
from twiceshy._replaying import refuse_lost_in_replay
from twiceshy._steps import (
    Blocking,
    Flow,
    Given,
    Pause,
    Raised,
    Render,
    Returned,
    RunProbe,
    RunTool,
    Send,
    Sleep,
    Step,
)
from twiceshy._transports.base import Transport
from twiceshy.exceptions import SetupError

_Place: TypeAlias = Step | Returned | Raised
_Telling: TypeAlias = Send | Sleep | Blocking | RunProbe | Render
_GRACE_SECONDS: Final = 5.0
_WHAT: Final = "what asks the guard's service"


def drive(flow: Flow[Returned | Raised], transport: Transport) -> Any:
    """Drive a flow, blocking, and return or raise its outcome. In a replay none is driven."""
    refuse_lost_in_replay(_WHAT)
    return _unwrapped(_driven(flow, transport))


async def drive_async(flow: Flow[Returned | Raised], transport: Transport) -> Any:
    """Drive a flow on the running event loop, and return or raise its outcome. In a replay none is driven."""
    refuse_lost_in_replay(_WHAT)
    reached = _reached(flow, None)
    is_telling = False
    while not isinstance(reached, (Returned, Raised)):
        if isinstance(reached, RunTool):
            reached = _reached(flow, await _run_async(reached))
            is_telling = True
        elif is_telling and not isinstance(reached, Pause):
            reached = await _told(flow, reached, transport)
        else:
            is_telling = False
            try:
                given = await _perform_async(reached, transport)
            except GeneratorExit:  # the caller's coroutine is thrown away: nothing can be awaited any more
                raise
            except BaseException as error:  # noqa: BLE001 - the flow decides what an interruption means
                reached = await _seen_through(_rest_after(flow, error, transport), flow)
            else:
                reached = _reached(flow, given)
    return _unwrapped(reached)


def _driven(flow: Flow[Returned | Raised], transport: Transport) -> Returned | Raised:
    try:
        step = next(flow)
        while True:
            try:
                given = _perform(step, transport)
            except BaseException as error:  # noqa: BLE001 - the flow decides what an interruption means
                step = flow.throw(error)
            else:
                step = flow.send(given)
    except StopIteration as done:
        return _outcome(done.value)


def _perform(step: Step, transport: Transport) -> Given:
    match step:
        case Send(request):
            return transport.send(request)
        case Sleep(seconds) | Pause(seconds):
            time.sleep(seconds)
            return None
        case Blocking(work):
            work()
            return None
        case RunProbe():
            return _probed(step)
        case Render():
            return _rendered(step)
        case RunTool():
            return _run(step)


async def _perform_async(step: _Telling | Pause, transport: Transport) -> Given:
    match step:
        case Send(request):
            return await transport.send_async(request)
        case Sleep(seconds) | Pause(seconds):
            await asyncio.sleep(seconds)
            return None
        case Blocking(work):
            await asyncio.to_thread(work)
            return None
        case RunProbe():
            return await _probed_async(step)
        case Render():
            return await _rendered_async(step)


def _probed(step: RunProbe) -> Returned | Raised:
    """Ask a blocking probe; nothing cuts it off. What is no error of its own passes."""
    try:
        return Returned(step.call())
    except Exception as error:  # noqa: BLE001 - whatever a probe raises proves nothing
        return Raised(error)


async def _probed_async(step: RunProbe) -> Returned | Raised:
    """Ask a probe for no longer than it may take; a blocking one goes on in its thread, and nobody listens."""
    limit = asyncio.timeout(step.timeout_seconds)
    try:
        async with limit:
            return Returned(await (step.call() if step.is_async else asyncio.to_thread(step.call)))
    except Exception as error:  # noqa: BLE001 - whatever a probe raises proves nothing
        is_cut_off = limit.expired() and isinstance(error, TimeoutError)
        return Raised(TimeoutError(f"cut off after {step.timeout_seconds:g} s") if is_cut_off else error)


def _rendered(step: Render) -> Returned | Raised:
    """Let messages be made; what is no error of their making passes."""
    with Rendering(step.tool):
        try:
            value = step.function(*step.bound.args, **step.bound.kwargs)
        except Exception as error:  # noqa: BLE001 - raised again where the call was made
            return Raised(error)
    return _no_coroutine(value, step.tool)


async def _rendered_async(step: Render) -> Returned | Raised:
    with Rendering(step.tool):
        try:
            return Returned(await step.function(*step.bound.args, **step.bound.kwargs))
        except Exception as error:  # noqa: BLE001 - raised again where the call was made
            return Raised(error)


def _run(step: RunTool) -> Returned | Raised:
    with step.effect.entered():
        try:
            value = step.function(*step.bound.args, **step.bound.kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its outcome
            return Raised(error)
    return _no_coroutine(value, step.effect.reference.tool)


def _no_coroutine(value: object, tool: str) -> Returned | Raised:
    if inspect.iscoroutine(value):
        value.close()
        return Raised(SetupError(f"{tool} returned a coroutine, which was not run; declare it with `async def`."))
    return Returned(value)


async def _run_async(step: RunTool) -> Returned | Raised:
    interruption = _Interruption(step.effect)
    outcome: Returned | Raised
    with step.effect.entered(interruption.send):
        try:
            outcome = Returned(await step.function(*step.bound.args, **step.bound.kwargs))
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its outcome
            outcome = Raised(error)
    return interruption.settle(outcome)


class _Interruption:
    """Cancel the task that runs a tool, from the heartbeat's thread, and take the cancellation back afterwards."""

    def __init__(self, effect: CurrentEffect) -> None:
        self._effect = effect
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._others = self._task.cancelling() if self._task else 0
        self._is_over = False
        self._was_sent = False

    def send(self) -> None:
        """Cancel the tool soon. Called once, from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nothing runs on it any more
            self._loop.call_soon_threadsafe(self._cancel)

    def settle(self, outcome: Returned | Raised) -> Returned | Raised:
        """End the interruption, and turn what it caused into LeaseLost."""
        self._is_over = True
        if not self._was_sent or self._task is None:
            return outcome
        is_ours_alone = self._task.uncancel() <= self._others
        if isinstance(outcome, Raised) and isinstance(outcome.error, asyncio.CancelledError) and is_ours_alone:
            error = self._effect.lost_error("The tool was cancelled.")
            error.__cause__ = outcome.error
            return Raised(error)
        return outcome

    def _cancel(self) -> None:
        if not self._is_over and self._task is not None:
            self._was_sent = True
            self._task.cancel()


def _reached(flow: Flow[Returned | Raised], given: Given) -> _Place:
    """Go on to the flow's next step, or to its end."""
    try:
        return flow.send(given)
    except StopIteration as done:
        return _outcome(done.value)


async def _told(flow: Flow[Returned | Raised], step: _Telling, transport: Transport) -> _Place:
    """Tell what a tool did. What was being sent when the caller was cancelled is sent again, which is safe."""
    if isinstance(step, Send):
        try:
            given = await transport.send_async(step.request)
        except asyncio.CancelledError as cancelled:
            return await _seen_through(_rest(flow, step, transport), flow, cancelled)
        return _reached(flow, given)
    return await _seen_through(_rest(flow, step, transport), flow)


async def _rest(flow: Flow[Returned | Raised], step: Step, transport: Transport) -> _Place:
    """Drive a flow to its end, or to where the next attempt may wait.

    It returns what it would raise, so that its task never breaks the loop.
    """
    try:
        return await _to_a_pause(flow, step, transport)
    except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
        return Raised(error)


async def _rest_after(flow: Flow[Returned | Raised], error: BaseException, transport: Transport) -> _Place:
    """Throw an interruption into a flow and drive what is left of it."""
    try:
        return await _to_a_pause(flow, flow.throw(error), transport)
    except StopIteration as done:
        return _outcome(done.value)
    except BaseException as raised:  # noqa: BLE001 - raised again where the caller waits
        return Raised(raised)


async def _to_a_pause(flow: Flow[Returned | Raised], place: _Place, transport: Transport) -> _Place:
    while not isinstance(place, (Returned, Raised, Pause)):
        given = await (_run_async(place) if isinstance(place, RunTool) else _perform_async(place, transport))
        place = _reached(flow, given)
    return place


async def _seen_through(
    work: Coroutine[Any, Any, _Place], flow: Flow[Returned | Raised], cancelled: asyncio.CancelledError | None = None
) -> _Place:
    """Await work that a cancellation, one that came before too, may not cut off before the grace is over."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    until = float("inf") if cancelled is None else loop.time() + _GRACE_SECONDS
    while not task.done() and loop.time() < until:
        try:
            await asyncio.wait({task}, timeout=None if cancelled is None else until - loop.time())
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled, until = error, loop.time() + _GRACE_SECONDS
    if cancelled is None:
        return task.result()
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        _keep_visible(task.result(), cancelled)
    flow.close()  # it hears that nobody drives it any more, and keeps what it has not told
    raise cancelled


def _keep_visible(place: _Place, cancelled: asyncio.CancelledError) -> None:
    """Chain what the tool raised to the cancellation that comes before it."""
    error = place.error if isinstance(place, Raised) else place.after if isinstance(place, Pause) else None
    if error is not None and error is not cancelled and cancelled.__context__ is None:
        cancelled.__context__ = error


def _outcome(value: Returned | Raised) -> Returned | Raised:
    return value


def _unwrapped(outcome: Returned | Raised) -> Any:
    match outcome:
        case Returned(value):
            return value
        case Raised(error):
            raise error
