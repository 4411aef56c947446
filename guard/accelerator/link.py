"""The link to Redis: short of patience, and broken off at the first failure until Redis answers again.

While it is broken off nobody waits for Redis: one task alone asks now and then whether it is back, at first soon, then
every few seconds.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from redis import exceptions as failures

from guard.accelerator.clients import Client
from guard.accelerator.meters import Meters
from guard.accelerator.pipe import Command
from guard.accelerator.replies import Refusal
from guard.logs import logger

PATIENCE_SECONDS: Final = 0.05
"""How long anybody waits for Redis."""
FIRST_WAIT_SECONDS: Final = 0.1
LONGEST_WAIT_SECONDS: Final = 5.0
_GREETING_SECONDS: Final = 2.0
_FORGIVABLE: Final = ("WRONGTYPE", "OOM")

_log = logger("guard.accelerator")


class Link:
    """Asks Redis, or says at once that it cannot be asked."""

    def __init__(self, client: Client, address: str, meters: Meters) -> None:
        self.client: Final = client
        self.address: Final = address
        self.meters: Final = meters
        self.is_up = False
        self.why = "nobody has asked it yet"
        self._broken = asyncio.Event()
        self._wait = FIRST_WAIT_SECONDS
        self._up_since = 0.0
        self._care: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Reach for Redis, and again whenever it went away."""
        self._care = asyncio.get_running_loop().create_task(self._run())

    async def ask(self, commands: Sequence[Command]) -> list[Any] | None:
        """Send commands together and answer each in its place; None where Redis did not answer soon enough."""
        if not self.is_up:
            return None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                answers = await self.client.ask(commands)
        except TimeoutError:
            self._break_off("slow", f"no answer within {PATIENCE_SECONDS * 1000:.0f} ms")
        except (failures.RedisError, Refusal, OSError) as error:
            self._break_off("unreachable", _said(error))
        except Exception as error:  # noqa: BLE001  what answers may be no Redis, and the library be at a loss
            self._break_off("unreadable", _said(error))
        else:
            return self._judged(answers)
        return None

    async def close(self) -> None:
        """Reach for it no more, and close all connections."""
        self.is_up = False
        if self._care is not None:
            self._care.cancel()
            with suppress(asyncio.CancelledError):
                await self._care
        with suppress(Exception):
            async with asyncio.timeout(_GREETING_SECONDS):
                await self.client.close()

    def _judged(self, answers: list[Any]) -> list[Any] | None:
        for answer in answers:
            if isinstance(answer, Exception) and not _is_forgivable(answer):
                self._break_off("refused", _said(answer))
                return None
        return answers

    def _lost(self, why: str) -> None:
        if self.is_up:
            self._break_off("unreachable", why)

    def _break_off(self, kind: str, why: str) -> None:
        self.meters.failed(kind)
        if not self.is_up:
            return
        self.is_up, self.why = False, why
        self.meters.reached(is_reached=False)
        _log.warning("redis_away", address=self.address, reason=why)
        if time.monotonic() - self._up_since > LONGEST_WAIT_SECONDS:
            self._wait = FIRST_WAIT_SECONDS
        self._broken.set()

    async def _run(self) -> None:
        is_first = True
        while True:
            if await self._greeted():
                self.is_up, self.why, self._up_since = True, "", time.monotonic()
                self._broken.clear()
                self.meters.reached(is_reached=True)
                _log.info("redis_reached", address=self.address)
                await self._broken.wait()
            elif is_first:
                _log.warning("redis_away", address=self.address, reason=self.why)
            is_first = False
            await asyncio.sleep(self._wait)
            self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)

    async def _greeted(self) -> bool:
        try:
            async with asyncio.timeout(_GREETING_SECONDS):
                await self.client.greet(self._lost)
        except Exception as error:  # noqa: BLE001  whatever it is, it is tried again
            self.why = _said(error)
            self.meters.failed("unreachable")
            return False
        return True


def _is_forgivable(error: Exception) -> bool:
    """Say whether one command may be refused so while others are not: another's value, or no room for more."""
    return isinstance(error, failures.OutOfMemoryError) or str(error).startswith(_FORGIVABLE)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
