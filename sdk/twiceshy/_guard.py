"""The guard of one program: it knows a service, makes tools and opens runs."""

import asyncio
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Never, ParamSpec, Protocol, Self, TypeVar, Unpack, overload

import msgspec

from twiceshy._environment import Environment
from twiceshy._options import Limits, ToolOptions, require_seconds, specify
from twiceshy._run import Run
from twiceshy._settings import is_database, settle
from twiceshy._spool import spool_folder
from twiceshy._tool import Tool, kind_of
from twiceshy._transports.base import Transport
from twiceshy._transports.connect import connect
from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
_ARGUMENTS: Final = ("url", "token", "unavailable_seconds", "deliver_seconds", "transport", "spool")


class ToolDecorator(Protocol):
    """What `guard.tool(...)` with options returns."""

    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]:
        """Put a function behind the guard."""
        ...


class Guard:
    """Send every mutating tool call through a Twiceshy service, so that it happens once."""

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        unavailable_seconds: float = 10,
        deliver_seconds: float = 30,
        transport: Transport | None = None,
        spool: str | os.PathLike[str] | msgspec.UnsetType | None = msgspec.UNSET,
        **misspelt: Never,
    ) -> None:
        """Name the service, or the database to embed it over; nothing is sent or opened before the first call.

        `url` and `token` fall back to TWICESHY_URL and TWICESHY_TOKEN, then to ./twiceshy.db in this process. A
        begin that is not answered is given up after `unavailable_seconds`; an outcome that is not taken, after
        `deliver_seconds` or the rest of the lease. `transport` replaces what `url` would choose.

        `spool` is the folder where outcomes wait that the service could not be told of; it falls back to
        TWICESHY_SPOOL and ./twiceshy.spool and is made when it is needed. None keeps nothing.
        """
        for name in misspelt:
            raise TypeError(f"Guard takes no argument {name!r}{did_you_mean(name, _ARGUMENTS)}")
        _require_texts(url=url, token=token)
        require_seconds("Guard", unavailable_seconds=unavailable_seconds, deliver_seconds=deliver_seconds)
        settings = settle(url, token)
        if token is not None and is_database(settings.url):
            raise SetupError("Guard: a token is for a service; a guard over a database in this process takes none.")
        limits = Limits(unavailable_seconds=unavailable_seconds, deliver_seconds=deliver_seconds)
        self.url = settings.shown
        self._environment = Environment(
            settings.shown, transport or connect(settings.url, settings.token), limits, spool=spool_folder(spool)
        )
        self._homes: dict[str, str] = {}

    @overload
    def tool(self, function: Callable[P, R], /) -> Tool[P, R]: ...
    @overload
    def tool(self, function: None = None, /, **options: Unpack[ToolOptions]) -> ToolDecorator: ...
    def tool(self, function: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Put a function behind the guard: bare, or with the options of ToolOptions."""

        def guard(function: Callable[..., Any]) -> Tool[..., Any]:
            kind = kind_of(function)
            spec = specify(function, options)
            self._take_name(spec.name, function)
            return kind(self._environment, function, spec)

        return guard if function is None else guard(function)

    def run(self, name: str, *, finish: bool = False) -> Run:
        """Name the run of the calls in a `with` or `async with` block. `finish` ends it where the block ends well."""
        return Run(self._environment, name, finish=finish)

    def close(self) -> None:
        """Stop renewing leases, try once more to deliver what waits in the spool, and let go of the connections."""
        self._environment.heartbeat.close()
        if self._environment.spooler is not None:
            self._environment.spooler.close()
        self._environment.transport.close()

    async def close_async(self) -> None:
        """Do the same and let go of all connections, those of event loops too."""
        self._environment.heartbeat.close()
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
        home = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"
        taken = self._homes.setdefault(name, home)
        if taken != home:
            raise SetupError(f"Two tools are called {name}: {taken} and {home}. Give one of them name='...'.")


def _require_texts(**said: object) -> None:
    for argument, value in said.items():
        if value is not None and not isinstance(value, str):
            raise SetupError(f"Guard: {argument} is {value!r}; it is a text, such as url='sqlite:///twiceshy.db'.")
