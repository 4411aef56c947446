"""The service over one database on a thread of its own, with its event loop. Everything else hands it requests."""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

from twiceshy._transports.asgi import App, Life, respond
from twiceshy._transports.base import NoReply, Reply, Request, authorization, headers
from twiceshy._transports.handover import Handover
from twiceshy_contract.embedded import EmbeddedApp, OpenApp

T = TypeVar("T")
Answer: TypeAlias = Callable[[Reply | NoReply], None]
_GRACE_SECONDS: Final = 10.0
"""How long a service that is to close waits for its last requests."""
_CLOSED: Final = NoReply(reason="the embedded guard was closed")


class ServiceThread:
    """One service of this process. `holders` counts the transports that use it."""

    def __init__(self, database: str, load: Callable[[], OpenApp]) -> None:
        self.database: Final = database
        self.process: Final = os.getpid()
        self.holders = 0
        self.is_serving = False
        self.open_app: OpenApp | None = None
        self.opened: Final[Future[None]] = _running()
        self.ended: Final[Future[None]] = _running()
        self._load = load
        self._app: App | None = None
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers(None).items()]
        self._arrivals: Handover[tuple[Request, Answer]] | None = None
        self._closing: asyncio.Event | None = None
        self._is_to_close = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="twiceshy-embedded", daemon=True)

    def start(self) -> None:
        """Start to open the database. Raises RuntimeError where the interpreter ends and takes no new thread."""
        self._thread.start()

    def submit(self, request: Request, answer: Answer) -> None:
        """Hand over a request from any thread. `answer` is called once, on the service's thread as a rule."""
        arrivals = self._arrivals
        if arrivals is None:
            answer(_CLOSED)
            return
        try:
            arrivals.put((request, answer))
        except RuntimeError:  # its loop is closed
            self.is_serving = False
        if not self.is_serving:
            self._refuse(arrivals)

    def ask_to_close(self) -> None:
        """Let no request wait, finish those that run, and shut down. `ended` says when that is done."""
        self._is_to_close = True
        loop, closing = self._loop, self._closing
        if loop is not None and closing is not None:
            with suppress(RuntimeError):  # it has ended already
                loop.call_soon_threadsafe(closing.set)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.get_loop().set_default_executor(_DaemonThreads())
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again where someone waits for the service
            if not self.opened.done():
                self.opened.set_exception(error)
        finally:
            self.is_serving = False
            if self._arrivals is not None:
                self._refuse(self._arrivals)
            self.ended.set_result(None)

    async def _serve(self) -> None:
        self.open_app = self._load()
        embedded = await self.open_app(self.database)
        self._app = embedded.asgi
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        if self._is_to_close:  # it was said before there was anything to hear it
            self._closing.set()
        async with Life(embedded.asgi):
            self._arrivals = Handover(self._loop, self._take)
            self.is_serving = True
            self.opened.set_result(None)
            await self._closing.wait()
            self.is_serving = False
            await self._finish(embedded)

    async def _finish(self, embedded: EmbeddedApp) -> None:
        embedded.stop_waiting()
        if self._requests:
            await asyncio.wait(self._requests, timeout=_GRACE_SECONDS)

    def _take(self, arrival: tuple[Request, Answer]) -> None:
        """Start to answer a request, on the loop."""
        task = asyncio.get_running_loop().create_task(self._answer(*arrival))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _answer(self, request: Request, answer: Answer) -> None:
        reply: Reply | NoReply = _CLOSED
        try:
            if self._app is not None:
                said = [(name.lower().encode(), value.encode()) for name, value in authorization(request.token).items()]
                reply = await respond(self._app, request, [*self._headers, *said])
        except Exception as error:  # noqa: BLE001 - whatever an application raises is no answer
            reply = NoReply(reason=f"{type(error).__name__}: {error}")
        finally:
            answer(reply)

    def _refuse(self, arrivals: Handover[tuple[Request, Answer]]) -> None:
        for _, answer in arrivals.drain():
            answer(_CLOSED)


class _DaemonThreads(ThreadPoolExecutor):
    """Work for the loop, such as looking up a name, in threads that nobody waits for when the interpreter ends.

    The standard executor takes no work once the main thread has ended, while other threads may still be calling.
    """

    def submit(self, work: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        outcome: Future[T] = Future()

        def run() -> None:
            if outcome.set_running_or_notify_cancel():
                try:
                    outcome.set_result(work(*args, **kwargs))
                except BaseException as error:  # noqa: BLE001 - raised again where it is awaited
                    outcome.set_exception(error)

        threading.Thread(target=run, name="twiceshy-lookup", daemon=True).start()
        return outcome


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the faster loop that the server brings along where there is one."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


def _running() -> Future[None]:
    """Return a future that no waiter's cancellation can cancel."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future
