"""How long what a record has next may take: as long as it took then, where code may still be on its way to it.

A replay gives outcomes at once, but what code waits for without a boundary, such as `asyncio.sleep`, takes its time.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Collection, Iterable
from typing import Any, Final

from twiceshy._event_loop import is_on_loop
from twiceshy._script import Order

_SLACK_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
"""How long a replay that goes nowhere waits for code that paused when it was recorded."""
_log: Final = logging.getLogger("twiceshy")


class Pace:
    """Knows when the code came to what it did, and when it did so in the record."""

    def __init__(self, order: Order, run: str, *, is_online: bool) -> None:
        self._order = order
        self._run = run
        self._is_online = is_online
        self._began = self._moved = 0.0
        self._entered_at: dict[int, float] = {}
        self._told = 0

    def entered(self, intent: int) -> None:
        """Hear that a recorded call was entered."""
        self.moved()
        if self._was_cancelled(intent):
            self._entered_at[intent] = self._moved

    def moved(self) -> None:
        """Hear that the code goes on."""
        self._moved = time.monotonic()
        self._began = self._began or self._moved

    def uncancelled(self, awaited: Collection[int]) -> int | None:
        """Return the first of the calls that the code cancelled when they were recorded, and waits for now."""
        return next((intent for intent in sorted(awaited) if self._was_cancelled(intent)), None)

    def _may_cancel(self, intent: int) -> bool:
        delivery, since = self._order.delivery_of(intent), self._entered_at.get(intent)
        return (
            delivery is not None
            and since is not None
            and time.monotonic() - since < delivery.took / 1_000_000 + _SLACK_SECONDS
        )

    def may_go_on(self, uncancelled: int | None, *, is_alone: bool) -> bool:
        """Say whether the code may still cancel a call as it did, or, where others run, make the one that is next."""
        return (uncancelled is not None and self._may_cancel(uncancelled)) or (not is_alone and self.may_come())

    def wait_for_others(self, changed: threading.Condition) -> None:
        """Wait in a thread for others that may still make the recorded calls that come first."""
        if is_on_loop():
            return
        while not changed.wait_for(lambda: self._order.is_over, _SLACK_SECONDS):
            if is_alone() or not self.may_come():
                return

    def may_come(self) -> bool:
        """Say whether the code may still be on its way to the call that is next.

        Where the run goes on by itself, it takes no longer than since the first call of the record: code that began to
        pause earlier than what came last is as late as it was then.
        """
        intent, delivery = self._order.next_intent, self._order.next_delivery
        if intent is None or (delivery is not None and delivery[0] < intent):
            return False
        pause, whole = self._order.seconds_before(intent)
        until = self._moved + (pause if self._is_online else min(pause, _LONGEST_SECONDS))
        if self._is_online:
            until = max(until, self._began + whole)
        is_coming = time.monotonic() < until + _SLACK_SECONDS + pause / 4
        if is_coming and self._told != intent and pause > _SLACK_SECONDS:
            self._told = intent
            name = self._order.intent(intent).name
            _log.warning(
                "The run %s waits for %s (event %d), to which its code came after a pause of %.1f s when it was "
                "recorded.", self._run, name, intent, pause,
            )  # fmt: skip
        return is_coming

    def _was_cancelled(self, intent: int) -> bool:
        delivery = self._order.delivery_of(intent)
        return delivery is not None and delivery.outcome == "cancelled"


def is_alone() -> bool:
    """Say whether no other thread of the program runs that may make a call."""
    current = threading.current_thread()
    return all(thread is current or thread.daemon for thread in threading.enumerate())


def is_idle(loop: asyncio.AbstractEventLoop, awaited: Iterable["asyncio.Future[None] | None"]) -> bool:
    """Say whether all tasks of an event loop, but for this one, wait for these or for each other: none goes on itself.

    What a task waits for that is no task, such as a timer, may come.
    """
    futures = {id(future) for future in awaited if future is not None}
    current = asyncio.current_task(loop)
    waits: list[Any] = [getattr(task, "_fut_waiter", None) for task in asyncio.all_tasks(loop) if task is not current]
    return all(
        id(wait) in futures or isinstance(wait, asyncio.Task) or getattr(wait, "_children", None) is not None
        for wait in waits
    )
