"""The guard of one program: it knows a service, makes tools and opens runs."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Final, Never, ParamSpec, Protocol, Self, TypedDict, TypeVar, Unpack, overload

import msgspec

from twiceshy._about import RunOptions, records, taken
from twiceshy._environment import Environment, GuardedFunction, home_of
from twiceshy._hold import Hold, HoldOptions
from twiceshy._options import Limits, StageOptions, ToolOptions, require_seconds, specify
from twiceshy._probe_worker import (
    ProbeOptions,
    ProbeReport,
    probed_once,
    probed_once_async,
    serve_probes,
    serve_probes_async,
)
from twiceshy._recording import Recording
from twiceshy._run import Run, current_run
from twiceshy._saga import OnFailure, Saga
from twiceshy._saga_drive import recovered, recovered_async
from twiceshy._saga_recovery import SagaReport
from twiceshy._settings import is_database, settle
from twiceshy._spool import spool_folder
from twiceshy._staged import Staged
from twiceshy._tool import AsyncTool, Tool, kind_of
from twiceshy._transports.base import Transport
from twiceshy._transports.connect import connect
from twiceshy.exceptions import NoRun, SetupError
from twiceshy_contract.forks import CREDENTIAL
from twiceshy_contract.variables import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
_ARGUMENTS: Final = ("url", "token", "unavailable_seconds", "deliver_seconds", "transport", "spool", "record")
_OF_SAGAS: Final = ("deadline_seconds", "on_failure", "wait_seconds")


class ToolDecorator(Protocol):
    """What `guard.tool(...)` with options returns."""

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        """Put a function behind the guard."""
        ...


class StageDecorator(Protocol):
    """What `guard.tool(sink=...)` returns: the calls of what it guards return what was Staged."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, Any]], /) -> Tool[P, Coroutine[Any, Any, Staged]]: ...
    @overload
    def __call__(self, function: Callable[P, Any], /) -> Tool[P, Staged]: ...


class GuardOptions(TypedDict, total=False):
    """The keyword options of `Guard` beside its first ones.

    `transport` replaces what `url` would choose. `spool` is the folder where outcomes and logs wait that the service
    could not be told of; it falls back to TWICESHY_SPOOL and ./twiceshy.spool and is made when it is needed. None keeps
    nothing. With `record` the runs of this guard are recorded that do not say themselves whether they are; it falls
    back to TWICESHY_RECORD.
    """

    transport: Transport | None
    spool: str | os.PathLike[str] | msgspec.UnsetType | None
    record: bool | None


