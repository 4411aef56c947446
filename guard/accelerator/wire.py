"""The wire over Redis: words between replicas by pub/sub, several in one message.

A message is sealed under a secret of the database, so that a foreign one is not heard. A word may still be lost, or
come twice; when words may have been lost, those who listen are told that.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from guard.accelerator.keyring import HOUSE, Keyring, Secrets
from guard.accelerator.link import FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, Link
from guard.accelerator.pipe import Pipe
from guard.logs import logger
from guard.ports.wire import LONGEST_WORD

MOST_WAITING: Final = 4_096
"""Words that wait to be sent; what comes then is lost."""
_TOGETHER: Final = 256
_QUIET_SECONDS: Final = 5.0
"""How often it is asked whether the connection still stands."""
_PONG_SECONDS: Final = 1.0
_SEAL_BYTES: Final = 16
_LONGEST_MESSAGE: Final = _SEAL_BYTES + _TOGETHER * (1 + LONGEST_WORD)

Heard = Callable[[bytes | None], None]
_log = logger("guard.accelerator")


class RedisWire:
    """The port's wire over Redis."""

    def __init__(self, link: Link, keyring: Keyring) -> None:
        self._link = link
        self._keyring = keyring
        self._words: deque[bytes] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._listening: set[asyncio.Task[None]] = set()
        self._losses = 0

    def tell(self, word: bytes) -> None:
        """Send a word soon, together with those that are told until then."""
        is_word = 0 < len(word) <= LONGEST_WORD
        if not is_word or not self._link.is_up or len(self._words) >= MOST_WAITING:
            self._losses += is_word
            self._link.meters.shared("dropped")
            return
        self._words.append(word)
        if self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._send())

    @asynccontextmanager
    async def listening(self, heard: Heard) -> AsyncIterator[None]:
        """Call `heard` with each word; with None once listening has begun, again or for the first time.

        And with None when words from here were lost, once others can be sent: what they asked was heard by nobody.
        """
        task = asyncio.get_running_loop().create_task(self._listen(heard))
        self._listening.add(task)
        try:
            yield
        finally:
            self._listening.discard(task)
            await _ended(task)

    async def close(self) -> None:
        """Send what waits, and listen no more."""
        if self._sending is not None:
            await self._sending
        for task in list(self._listening):
            await _ended(task)

    async def _send(self) -> None:
        try:
            secrets = await self._keyring.secrets(HOUSE)
            while secrets is not None and self._words:
                words = [self._words.popleft() for _ in range(min(len(self._words), _TOGETHER))]
                message = ("PUBLISH", channel_of(secrets), message_of(secrets, words))
                is_sent = await self._link.ask([message]) is not None
                self._losses += not is_sent
                self._link.meters.shared("sent" if is_sent else "dropped", len(words))
        except Exception:  # noqa: BLE001  what failed is lost, and the next is sent by another task
            _log.error("redis_words_failed", exc_info=True)
        finally:
            self._sending = None

    async def _listen(self, heard: Heard) -> None:
        wait = FIRST_WAIT_SECONDS
        while True:
            secrets = await self._keyring.secrets(HOUSE)
            if secrets is not None and self._link.is_up:
                if await self._listened(secrets, heard):
                    wait = FIRST_WAIT_SECONDS
                heard(None)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    async def _listened(self, secrets: Secrets, heard: Heard) -> bool:
        """Listen until the connection is lost; say whether there was one."""
        is_lost = asyncio.Event()
        pipe: Pipe | None = None

        def told(message: bytes) -> None:
            for word in words_of(secrets, message):
                heard(word)

        try:
            async with asyncio.timeout(_PONG_SECONDS):
                pipe = await self._link.client.listener(told, lambda _why: is_lost.set())
                await pipe.ask([("SUBSCRIBE", channel_of(secrets))])
            heard(None)
            losses = self._losses
            while await _stands(pipe, is_lost):
                if losses != self._losses and self._link.is_up:
                    losses = self._losses
                    heard(None)
        except Exception as error:  # noqa: BLE001  whatever it is, listening begins anew
            _log.info("redis_listener_lost", reason=f"{type(error).__name__}: {error}")
        finally:
            if pipe is not None:
                pipe.close()
        return pipe is not None


async def _stands(pipe: Pipe, is_lost: asyncio.Event) -> bool:
    """Say after a while whether the connection has not ended. Raises TimeoutError where nobody answers on it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_QUIET_SECONDS):
            await is_lost.wait()
    if not is_lost.is_set():
        async with asyncio.timeout(_PONG_SECONDS):
            await pipe.ask([("PING",)])
    return not is_lost.is_set()


def channel_of(secrets: Secrets) -> bytes:
    """Return the channel of a database."""
    return secrets.name(b"wire", b"words")


def message_of(secrets: Secrets, words: list[bytes]) -> bytes:
    """Return words, each behind its length, sealed."""
    text = b"".join(bytes((len(word),)) + word for word in words)
    return _seal(secrets, text) + text


def words_of(secrets: Secrets, message: bytes) -> Iterator[bytes]:
    """Yield the words of a message, if the seal proves it."""
    if not _SEAL_BYTES < len(message) <= _LONGEST_MESSAGE:
        return
    text = message[_SEAL_BYTES:]
    if message[:_SEAL_BYTES] != _seal(secrets, text):
        return
    place = 0
    while place < len(text):
        end = place + 1 + text[place]
        yield text[place + 1 : end]
        place = end


def _seal(secrets: Secrets, text: bytes) -> bytes:
    return secrets.seal(b"twiceshy words 1:" + text)[:_SEAL_BYTES]


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
