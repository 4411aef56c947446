"""The two drivers of a flow. They act and do not decide.

The async one sees the rest of a flow through once the tool has run, or once it was interrupted before: a
cancelled caller still reports what happened, for a few seconds.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, TypeVar

from twiceshy._effect import CurrentEffect
from twiceshy._steps import Flow, Given, Raised, Returned, RunTool, Send, Sleep, Step
from twiceshy._transports.base import Transport
from twiceshy.exceptions import SetupError

T = TypeVar("T")
_GRACE_SECONDS: Final = 5.0


def drive(flow: Flow[Returned | Raised], transport: Transport) -> Any:
    """Drive a flow, blocking, and return or raise its outcome."""
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
        return _unwrapped(done.value)


async def drive_async(flow: Flow[Returned | Raised], transport: Transport) -> Any:
    """Drive a flow on the running event loop, and return or raise its outcome."""
    try:
        step = next(flow)
        while not isinstance(step, RunTool):
            try:
                given = await _perform_async(step, transport)
            except GeneratorExit:  # the caller's coroutine is thrown away: nothing can be awaited any more
                raise
            except BaseException as error:  # noqa: BLE001 - the flow decides what an interruption means
                return _unwrapped(await _seen_through(_rest_after(flow, error, transport)))
            step = flow.send(given)
    except StopIteration as done:
        return _unwrapped(done.value)
    outcome = await _run_async(step)
    return _unwrapped(await _seen_through(_rest(flow, outcome, transport)))


def _perform(step: Step, transport: Transport) -> Given:
    match step:
        case Send(request):
            return transport.send(request)
        case Sleep(seconds):
            time.sleep(seconds)
            return None
        case RunTool():
            return _run(step)


async def _perform_async(step: Send | Sleep, transport: Transport) -> Given:
    match step:
        case Send(request):
            return await transport.send_async(request)
        case Sleep(seconds):
            await asyncio.sleep(seconds)
            return None


def _run(step: RunTool) -> Returned | Raised:
    with step.effect.entered():
        try:
            value = step.function(*step.bound.args, **step.bound.kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever a tool raises is its outcome
            return Raised(error)
    if inspect.iscoroutine(value):
        value.close()
        tool = step.effect.reference.tool
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


async def _rest(flow: Flow[Returned | Raised], given: Given, transport: Transport) -> Returned | Raised:
    """Drive what is left of a flow. It returns what it would raise, so that its task never breaks the loop."""
    try:
        step = flow.send(given)
        return await _to_its_end(flow, step, transport)
    except StopIteration as done:
        return _outcome(done.value)
    except BaseException as error:  # noqa: BLE001 - raised again where the caller waits
        return Raised(error)


async def _rest_after(flow: Flow[Returned | Raised], error: BaseException, transport: Transport) -> Returned | Raised:
    """Throw an interruption into a flow and drive what is left of it."""
    try:
        step = flow.throw(error)
        return await _to_its_end(flow, step, transport)
    except StopIteration as done:
        return _outcome(done.value)
    except BaseException as raised:  # noqa: BLE001 - raised again where the caller waits
        return Raised(raised)


async def _to_its_end(flow: Flow[Returned | Raised], step: Step, transport: Transport) -> Returned | Raised:
    try:
        while True:
            given = await _run_async(step) if isinstance(step, RunTool) else await _perform_async(step, transport)
            step = flow.send(given)
    except StopIteration as done:
        return _outcome(done.value)


async def _seen_through(work: Awaitable[Returned | Raised]) -> Returned | Raised:
    """Await work that a cancellation may delay the end of, but not cut off before the grace is over."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    cancelled: asyncio.CancelledError | None = None
    until = float("inf")
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
    raise cancelled


def _keep_visible(outcome: Returned | Raised, cancelled: asyncio.CancelledError) -> None:
    """Chain what the tool raised to the cancellation that comes before it."""
    if isinstance(outcome, Raised) and outcome.error is not cancelled and cancelled.__context__ is None:
        cancelled.__context__ = outcome.error


def _outcome(value: Returned | Raised) -> Returned | Raised:
    return value


def _unwrapped(outcome: Returned | Raised) -> Any:
    match outcome:
        case Returned(value):
            return value
        case Raised(error):
            raise error
