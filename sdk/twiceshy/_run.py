"""The run around a call: within one run, one tool with one identity happens once."""

import asyncio
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import msgspec

from twiceshy._about import NOTHING, Said
from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._fork import forked, forking
from twiceshy._mail import Correspondent
from twiceshy._numbering import Numbering
from twiceshy._opening import Opening, ScriptOf, opened, told
from twiceshy._recorded_run import Recorded
from twiceshy._recorder import HURRIED_SECONDS
from twiceshy._replaying import active_replay, entered_here, raise_misfit
from twiceshy._replies import Unanswered
from twiceshy._restore import untag
from twiceshy._resume import Resuming, cutting
from twiceshy._scopes import current_scope, set_scope
from twiceshy._session import Session
from twiceshy._steps import Flow, Raised, Returned, blocking
from twiceshy._transports.base import Request
from twiceshy._wording import in_words
from twiceshy._writer import Writer
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, SetupError
from twiceshy_contract.names import Person, RunName
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import FinishRunRequest, OpenRunRequest


class Entered(msgspec.Struct, frozen=True):
    """A run that is open in this context, the one around it, and the saga whose steps its calls are.

    A block of a saga that is open around it already `joins` that one, and ends nothing. `scope` is the path of named
    scopes around the block.
    """

    run: "Run"
    outer: "Entered | None"
    saga: str | None = None
    joins: bool = False
    scope: str = ""


_ANY: Final = msgspec.json.Decoder(dict[str, object])


class Run(Correspondent):
    """One execution of an agent. Use it as `with` or `async with`; all guarded calls inside belong to it.

    Leaving the block leaves the run open, so that a restarted process goes on under the same name. `finish=True`
    ends it where the block ends without an exception. One that is a fork is made, or found, when it is entered. One
    that is recorded is opened then; its blocks in this process share one log, which is sent to its end by the last.
    """

    def __init__(
        self,
        environment: Environment,
        name: str,
        *,
        finish: bool = False,
        requester: str | None = None,
        said: Said = NOTHING,
        is_recorded: bool = False,
    ) -> None:
        super().__init__()
        self.name: str = _taken(name, RunName, "name")
        self.requester: str | None = None if requester is None else _taken(requester, Person, "requester")
        self._forking = forking(self.name, said.fork)
        self._environment = environment
        self._finishes = finish
        self._said = said
        self._cutting = cutting(environment, self._forking)
        self._is_recorded = is_recorded or said.resume or self._cutting is not None
        self._script_of: ScriptOf | None = self._cutting or (Resuming(environment) if said.resume else None)
        self.numbering = Numbering()
        self._held: list[Recorded | None] = []
        self._events = 0

    @property
    def is_fork(self) -> bool:
        """Whether the run goes on from another one, or is driven below one that does."""
        return self._forking is not None or self._environment.credential_of(self.name) is not None

    @property
    def is_recorded(self) -> bool:
        """Whether what the code in its blocks passes is recorded at the service."""
        return self._is_recorded

    @property
    def input(self) -> Any:
        """What the agent was given: as this run was named with it, else as the run's recording has it."""
        replay = active_replay()
        if replay is not None:
            return replay.input_of(self.name)
        if self._said.input is not msgspec.UNSET:
            return self._said.input
        held = next((held for held in self._held if held is not None), None)
        about = None if held is None else held.writer.view.about
        return None if about is None or about.input is msgspec.UNSET else untag(about.input)

    @property
    def events(self) -> int:
        """The number of the newest event of the run's log, as far as it was written here."""
        return self._events if self._session is None else self._session.log.next_seq - 1

    @property
    def writer(self) -> Writer | None:
        """What brings the run's log to the service; None where it is not recorded."""
        return None if self._session is None else self._session.writer

    def __enter__(self) -> Self:
        replay = active_replay()
        if replay is not None:
            self._session = replay.session_for(self.name)
            return self._enter(None)
        return self._enter(drive(self._entering(), self._environment.transport))

    async def __aenter__(self) -> Self:
        replay = active_replay()
        if replay is not None:
            self._session = replay.session_for(self.name)
            return self._enter(None)
        return self._enter(await drive_async(self._entering(), self._environment.transport))

    def _entering(self) -> Flow[Returned | Raised]:
        return self._begun() if self._cutting is None else self._cutting.within(self._begun())

    def _begun(self) -> Flow[Returned | Raised]:
        """Make the fork, open the log, or say what the run is about, whichever is asked for."""
        if self._forking is not None:
            step = self._forking.request.at
            if self._cutting is not None:
                step = yield from blocking(self._cutting.step)
            yield from forked(self._environment, self._forking.at(step))
        said = self._said
        parent = said.parent or self._fork_around()
        if self._is_recorded:
            wish = Opening(run=self.name, about=said.about, parent=parent, script_of=self._script_of)
            return (yield from opened(self._environment, wish))
        if said.about is not None or parent is not None:
            yield from told(self._environment, Opening(run=self.name, about=said.about, parent=parent))
        return Returned(None)

    def _fork_around(self) -> str | None:
        """Return the run around this block that a fork's credential drives: what is entered there is its child."""
        around = current_run(self._environment)
        if self._forking is not None or around is None or around.name == self.name:
            return None
        return around.name if around.is_fork else None

    def _enter(self, held: Recorded | None) -> Self:
        if held is not None:
            self._session = held.session
        self._held.append(held)
        outer = entered_here.get()
        entered_here.set(Entered(self, outer, scope=current_scope()))
        if outer is None or outer.run.name != self.name:
            set_scope("")
        else:
            self.numbering = outer.run.numbering
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, held = self._session, self._leave(error)
        if held is not None:
            self._environment.recorder.deliver(held, self._patience(error))
        raise_misfit(session, error)
        if self._finishes and error is None:
            self.finish()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session, held = self._session, self._leave(error)
        if held is not None:
            if isinstance(error, GeneratorExit):  # nothing can be awaited any more: it is sent in the background
                self._environment.recorder.retire(held)
            else:
                await asyncio.to_thread(self._environment.recorder.deliver, held, self._patience(error))
        raise_misfit(session, error)
        if self._finishes and error is None:
            await self.finish_async()

    def _child(self, name: str) -> "Run":
        said = Said(parent=self.name if self._is_recorded else None)
        child = Run(self._environment, name, requester=self.requester, said=said, is_recorded=self._is_recorded)
        child._script_of = self._script_of
        return child

    def finish(self) -> None:
        """End the run: its record is still served, new effects are refused."""
        if active_replay() is None:
            drive(_finished(self._environment, self.name), self._environment.transport)

    async def finish_async(self) -> None:
        """End the run: its record is still served, new effects are refused."""
        if active_replay() is None:
            await drive_async(_finished(self._environment, self.name), self._environment.transport)

    def _leave(self, error: BaseException | None) -> Recorded | None:
        """Leave the block; return the log that is to be sent to its end, where this was the last block in it."""
        entered = entered_here.get()
        if entered is not None and entered.run is self:
            entered_here.set(entered.outer)
            set_scope(entered.scope)
        held = self._held.pop() if self._held else None
        session = self._session
        if session is not None:
            if error is None:
                session.log.settle()
            elif not self._held:
                session.log.end(error)
            self._events = session.log.next_seq - 1
            if not self._held:
                self._session = None
        if held is None or not self._environment.recorder.leave(held):
            return None
        if held.session.script is not None:
            held.session.script.close()
        return held

    def _patience(self, error: BaseException | None) -> float:
        """Return how long the rest of the log may take: who interrupts the code does not wait for long."""
        patience = self._environment.limits.deliver_seconds
        return patience if error is None or isinstance(error, Exception) else min(patience, HURRIED_SECONDS)

    def belongs_to(self, environment: Environment) -> bool:
        """Tell whether the run is of this guard."""
        return self._environment is environment