class Guard:
    """Send every mutating tool call through a Twiceshy service, so that it happens once."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        unavailable_seconds: float = 10,
        deliver_seconds: float = 30,
        **options: Unpack[GuardOptions],
    ) -> None:
        """Name the service, or the database to embed it over; nothing is sent or opened before the first call.

        `url` and `token` fall back to TWICESHY_URL and TWICESHY_TOKEN, then to ./twiceshy.db in this process. A
        begin that is not answered is given up after `unavailable_seconds`; an outcome that is not taken, after
        `deliver_seconds` or the rest of the lease. The options are those of GuardOptions.
        """
        for name in options:
            if name not in _ARGUMENTS:
                raise TypeError(f"Guard takes no argument {name!r}{did_you_mean(name, _ARGUMENTS)}")
        _require_texts(url=url, token=token)
        require_seconds("Guard", unavailable_seconds=unavailable_seconds, deliver_seconds=deliver_seconds)
        settings = settle(url, token)
        if token is not None and is_database(settings.url):
            raise SetupError("Guard: a token is for a service; a guard over a database in this process takes none.")
        limits = Limits(unavailable_seconds=unavailable_seconds, deliver_seconds=deliver_seconds)
        self.url = settings.shown
        self._environment = Environment(
            settings.shown,
            options.get("transport") or connect(settings.url, settings.token),
            limits,
            spool=spool_folder(options.get("spool", msgspec.UNSET)),
        )
        if settings.token is not None and settings.token.startswith(CREDENTIAL):
            self._environment.credential = settings.token
        self._records = records(options.get("record"))
        self._homes: dict[str, str] = {}

    @overload
    def tool(self, function: Callable[P, R], /) -> Tool[P, R]: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolOptions]) -> ToolDecorator: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[StageOptions]) -> StageDecorator: ...
    def tool(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Put a function behind the guard: bare, or with the options of ToolOptions.

        With `sink` it stages messages and does nothing else: its options are those of StageOptions.
        """

        def guard(function: Callable[..., Any]) -> Tool[..., Any]:
            kind = kind_of(function)
            spec = specify(function, options)
            self._take_name(spec.name, function)
            known = GuardedFunction(spec, function, is_async=issubclass(kind, AsyncTool))
            self._environment.tools[spec.name] = known
            self._environment.probes.pop(spec.name, None)
            return kind(self._environment, function, spec)

        return guard if function is None else guard(function)

    def run(
        self,
        name: str,
        *,
        finish: bool = False,
        requester: str | None = None,
        record: bool | None = None,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Name the run of the calls in a `with` or `async with` block. `finish` ends it where the block ends well.

        `requester` is the person for whom the agent acts; with four eyes, that person may approve none of its calls.
        With `record` all that the code asks of the world through the run is kept, and can be replayed; None leaves that
        to the guard. The options of RunOptions say what the run is about, and those of ForkOptions make it a fork: it
        goes on from a step of another run, and may do less.
        """
        return Run(
            self._environment,
            name,
            finish=finish,
            requester=requester,
            said=taken(name, options),
            is_recorded=records(record, otherwise=self._records),
        )

    def current_run(self) -> Run:
        """Return the innermost run that is open here, such as that of a child. Raises NoRun where there is none."""
        run = current_run(self._environment)
        if run is None:
            raise NoRun("No run of this guard is open here. Ask inside of `with guard.run(...)`, or of a child run.")
        return run

    def saga(
        self,
        name: str,
        *,
        deadline_seconds: float | None = None,
        on_failure: OnFailure = "compensate",
        wait_seconds: float = 30,
        **misspelt: Never,
    ) -> Saga:
        """Name a saga, whose steps are the calls in a `with` or `async with` block: all are done, or taken back.

        The calls belong to the run around the block, else to a run of the saga's name. An exception that leaves the
        block fails the saga: what was done is taken back by the tools' compensations, last things first. Doubt, an
        interruption and silence of the service do not, and with `on_failure="forward"` nothing does: the same block
        goes on later. After `deadline_seconds` from the first opening, an unfinished saga is taken back, whoever is
        there. Where something stands in the way of that, the block waits `wait_seconds` for it.
        """
        for option in misspelt:
            raise TypeError(f"Guard.saga takes no argument {option!r}{did_you_mean(option, _OF_SAGAS)}")
        return Saga(
            self._environment,
            name,
            deadline_seconds=deadline_seconds,
            on_failure=on_failure,
            wait_seconds=wait_seconds,
        )

    def recover_sagas(self, *, wait_seconds: float = 0) -> list[SagaReport]:
        """Take back, as far as the tools of this guard can, the sagas that failed and whose agents are gone.

        Call it now and then in a worker; any number may do so at once.
        """
        return recovered(self._environment, wait_seconds=wait_seconds)

    async def recover_sagas_async(self, *, wait_seconds: float = 0) -> list[SagaReport]:
        """Do the same on an event loop, with `async def` tools too."""
        return await recovered_async(self._environment, wait_seconds=wait_seconds)

    def probe_once(self, **options: Unpack[ProbeOptions]) -> list[ProbeReport]:
        """Ask the probes of this guard's tools about effects in doubt, whoever began them, and settle what they prove.

        The options are those of ProbeOptions. Probes that are `async def` functions are left to `probe_once_async`.
        """
        return probed_once(self._environment, options)

    async def probe_once_async(self, **options: Unpack[ProbeOptions]) -> list[ProbeReport]:
        """Do the same on an event loop, with `async def` probes too."""
        return await probed_once_async(self._environment, options)

    def serve_probes(self, stop: threading.Event | None = None) -> None:
        """Do that until `stop` is set, or until Ctrl-C; a service that is away is asked again."""
        serve_probes(self._environment, stop or threading.Event())

    async def serve_probes_async(self) -> None:
        """Do the same on an event loop until the task is cancelled."""
        await serve_probes_async(self._environment)

    def hold(self, resource: str, start: datetime, end: datetime | timedelta, **options: Unpack[HoldOptions]) -> Hold:
        """Claim a resource from `start` up to `end`, or for a time, in a `with` or `async with` block.

        The block is not entered where somebody else has the resource. Leaving it gives the resource back, unless the
        hold was committed. The options are those of HoldOptions.
        """
        return Hold(self._environment, resource, start, end, options)

    def recording(self, run: str) -> Recording:
        """Fetch a run's log from the service into a temporary file, blocking; close it after use.

        Raises RecordingRefused where the run is not known or not kept whole, GuardUnavailable without an answer.
        """
        return Recording.fetch(self._environment, run)

    def close(self) -> None:
        """Stop renewing leases, try once more to deliver what waits, and let go of the connections."""
        self._environment.heartbeat.close()
        self._environment.recorder.close()
        if self._environment.spooler is not None:
            self._environment.spooler.close()
        self._environment.transport.close()

    async def close_async(self) -> None:
        """Do the same and let go of all connections, those of event loops too."""
        self._environment.heartbeat.close()
        await asyncio.to_thread(self._environment.recorder.close)
        if self._environment.spooler is not None:
            await asyncio.to_thread(self._environment.spooler.close)
        await self._environment.transport.close_async()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close_async()

    def _take_name(self, name: str, function: Callable[..., Any]) -> None:
        """Let a tool be defined anew where it stands, and refuse a second one of its name elsewhere."""
        home = home_of(function)
        taken = self._homes.setdefault(name, home)
        if taken != home:
            raise SetupError(f"Two tools are called {name}: {taken} and {home}. Give one of them name='...'.")


def _require_texts(**said: object) -> None:
    for argument, value in said.items():
        if value is not None and not isinstance(value, str):
            raise SetupError(f"Guard: {argument} is {value!r}; it is a text, such as url='sqlite:///twiceshy.db'.")
