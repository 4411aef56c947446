"""The transport into this very process: the service, over a SQLite file or PostgreSQL, on a background thread."""

import asyncio
import os
import threading
from contextlib import suppress
from functools import partial
from importlib import metadata

from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy._transports.handover import Handover
from twiceshy._transports.service_thread import ServiceThread
from twiceshy._transports.services import CLOSE_SECONDS, SERVICES, Ending, Services
from twiceshy.exceptions import SetupError
from twiceshy_contract.embedded import ENTRY_POINT, ENTRY_POINTS, NotOpened, OpenApp

_Homecoming = Handover[tuple["asyncio.Future[Reply | NoReply]", Reply | NoReply]]


class EmbeddedTransport:
    """Send requests to the service over `database` in this process."""

    def __init__(self, database: str, services: Services = SERVICES) -> None:
        """Find the server's entry point; open nothing. Raises SetupError where the server is not installed."""
        self._database = database
        self._services = services
        self._entry_point = _entry_point()
        self._has_served = False
        self._service: ServiceThread | None = None
        self._homecomings: dict[asyncio.AbstractEventLoop, _Homecoming] = {}
        self._start_anew()

    def send(self, request: Request) -> Reply | NoReply:
        """Hand over a request and wait for its reply. Raises SetupError where the service never opened."""
        service = self._held()
        if isinstance(service, NoReply):
            return service
        if not service.is_serving:
            try:
                service.opened.result()
            except Exception as error:  # noqa: BLE001 - whatever hinders the start is told to the caller
                return self._not_opened(service, error)
            self._has_served = True
        waiting = _Waiting()
        service.submit(request, waiting.answer)
        return waiting.reply(request.timeout_seconds)

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Hand over a request and await its reply. Raises SetupError where the service never opened."""
        service = self._held()
        if isinstance(service, NoReply):
            return service
        if not service.is_serving:
            try:
                await asyncio.wrap_future(service.opened)
            except Exception as error:  # noqa: BLE001 - whatever hinders the start is told to the caller
                return self._not_opened(service, error)
            self._has_served = True
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply | NoReply] = loop.create_future()
        alarm = loop.call_later(request.timeout_seconds, _give_up, reply, request.timeout_seconds)
        service.submit(request, partial(_bring_home, self._homecoming(loop), reply))
        try:
            return await reply
        finally:
            alarm.cancel()

    def close(self) -> None:
        """Let go of the service, and wait until it is closed where nobody else holds it."""
        service = self._given_up()
        if service is not None and self._services.let_go(service):
            with suppress(TimeoutError):
                service.ended.result(CLOSE_SECONDS)

    async def close_async(self) -> None:
        """Let go of the service, and await its end where nobody else holds it."""
        service = self._given_up()
        if service is not None and self._services.let_go(service):
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(service.ended), CLOSE_SECONDS)

    def _held(self) -> ServiceThread | NoReply:
        if self._process != os.getpid():
            self._start_anew()
        service = self._service
        if service is not None and not service.ended.done():
            return service
        with self._changing:
            if self._service is None or self._service.ended.done():
                try:
                    self._service = self._services.hold(self._database, self._load)
                except RuntimeError as error:
                    said = f"the embedded guard cannot be opened: {error}"
                    return NoReply(reason=said, is_final=isinstance(error, Ending))
            return self._service

    def _start_anew(self) -> None:
        """Hold nothing; in a forked child the parent's service, and a lock that it may hold, are none of ours."""
        self._process = os.getpid()
        self._changing = threading.Lock()
        self._service = None
        self._homecomings = {}

    def _given_up(self) -> ServiceThread | None:
        if self._process != os.getpid():
            self._start_anew()
        with self._changing:
            service, self._service = self._service, None
        return service

    def _not_opened(self, service: ServiceThread, error: Exception) -> NoReply:
        """Let the next call try again, and tell this one. For a guard that has served before, it is mere weather."""
        with self._changing:
            is_first = self._service is service
            if is_first:
                self._service = None
        if is_first:
            self._services.let_go(service)
        said = str(error) if isinstance(error, NotOpened) else f"{type(error).__name__}: {error}"
        if self._has_served:
            return NoReply(reason=said)
        raise SetupError(f"The embedded guard did not start: {said}") from error

    def _load(self) -> OpenApp:
        opened: OpenApp = self._entry_point.load()
        return opened

    def _homecoming(self, loop: asyncio.AbstractEventLoop) -> _Homecoming:
        """Return the way back into the caller's loop, and forget those of loops that are closed."""
        found = self._homecomings.get(loop)
        if found is None:
            for other in list(self._homecomings):
                if other.is_closed():
                    self._homecomings.pop(other, None)
            found = self._homecomings[loop] = Handover(loop, _settle)
        return found


class _Waiting:
    """A thread that waits for one reply."""

    __slots__ = ("_reply", "_told")

    def __init__(self) -> None:
        self._told = threading.Lock()
        self._told.acquire()
        self._reply: Reply | NoReply | None = None

    def answer(self, reply: Reply | NoReply) -> None:
        self._reply = reply
        self._told.release()

    def reply(self, seconds: float) -> Reply | NoReply:
        self._told.acquire(timeout=max(0.0, min(seconds, threading.TIMEOUT_MAX)))
        return self._reply or _too_late(seconds)


def _bring_home(way: _Homecoming, waiting: "asyncio.Future[Reply | NoReply]", reply: Reply | NoReply) -> None:
    with suppress(RuntimeError):  # the caller's loop is closed: nobody waits any more
        way.put((waiting, reply))


def _settle(arrived: tuple["asyncio.Future[Reply | NoReply]", Reply | NoReply]) -> None:
    waiting, reply = arrived
    if not waiting.done():
        waiting.set_result(reply)


def _give_up(waiting: "asyncio.Future[Reply | NoReply]", seconds: float) -> None:
    _settle((waiting, _too_late(seconds)))


def _too_late(seconds: float) -> NoReply:
    return NoReply(reason=f"no answer within {seconds:g} seconds")


def _entry_point() -> metadata.EntryPoint:
    for point in metadata.entry_points(group=ENTRY_POINTS, name=ENTRY_POINT):
        return point
    raise SetupError(
        "An embedded guard needs the server, which is not installed here: run `pip install 'twiceshy[server]'` "
        "(from a clone: `pip install ./sdk .`). Or name a running service: Guard('http://127.0.0.1:8700'), or "
        "TWICESHY_URL; `twiceshy serve` starts one where the server is installed."
    )
