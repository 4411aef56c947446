"""Writes: what is to be kept, forgotten or counted waits here and leaves together.

What cannot leave soon is dropped, so that Redis never costs the service its memory.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from guard.accelerator.entries import written
from guard.accelerator.hot_keys import Counts, commands_of
from guard.accelerator.keyring import Keyring
from guard.accelerator.link import Link
from guard.accelerator.pipe import Command
from guard.core.effects import Effect, Key, TenantId
from guard.logs import logger

MOST_WAITING: Final = 2_000
"""Effects and keys that wait."""
MOST_BYTES: Final = 16 * 2**20
"""Of the arguments and outcomes that wait."""
_TOGETHER: Final = 64

Work = Effect | tuple[TenantId, Key]
"""An effect to keep, or one to forget."""

_log = logger("guard.accelerator")


class Writes:
    """One task sends what waits, while there is something."""

    def __init__(self, link: Link, keyring: Keyring, lives_seconds: int) -> None:
        self._link = link
        self._keyring = keyring
        self._lives = lives_seconds
        self._queue: deque[Work] = deque()
        self._bytes = 0
        self._counts = Counts()
        self._task: asyncio.Task[None] | None = None

    def keep(self, effect: Effect) -> None:
        """Keep an effect soon."""
        size = _size(effect)
        if self._has_room(size):
            self._bytes += size
            self._put(effect)

    def forget(self, tenant: TenantId, keys: Sequence[Key]) -> None:
        """Forget effects soon, and whatever of them waits to be kept, before."""
        for key in keys:
            if self._has_room(0):
                self._put((tenant, key))

    def count(self, tenant: TenantId, tool: str, key: Key) -> None:
        """Count a begin that found another's lease."""
        if self._link.is_up and self._counts.add(tenant, tool, key):
            self._wake()
        else:
            self._link.meters.shared("dropped")

    async def close(self) -> None:
        """Send what waits, if Redis takes it."""
        if self._task is not None:
            await self._task

    def _has_room(self, size: int) -> bool:
        has_room = self._link.is_up and len(self._queue) < MOST_WAITING and self._bytes + size <= MOST_BYTES
        if not has_room:
            self._link.meters.shared("dropped")
        return has_room

    def _put(self, work: Work) -> None:
        self._queue.append(work)
        self._wake()

    def _wake(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._queue or self._counts:
                await self._send()
        except Exception:  # noqa: BLE001  what failed is lost, and the next is sent by another task
            _log.error("redis_writes_failed", exc_info=True)
        finally:
            self._task = None

    async def _send(self) -> None:
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), _TOGETHER))]
        self._bytes -= sum(_size(work) for work in taken if isinstance(work, Effect))
        counts = self._counts.take()
        commands = [command for work in taken if (command := await self._command(work)) is not None]
        for tenant, counted in counts.items():
            secrets = await self._keyring.secrets(tenant)
            if secrets is not None:
                commands.extend(commands_of(secrets, counted))
        for some in _batches(commands):
            is_sent = await self._link.ask(some) is not None
            self._link.meters.shared("sent" if is_sent else "dropped", len(some))

    async def _command(self, work: Work) -> Command | None:
        tenant, key = (work.intent.tenant, work.intent.key) if isinstance(work, Effect) else work
        secrets = await self._keyring.secrets(tenant)
        if secrets is None:
            return None
        name = secrets.name(b"record", key)
        if not isinstance(work, Effect):
            return ("UNLINK", name)
        ended_at = work.life.ended_at
        epoch = None if ended_at is None else self._keyring.epoch_before(tenant, ended_at)
        entry = None if epoch is None else written(secrets, epoch, work)
        return None if entry is None else ("SET", name, entry, "EX", self._lives)


def _size(effect: Effect) -> int:
    return len(effect.intent.arguments) + len(effect.outcome or b"") + len(effect.edited or b"")


def _batches(commands: Iterable[Command]) -> Iterable[list[Command]]:
    waiting = iter(commands)
    while some := list(islice(waiting, _TOGETHER)):
        yield some
