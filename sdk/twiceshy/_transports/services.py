"""The services that are embedded in this process.

They belong to the process, not to a guard: two guards over one database share one, because two would only stand in
each other's way. A forked child opens its own and leaves its parent's alone.
"""

import atexit
import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from twiceshy._transports.service_thread import ServiceThread
from twiceshy_contract.embedded import OpenApp

CLOSE_SECONDS: Final = 15.0
_OPEN_SECONDS: Final = 30.0


class Ending(RuntimeError):
    """The interpreter ends."""

    def __init__(self) -> None:
        super().__init__("the interpreter ends")


class Services:
    """The services of this process, one a database, shared by all transports that hold them."""

    _still: list[OpenApp]

    def __init__(self) -> None:
        self._forget()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._stand_still, after_in_parent=self._go_on, after_in_child=self._leave_to_parent
            )

    def hold(self, database: str, load: Callable[[], OpenApp]) -> ServiceThread:
        """Return the service over a database, starting it where there is none.

        Raises Ending where the interpreter ends and takes no new thread, and RuntimeError where it has too many.
        """
        with self._changing:
            service = self._by_database.get(database)
            if service is None:
                service = self._started(database, load)
                self._by_database[database] = service
                self._living.add(service)
            service.holders += 1
            return service

    def let_go(self, service: ServiceThread) -> bool:
        """Give back a service; ask it to close, and say True, where nobody else holds it."""
        with self._changing:
            service.holders -= 1
            if service.holders > 0:
                return False
            if self._by_database.get(service.database) is service:
                del self._by_database[service.database]
        service.ask_to_close()
        return True

    def _end(self) -> None:
        """Close all services in order before the interpreter ends, when all other threads that count have ended."""
        with self._changing:
            self._is_ended = True
            services = list(self._by_database.values())
            self._by_database.clear()
        for service in services:
            service.ask_to_close()
        with suppress(KeyboardInterrupt, TimeoutError):
            for service in services:
                if service.is_serving or service.opened.done():
                    service.ended.result(CLOSE_SECONDS)

    def _started(self, database: str, load: Callable[[], OpenApp]) -> ServiceThread:
        if self._is_ended:
            raise Ending
        service = ServiceThread(database, load)
        try:
            service.start()
        except RuntimeError as error:
            if sys.is_finalizing() or "shutdown" in str(error):
                raise Ending from error
            raise
        return service

    def _stand_still(self) -> None:
        """Let no fork copy a database that is open or half open.

        No service starts until the fork is over. This one hook does all, in this order: the server's workers must be
        able to work while the openings are awaited, and hooks that came about meanwhile would not be run.
        """
        self._changing.acquire()
        services = list(self._living)
        try:
            for service in services:
                with suppress(Exception):
                    service.opened.result(_OPEN_SECONDS)
        finally:
            self._still = list({id(app): app for service in services if (app := service.open_app) is not None}.values())
            for app in self._still:
                app.before_fork()

    def _go_on(self) -> None:
        still, self._still = self._still, []
        for app in still:
            app.after_fork_in_parent()
        self._changing.release()

    def _leave_to_parent(self) -> None:
        """Begin empty in a forked child, and never finalise what is the parent's: a living process uses it."""
        for service in self._living:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(service))
        for app in self._still:
            app.after_fork_in_child()
        self._forget()

    def _forget(self) -> None:
        self._changing = threading.RLock()
        self._by_database: dict[str, ServiceThread] = {}
        self._living: weakref.WeakSet[ServiceThread] = weakref.WeakSet()
        self._still = []
        self._is_ended = False


SERVICES: Final = Services()
