"""Rounds: what a service does for ever beside its requests, one short piece of work after another."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from guard.logs import logger
from guard.ports.store import StoreUnavailable

T = TypeVar("T")
_log = logger("guard.rounds")


async def for_ever(name: str, run_once: Callable[[], Awaitable[bool]], pause: float) -> None:
    """Do one round after another, and pause (seconds) where one says that there is no more to do.

    A database that is away is tried again, and so is a round that fails: one that ended would leave all that comes
    later undone.
    """
    while True:
        is_more = False
        try:
            is_more = await run_once()
        except StoreUnavailable as error:
            _log.warning("round_postponed", of=name, reason=str(error))
        except Exception:  # noqa: BLE001  the next round may well succeed
            _log.error("round_failed", of=name, exc_info=True)
        if not is_more:
            await asyncio.sleep(pause)


async def each(name: str, items: Iterable[T], do: Callable[[T], Awaitable[object]]) -> int:
    """Do the same with every item of a round, and return with how many it went well. Raises StoreUnavailable.

    One that fails holds up none of the others.
    """
    done = 0
    for item in items:
        try:
            await do(item)
            done += 1
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  the others are done, and this one is tried again in a later round
            _log.error("item_failed", of=name, exc_info=True)
    return done
