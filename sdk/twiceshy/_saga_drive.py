"""The two drivers of a saga's recovery, blocking and async. They act and do not decide."""

import asyncio
from typing import Any, Final, TypeVar

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._flow import guarded
from twiceshy._replies import Unanswered
from twiceshy._saga_recovery import Asking, Calling, Recovery, SagaReport, Waiting, recovering
from twiceshy._steps import Flow, Raised, Returned, sleep
from twiceshy._transports.base import Request
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, RunSuspended
from twiceshy_contract.problems import Problem
from twiceshy_contract.sagas import SagaState

T = TypeVar("T")
_PAGE: Final = 500
_UNFINISHED: Final[tuple[SagaState, ...]] = ("stuck", "compensating")
"""What is due of a stuck saga, as nobody has begun it in time, can be done still. It comes first, as it moves least."""


class _Named(msgspec.Struct, frozen=True):
    """A saga of a listing."""

    saga: str


class _Page(msgspec.Struct, frozen=True):
    """A page of sagas."""

    items: tuple[_Named, ...]
    next: str | None


_PAGES: Final = msgspec.json.Decoder(_Page)


def run(environment: Environment, recovery: Recovery[T]) -> T:
    """Drive a recovery, blocking."""
    try:
        step = next(recovery)
        while True:
            step = recovery.send(_done(environment, step))
    except StopIteration as done:
        result: T = done.value
        return result


async def run_async(environment: Environment, recovery: Recovery[T]) -> T:
    """Drive a recovery on the running event loop; a tool that is no `async def` function runs in a thread."""
    try:
        step = next(recovery)
        while True:
            step = recovery.send(await _done_async(environment, step))
    except StopIteration as done:
        result: T = done.value
        return result


def recovered(environment: Environment, *, wait_seconds: float) -> list[SagaReport]:
    """Go on with every saga that is being taken back."""
    return run(environment, _recovering_all(environment, wait_seconds, may_await=False))


async def recovered_async(environment: Environment, *, wait_seconds: float) -> list[SagaReport]:
    """Go on with every saga that is being taken back."""
    return await run_async(environment, _recovering_all(environment, wait_seconds, may_await=True))


def _recovering_all(environment: Environment, wait_seconds: float, *, may_await: bool) -> Recovery[list[SagaReport]]:
    reports: list[SagaReport] = []
    for state in _UNFINISHED:
        reports += yield from _recovering_those(environment, state, wait_seconds, may_await=may_await)
    return reports


def _recovering_those(
    environment: Environment, state: SagaState, wait_seconds: float, *, may_await: bool
) -> Recovery[list[SagaReport]]:
    reports: list[SagaReport] = []
    after: str | None = None
    while True:
        answer = yield Asking(_listed(environment, state, after))
        if not isinstance(answer, Answered):
            raise _not_listed(environment, answer)
        page: _Page = answer.value
        for found in page.items:
            report = yield from recovering(environment, found.saga, wait_seconds=wait_seconds, may_await=may_await)
            reports.append(report)
        after = page.next
        if after is None:
            return reports


def _listed(
    environment: Environment, state: SagaState, after: str | None
) -> Flow[Answered[_Page] | Problem | Unanswered]:
    path = f"/v1/sagas?state={state}&limit={_PAGE}" + ("" if after is None else f"&after={after}")
    until = environment.clock() + environment.limits.unavailable_seconds
    return (yield from ask(environment, Request(method="GET", path=path), _PAGES, until=until))


def _not_listed(environment: Environment, answer: Problem | Unanswered) -> GuardUnavailable | RequestRefused:
    reference = EffectRef(tool="recover_sagas")
    if isinstance(answer, Problem):
        return RequestRefused(f"The sagas cannot be listed: {answer.detail}", effect=reference, code=answer.code)
    return GuardUnavailable(
        f"The sagas cannot be listed: the guard's service at {environment.url} gives no answer ({answer.reason}).",
        effect=reference,
    )


def _done(environment: Environment, step: Asking | Calling | Waiting) -> Any:
    match step:
        case Asking(flow):
            return drive(_returned(flow), environment.transport)
        case Calling(call):
            try:
                return Returned(drive(guarded(environment, call), environment.transport))
            except (Exception, RunSuspended) as error:  # noqa: BLE001 - the service says what the failure of a call means
                return Raised(error)
        case Waiting(seconds):
            return drive(_returned(sleep(seconds)), environment.transport)


async def _done_async(environment: Environment, step: Asking | Calling | Waiting) -> Any:
    match step:
        case Asking(flow):
            return await drive_async(_returned(flow), environment.transport)
        case Calling(call, is_async=False):
            return await asyncio.to_thread(_done, environment, Calling(call, is_async=False))
        case Calling(call):
            try:
                return Returned(await drive_async(guarded(environment, call), environment.transport))
            except (Exception, RunSuspended) as error:  # noqa: BLE001 - the service says what the failure of a call means
                return Raised(error)
        case Waiting(seconds):
            return await drive_async(_returned(sleep(seconds)), environment.transport)


def _returned(flow: Flow[Any]) -> Flow[Returned | Raised]:
    return Returned((yield from flow))
