"""Write one JSON line a message: into a file, or to the standard output of the process.

What waits is written together. A message is delivered once its line is on the disk; nobody can tell one that is
written twice but by its `id`. Whoever declares a destination names the file, and an operator the folder that it is in:
nothing outside is written, nor a file that holds something else than such lines.
"""

import asyncio
import errno
import fcntl
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal

import msgspec

from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Result, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.connected import told
from twiceshy_contract.destinations import LogDestination

FOLDER_VARIABLE: Final = "TWICESHY_RELAY_FILES"
"""The environment variable in which an operator names the folder below which logs are written."""
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
# Without O_NONBLOCK a named pipe that nobody reads would hold the thread that writes for ever.
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN)
_ENCODER: Final = msgspec.json.Encoder()


class LogSink:
    """One file, opened anew for every write, so that it may be moved away at any time.

    It is written in a thread of its own, which no file of another destination holds up.
    """

    def __init__(self, name: str, settings: LogDestination, folder: Path) -> None:
        """Raise SinkRefused where the file is not below the folder."""
        self._name = name
        self._seconds = settings.timeout_seconds
        self._path = None if settings.path is None else _below(folder, settings.path, name)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self._waiting: list[tuple[bytes, asyncio.Future[Result]]] = []
        self._writing: asyncio.Task[None] | None = None

    @property
    def capability(self) -> Literal["sends_blindly"]:
        """A file takes a line twice."""
        return "sends_blindly"

    async def send(self, outgoing: Outgoing) -> Result:
        """Write one line once."""
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        line = (_line(self._name, outgoing), result)
        self._waiting.append(line)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        try:
            async with asyncio.timeout(self._seconds):
                return await result
        except TimeoutError:
            if line in self._waiting:
                self._waiting.remove(line)
                return Retryable(
                    why=f"what was to be written before took {self._seconds:g} seconds; this is not written"
                )
            return Unknown(why=f"not written within {self._seconds:g} seconds, and may be yet")

    async def check(self) -> Reached:
        """Say whether the file can be written, writing nothing."""
        place = str(self._path or "standard output")
        try:
            async with asyncio.timeout(self._seconds):
                misfit = await asyncio.get_running_loop().run_in_executor(self._thread, _misfit, self._path)
        except TimeoutError:
            misfit = f"nothing is heard of it within {self._seconds:g} seconds"
        return Reached(ok=misfit is None, detail=f"{place} can be written" if misfit is None else f"{place}: {misfit}")

    async def close(self) -> None:
        """Write what waits."""
        if self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing], timeout=self._seconds)
            self._writing.add_done_callback(self._leave_thread)
        else:
            self._leave_thread(None)

    def _leave_thread(self, _writing: asyncio.Task[None] | None) -> None:
        self._thread.shutdown(wait=False)

    async def _write_all(self) -> None:
        while self._waiting:
            leaving, self._waiting = self._waiting, []
            lines = b"".join(line for line, _ in leaving)
            outcome = await asyncio.get_running_loop().run_in_executor(self._thread, _written, self._path, lines)
            for _, result in leaving:
                if not result.done():
                    result.set_result(outcome)


def _line(name: str, outgoing: Outgoing) -> bytes:
    """Return a message as one line of JSON; a JSON body as it is, any other as text."""
    facts = {
        "id": outgoing.identity,
        "destination": name,
        "type": outgoing.type,
        "lane": outgoing.lane,
        "recipient": outgoing.recipient,
        "content_type": outgoing.content_type,
        "headers": outgoing.headers,
        "body": _readable(outgoing),
    }
    return _ENCODER.encode({key: value for key, value in facts.items() if value is not None}) + b"\n"


def _readable(outgoing: Outgoing) -> object:
    if outgoing.content_type.partition(";")[0].strip() == "application/json" and b"\n" not in outgoing.body:
        try:
            return msgspec.json.decode(outgoing.body, type=msgspec.Raw)
        except msgspec.DecodeError:
            pass
    return outgoing.body.decode(errors="backslashreplace")


def _below(folder: Path, path: str, name: str) -> Path:
    """Return where a path leads, which is below the folder. Raises SinkRefused."""
    home = folder.resolve()
    try:
        leads_to = (home / path).resolve()
    except (OSError, ValueError, RuntimeError):  # a name that no file can have, or links that lead in a circle
        leads_to = home
    if ".." in Path(path).parts or leads_to == home or not leads_to.is_relative_to(home):
        raise SinkRefused(
            f"{name} may not write {path}: name a file below {home}, or let an operator name another folder in "
            f"{FOLDER_VARIABLE}."
        )
    return leads_to


def _misfit(path: Path | None) -> str | None:
    """Say why a file cannot be written, without making it."""
    if path is None:
        return None
    try:
        is_there = path.exists()
        if not is_there and not path.parent.is_dir():
            return os.strerror(errno.ENOENT)
        may = os.access(path, os.W_OK) if is_there else os.access(path.parent, os.W_OK | os.X_OK)
        return _foreign(path) if may else os.strerror(errno.EACCES)
    except OSError as error:
        return told(error)


def _foreign(path: Path) -> str | None:
    """Say that a file holds something else than lines of JSON, such as a database, which they would spoil."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return (
            None if file.read(1) in (b"", b"{", b"\n") else "it holds something else than such lines; name another file"
        )


def _written(path: Path | None, lines: bytes) -> Delivered | Retryable | Unknown:
    """Append lines and bring them to the disk."""
    place = str(path or "standard output")
    try:
        foreign = None if path is None else _foreign(path)
        if foreign is not None:
            return Retryable(why=f"{place}: {foreign}")
        file = sys.stdout.fileno() if path is None else os.open(path, _APPEND, 0o600)
        try:
            if path is not None and path.is_file():
                fcntl.flock(file, fcntl.LOCK_EX)  # what another relay is writing looks as if it were torn
            _append(file, b"\n" + lines if path is not None and _is_torn(path) else lines)
        finally:
            if path is not None:
                os.close(file)
    except _Torn as error:
        return Unknown(why=f"{place}: {error}")
    except (OSError, ValueError) as error:
        is_full = isinstance(error, OSError) and error.errno in _FULL
        return Retryable(why=f"{place}: {told(error)}", is_throttled=is_full)
    return Delivered(receipt=place)


def _append(file: int, lines: bytes) -> None:
    """Write all lines at once. Raises OSError where nothing was written, _Torn where something may have been."""
    written = os.write(file, lines) if lines else 0
    try:
        while written < len(lines):
            written += os.write(file, lines[written:])
        if stat.S_ISREG(os.fstat(file).st_mode):
            os.fsync(file)
    except OSError as error:
        raise _Torn(f"written in part: {told(error)}") from error


def _is_torn(path: Path) -> bool:
    """Say whether an earlier write ended within a line: the next one must not go on with it."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 1))
        return file.read(1) not in (b"", b"\n")


class _Torn(Exception):
    """Some of the lines may have been written."""
