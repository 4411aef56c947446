"""The run around a call: within one run, one tool with one identity happens once."""

from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, SetupError
from twiceshy_contract.names import RunName
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest


class _Entered(msgspec.Struct, frozen=True):
    """A run that is open in this context, and the one around it."""

    run: "Run"
    outer: "_Entered | None"


_ANY: Final = msgspec.json.Decoder(dict[str, object])
_entered: ContextVar[_Entered | None] = ContextVar("twiceshy_run", default=None)


class Run:
    """One execution of an agent. Use it as `with` or `async with`; all guarded calls inside belong to it.

    Leaving the block leaves the run open, so that a restarted process goes on under the same name. `finish=True`
    ends it where the block ends without an exception.
    """

    def __init__(self, environment: Environment, name: str, *, finish: bool = False) -> None:
        try:
            self.name: str = msgspec.convert(name, RunName)
        except msgspec.ValidationError as error:
            raise SetupError(f"The run's name {name!r} cannot be taken: {error}. Choose another.") from error
        self._environment = environment
        self._finishes = finish

    def __enter__(self) -> Self:
        _entered.set(_Entered(self, _entered.get()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        if self._finishes and error is None:
            self.finish()

    async def __aenter__(self) -> Self:
        return self.__enter__()

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


def current_run(environment: Environment) -> str | None:
    """Return the name of the innermost run of a guard that is open in this context."""
    entered = _entered.get()
    while entered is not None:
        if entered.run.belongs_to(environment):
            return entered.run.name
        entered = entered.outer
    return None


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
