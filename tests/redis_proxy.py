"""A proxy in front of a real Redis that tells lies, hangs, and comes back, as a test wants it."""

import asyncio
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final, Self

import hiredis
import zstandard

_PIECE: Final = 2**16
_BOMB: Final = b"\x01\x01" + b"s" * 32 + zstandard.ZstdCompressor(level=3).compress(bytes(64 * 2**20))
_SUBSCRIBES: Final = {b"SUBSCRIBE", b"PSUBSCRIBE"}

Command = list[bytes]
Lie = Callable[[Command, Any], Any]
"""What a client is told for a command instead of the true reply."""


class Lies:
    """All lies about entries, in turn; it remembers what was kept, to tell it again at the wrong place or time."""

    def __init__(self) -> None:
        self._kept: dict[bytes, list[bytes]] = {}
        self._turns = itertools.cycle(
            (
                self.the_truth,
                self.another_entry,
                self.an_older_entry,
                self.a_flipped_bit,
                self.foreign_bytes,
                self.something_huge,
                self.a_bomb,
                self.a_wrong_type,
                self.a_number,
                self.a_list,
                self.nothing,
                self.half_of_it,
            )
        )

    def keep(self, command: Command) -> None:
        """Remember an entry that is written."""
        if command[0].upper() == b"SET":
            self._kept.setdefault(command[1], []).append(command[2])

    def __call__(self, command: Command, true: Any) -> Any:
        """Tell the next lie about an entry or a set; the truth about all else."""
        name = command[0].upper()
        if name == b"ZREVRANGE":
            return [b"somebody's", b"7", os.urandom(60), b"1e9", b"odd"]
        return next(self._turns)(command, true) if name == b"GETRANGE" else true

    def the_truth(self, _command: Command, true: Any) -> Any:
        return true

    def another_entry(self, command: Command, _true: Any) -> Any:
        others = (entries[-1] for name, entries in self._kept.items() if name != command[1])
        return next(others, b"")

    def an_older_entry(self, command: Command, _true: Any) -> Any:
        return self._kept.get(command[1], [b""])[0]

    def a_flipped_bit(self, command: Command, true: Any) -> Any:
        entry = bytearray(true or self.another_entry(command, true) or b"?")
        entry[len(entry) // 2] ^= 1
        return bytes(entry)

    def foreign_bytes(self, _command: Command, _true: Any) -> Any:
        return os.urandom(300)

    def something_huge(self, _command: Command, _true: Any) -> Any:
        return bytes(2**20)

    def a_bomb(self, _command: Command, _true: Any) -> Any:
        return _BOMB

    def a_wrong_type(self, _command: Command, _true: Any) -> Any:
        return hiredis.ReplyError("WRONGTYPE Operation against a key holding the wrong kind of value")

    def a_number(self, _command: Command, _true: Any) -> Any:
        return 7

    def a_list(self, _command: Command, _true: Any) -> Any:
        return [b"a", [b"b", None]]

    def nothing(self, _command: Command, _true: Any) -> Any:
        return None

    def half_of_it(self, _command: Command, true: Any) -> Any:
        return true[: len(true) // 2] if isinstance(true, bytes) else true


class RedisProxy:
    """Serves on a free port of the loopback, in a thread of its own, as long as it is entered."""

    def __init__(self, port: int) -> None:
        """Stand in front of the server at a port of this machine."""
        self._behind = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.lies = Lies()
        self.lie: Lie | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"redis://127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._start())
        return self

    def __exit__(self, *_error: object) -> None:
        self._do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def pass_on(self) -> None:
        """Let bytes through."""
        self._loop.call_soon_threadsafe(self._open.set)

    def hold_up(self) -> None:
        """Hold all bytes up; connections stay, and new ones are taken and not served."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._taken, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: asyncio.StreamWriter | None = None
        try:
            there, behind = await asyncio.open_connection("127.0.0.1", self._behind)
            asked: deque[Command] = deque()
            ways = [self._ask(reader, behind, asked), self._answer(there, writer, asked)]
            tasks = [self._loop.create_task(way) for way in ways]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        except OSError:
            pass  # nobody is behind: the client sees its connection end
        finally:
            for one in filter(None, (writer, behind)):
                one.close()
                with suppress(OSError):
                    await one.wait_closed()

    async def _ask(self, reader: asyncio.StreamReader, behind: asyncio.StreamWriter, asked: deque[Command]) -> None:
        commands = hiredis.Reader()
        while piece := await reader.read(_PIECE):
            commands.feed(piece)
            for command in _parsed(commands):
                self.lies.keep(command)
                asked.append(command)
            await self._open.wait()
            behind.write(piece)
            await behind.drain()

    async def _answer(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Command]) -> None:
        replies = hiredis.Reader()
        is_subscribed = False
        while piece := await there.read(_PIECE):
            if not is_subscribed and any(command[0].upper() in _SUBSCRIBES for command in asked):
                is_subscribed = True  # from now on what comes is no longer an answer
            if is_subscribed:
                told = piece
            else:
                replies.feed(piece)
                told = b"".join(_written(self._told(asked.popleft(), reply)) for reply in _parsed(replies))
            await self._open.wait()
            writer.write(told)
            await writer.drain()

    def _told(self, command: Command, reply: Any) -> Any:
        return reply if self.lie is None else self.lie(command, reply)


def _parsed(reader: hiredis.Reader) -> Iterator[Any]:
    while (value := reader.gets()) is not False:
        yield value


def _written(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(_written, value))
    return b"-%b\r\n" % str(value).encode()