def current_run(environment: Environment) -> Run | None:
    """Return the innermost run of a guard that is open in this context."""
    entered = _innermost(environment)
    return None if entered is None else entered.run


def recorded_here() -> Session | None:
    """Return the boundaries of the innermost run in this context, of whatever guard, where it is recorded or replayed.

    Inside of what one of its boundaries really runs there are none: what is passed there belongs to that outcome.
    """
    entered = entered_here.get()
    return None if entered is None else entered.run.session


def current_saga(environment: Environment) -> str | None:
    """Return the saga whose steps the calls in this context are; a run that is entered inside of one leaves it."""
    entered = _innermost(environment)
    return None if entered is None else entered.saga


def enter_saga(environment: Environment, run: Run, saga: str) -> None:
    """Let the calls in this context be steps of a saga of the run."""
    outer = around = entered_here.get()
    while around is not None and not (around.saga == saga and around.run.belongs_to(environment)):
        around = around.outer
    entered_here.set(Entered(run, outer, saga, joins=around is not None))


def leave_saga(environment: Environment, saga: str) -> bool:
    """Let the calls in this context be what they were before; say whether the saga goes on around them."""
    entered = entered_here.get()
    if entered is None or entered.saga != saga or not entered.run.belongs_to(environment):
        return False
    entered_here.set(entered.outer)
    return entered.joins


def _innermost(environment: Environment) -> Entered | None:
    entered = entered_here.get()
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
    answer = yield from _posted(environment, name, path, FinishRunRequest())
    if isinstance(answer, Problem) and answer.code == "not-found":  # no call was made in it: it is not known yet
        yield from _posted(environment, name, "/v1/runs", OpenRunRequest(run=name))
        answer = yield from _posted(environment, name, path, FinishRunRequest())
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


def _posted(
    environment: Environment, name: str, path: str, body: msgspec.Struct
) -> Flow[Answered[Any] | Problem | Unanswered]:
    token = environment.credential_of(name)
    request = Request(method="POST", path=path, body=msgspec.json.encode(body), token=token)
    until = environment.clock() + environment.limits.unavailable_seconds
    return (yield from ask(environment, request, _ANY, until=until))
