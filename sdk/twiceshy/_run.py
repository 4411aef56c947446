"""The run around a call: within one run, one tool with one identity happens once."""

from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._fork import ForkOptions, forked, forking
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy._wording import in_words
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, SetupError
from twiceshy_contract.names import Person, RunName
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest


class Entered(msgspec.Struct, frozen=True):
    """A run that is open in this context, the one around it, and the saga whose steps its calls are.

    A block of a saga that is open around it already `joins` that one, and ends nothing.
    """

    run: "Run"
    outer: "Entered | None"
    saga: str | None = None
    joins: bool = False


_ANY: Final = msgspec.json.Decoder(dict[str, object])
_entered: ContextVar[Entered | None] = ContextVar("twiceshy_run", default=None)


class Run:
    """One execution of an agent. Use it as `with` or `async with`; all guarded calls inside belong to it.

    Leaving the block leaves the run open, so that a restarted process goes on under the same name. `finish=True`
    ends it where the block ends without an exception. One that is a fork is made, or found, when it is entered.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        *,
        finish: bool = False,
        requester: str | None = None,
        fork: ForkOptions | None = None,
    ) -> None:
        self.name: str = _taken(name, RunName, "name")
        self.requester: str | None = None if requester is None else _taken(requester, Person, "requester")
        self._forking = None if fork is None else forking(self.name, fork)
        self._environment = environment
        self._finishes = finish

    @property
    def is_fork(self) -> bool:
        """Whether the run goes on from another one."""
        return self._forking is not None

    def __enter__(self) -> Self:
        if self._forking is not None:
            drive(forked(self._environment, self._forking), self._environment.transport)
        return self._enter()

    def _enter(self) -> Self:
        _entered.set(Entered(self, _entered.get()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if self._finishes and error is None:
            self.finish()

    async def __aenter__(self) -> Self:
        if self._forking is not None:
            await drive_async(forked(self._environment, self._forking), self._environment.transport)
        return self._enter()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if self._finishes and error is None:
            await self.finish_async()

    def finish(self) -> None:
        """End the run: its record is still served, new effects are refused."""
        drive(_finished(self._environment, self.name), self._environment.transport)

    async def finish_async(self) -> None:
        """End the run: its record is still served, new effects are refused."""
        await drive_async(_finished(self._environment, self.name), self._environment.transport)

    def _leave(self) -> None:
        entered = _entered.get()
        if entered is not None and entered.run is self:
            _entered.set(entered.outer)

    def belongs_to(self, environment: Environment) -> bool:
        """Tell whether the run is of this guard."""
        return self._environment is environment


def current_run(environment: Environment) -> Run | None:
    """Return the innermost run of a guard that is open in this context."""
    entered = _innermost(environment)
    return None if entered is None else entered.run


def current_saga(environment: Environment) -> str | None:
    """Return the saga whose steps the calls in this context are; a run that is entered inside of one leaves it."""
    entered = _innermost(environment)
    return None if entered is None else entered.saga


def enter_saga(environment: Environment, run: Run, saga: str) -> None:
    """Let the calls in this context be steps of a saga of the run."""
    outer = around = _entered.get()
    while around is not None and not (around.saga == saga and around.run.belongs_to(environment)):
        around = around.outer
    _entered.set(Entered(run, outer, saga, joins=around is not None))


def leave_saga(environment: Environment, saga: str) -> bool:
    """Let the calls in this context be what they were before; say whether the saga goes on around them."""
    entered = _entered.get()
    if entered is None or entered.saga != saga or not entered.run.belongs_to(environment):
        return False
    _entered.set(entered.outer)
    return entered.joins


def _innermost(environment: Environment) -> Entered | None:
    entered = _entered.get()
    while entered is not None and not entered.run.belongs_to(environment):
        entered = entered.outer
    return entered


def _taken(value: str, kind: Any, what: str) -> str:
    try:
        taken: str = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise SetupError(f"The run's {what} {value!r} cannot be taken: {in_words(error)}. Choose another.") from error
    return taken


def _finished(environment: Environment, name: str) -> Flow[Returned | Raised]:
    path = f"/v1/runs/{quote(name, safe='')}/finish"
    answer = yield from _posted(environment, path, FinishRunRequest())
    if isinstance(answer, Problem) and answer.code == "not-found":  # no call was made in it: it is not known yet
        yield from _posted(environment, "/v1/runs", OpenRunRequest(run=name))
        answer = yield from _posted(environment, path, FinishRunRequest())
    reference = EffectRef(tool="finish", run=name)
    match answer:
        case Unanswered(reason):
            raise GuardUnavailable(
                f"The run {name} is not finished: the guard's service at {environment.url} gives no answer "
                f"({reason}). Finish it again later.",
                effect=reference,
            )
        case Problem():
            raise RequestRefused(f"The run {name} is not finished: {answer.detail}", effect=reference, code=answer.code)
        case Answered():
            return Returned(None)


def _posted(environment: Environment, path: str, body: msgspec.Struct) -> Flow[Answered[Any] | Problem | Unanswered]:
    request = Request(method="POST", path=path, body=msgspec.json.encode(body))
    until = environment.clock() + environment.limits.unavailable_seconds
    return (yield from ask(environment, request, _ANY, until=until))
