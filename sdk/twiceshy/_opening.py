"""How a recorded run is opened at the service, once for all of its blocks in this process."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._environment import Environment
from twiceshy._log import Log
from twiceshy._recorded_run import Recorded
from twiceshy._replies import Unanswered
from twiceshy._script import Script
from twiceshy._session import Session
from twiceshy._steps import Flow, Raised, Returned, blocking
from twiceshy._transports.base import Request
from twiceshy._writer import Writer
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, RunFinished
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import OpenRunRequest, RunAbout, RunView

ScriptOf: TypeAlias = Callable[[RunView], Script | None]
"""Makes what stands in front of a run's boundaries once the run is opened; it may wait for the service."""
_VIEW: Final[msgspec.json.Decoder[RunView]] = msgspec.json.Decoder(RunView)
_log = logging.getLogger("twiceshy")


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """The wish to record a run. `script_of` makes, off the event loop, what stands in front of its boundaries."""

    run: str
    about: RunAbout | None = None
    parent: str | None = None
    script_of: ScriptOf | None = None


def opened(environment: Environment, wish: Opening) -> Flow[Returned | Raised]:
    """Enter a recorded run: the first block opens it, the others share its log. What is returned is a Recorded.

    Raises RunFinished, GuardUnavailable, RequestRefused.
    """
    while True:
        held, is_first = environment.recorder.claim(wish.run)
        if is_first:
            try:
                yield from _open(environment, wish, held)
            except BaseException:
                environment.recorder.give_up(held)
                raise
            return Returned(held)
        if not held.was_opened and not (yield from blocking(partial(held.wait, _patience(environment)))):
            environment.recorder.leave(held)
            raise GuardUnavailable(
                f"The run {wish.run} is not entered: another block here still waits for it to be opened. Enter it "
                "again later.",
                effect=_reference(wish.run),
            )
        if held.was_opened:
            return Returned(held)


def _open(environment: Environment, wish: Opening, held: Recorded) -> Flow[None]:
    view = yield from _asked(environment, wish)
    script = None
    if wish.script_of is not None:
        script = yield from blocking(partial(wish.script_of, view))
    writer = Writer(view, environment.recorder.wake, environment.credential_of(wish.run))
    log = Log(writer, head=view.events)
    log.is_counterfactual = script is not None and script.is_counterfactual
    held.open(Session(log, script, writer=writer), writer)


def _asked(environment: Environment, wish: Opening) -> Flow[RunView]:
    answer = yield from _sent(environment, wish, record=True)
    what = f"The run {wish.run} is not entered, because it cannot be recorded"
    match answer:
        case Unanswered(reason):
            raise GuardUnavailable(
                f"{what}: the guard's service at {environment.url} gives no answer ({reason}). Enter the run again "
                "later, or with record=False.",
                effect=_reference(wish.run),
            )
        case Problem(code="run-finished"):
            raise RunFinished(f"{what}: {answer.detail} Record under another name.", effect=_reference(wish.run))
        case Problem():
            raise RequestRefused(
                f"{what}: {answer.detail}{_hint(answer)}", effect=_reference(wish.run), code=answer.code
            )
        case Answered(value=view):
            return view


def told(environment: Environment, wish: Opening) -> Flow[None]:
    """Say what a run is about that is not recorded, and of which run it is a child.

    Where nobody answers, the run goes on without, unless it is below a fork: then the fork's credential drives it.
    Raises GuardUnavailable, RequestRefused.
    """
    answer = yield from _sent(environment, wish, record=False)
    what = f"The run {wish.run} is not entered"
    match answer:
        case Problem():
            raise RequestRefused(
                f"{what}: {answer.detail}{_hint(answer)}", effect=_reference(wish.run), code=answer.code
            )
        case Unanswered(reason) if environment.credential_of(wish.parent) is not None:
            raise GuardUnavailable(
                f"{what} as a child of {wish.parent}: the guard's service at {environment.url} gives no answer "
                f"({reason}). Enter it again later.",
                effect=_reference(wish.run),
            )
        case Unanswered(reason):
            _log.warning("What the run %s is about could not be told to %s: %s", wish.run, environment.url, reason)
        case Answered():
            pass


def _sent(environment: Environment, wish: Opening, *, record: bool) -> Flow[Answered[RunView] | Problem | Unanswered]:
    """Open a run by the credential that drives it, or its parent: who is below a fork may do no more than the fork."""
    credential = environment.credential_of(wish.run) or environment.credential_of(wish.parent)
    body = OpenRunRequest(run=wish.run, record=record, about=wish.about, parent=wish.parent)
    request = Request(method="POST", path="/v1/runs", body=msgspec.json.encode(body), token=credential)
    answer = yield from ask(environment, request, _VIEW, until=environment.clock() + _patience(environment))
    if isinstance(answer, Answered):
        environment.drive_by(wish.run, credential)
    return answer


def _hint(problem: Problem) -> str:
    return " Inside of a fork, enter new runs only." if problem.code == "forbidden" else ""


def _patience(environment: Environment) -> float:
    return environment.limits.unavailable_seconds


def _reference(run: str) -> EffectRef:
    return EffectRef(tool="run", run=run)
