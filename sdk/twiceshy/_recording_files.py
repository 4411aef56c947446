"""Files of recordings: compressed as their name or their first bytes say, and never half written."""

import gzip
import os
import secrets
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, cast

import zstandard

from twiceshy._recording_lines import refused

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_PIECE: Final = 2**16
FREE_BYTES: Final = 2**30
_MOST_TIMES: Final = 200
"""How much larger than its compressed form a file may be beyond the first gigabyte."""
_BROKEN: Final = (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)


def opened(file: str | os.PathLike[str] | BinaryIO, name: str) -> BinaryIO:
    """Open a file to be read at any place: what is compressed, or cannot be read twice, goes into a temporary one.

    Raises RecordingRefused, OSError.
    """
    if not isinstance(file, str | os.PathLike):
        return _copied(file, file.read(4), name)
    stream = Path(file).open("rb")  # noqa: SIM115 - it is kept open
    try:
        start = stream.read(4)
        if stream.seekable() and not _is_compressed(start):
            stream.seek(0)
            return stream
        copy = _copied(stream, start, name)
    except BaseException:
        stream.close()
        raise
    stream.close()
    return copy


def _is_compressed(start: bytes) -> bool:
    return start.startswith((_GZIP, _ZSTD))


def _copied(stream: BinaryIO, start: bytes, name: str) -> BinaryIO:
    copy = cast("BinaryIO", tempfile.TemporaryFile(prefix="twiceshy-"))  # noqa: SIM115 - it is kept open
    try:
        rest = _Continued(start, stream)
        if start.startswith(_GZIP):
            _decompressed(cast("BinaryIO", gzip.GzipFile(fileobj=cast("BinaryIO", rest))), rest, copy, name)
        elif start.startswith(_ZSTD):
            reader = zstandard.ZstdDecompressor().stream_reader(cast("BinaryIO", rest), read_across_frames=True)
            _decompressed(cast("BinaryIO", reader), rest, copy, name)
        else:
            shutil.copyfileobj(cast("BinaryIO", rest), copy, _PIECE)
    except _BROKEN as error:
        copy.close()
        raise refused(
            name, None, f"it cannot be decompressed: {error}", "Fetch it again whole, or export the run again."
        ) from error
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy


class _Continued:
    """A stream whose beginning was read already; it counts what is read of it."""

    def __init__(self, start: bytes, stream: BinaryIO) -> None:
        self._start = start
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        """Read the beginning, then the rest."""
        data = self._next(size)
        self.count += len(data)
        return data

    def _next(self, size: int) -> bytes:
        if not self._start:
            return self._stream.read(size)
        if size < 0:
            start, self._start = self._start, b""
            return start + self._stream.read()
        start, self._start = self._start[:size], self._start[size:]
        return start


def _decompressed(reader: BinaryIO, source: _Continued, copy: BinaryIO, name: str) -> None:
    """Write what a reader gives into a file. Refuses what only fills disks: no recording is so much smaller packed."""
    size = 0
    while piece := reader.read(_PIECE):
        size += len(piece)
        if size > FREE_BYTES and size > _MOST_TIMES * source.count:
            raise refused(
                name,
                None,
                f"what it holds is more than {_MOST_TIMES} times as large as the file",
                "If that is right, decompress it yourself, and load the plain file.",
            )
        copy.write(piece)


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file, compressed where its name ends with `.gz` or `.zst`; it is there whole, or not at all.

    What is no ordinary file, such as a pipe, is written as it is.
    """
    target = Path(path)
    with suppress(OSError):
        target = target.resolve(strict=True)
    if target.exists() and not target.is_file():
        with target.open("wb") as pipe, _compressing(target, pipe) as stream:
            yield stream
        return
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    file = part.open("xb")
    try:
        with file:
            with _compressing(target, file) as stream:
                yield stream
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def _compressing(target: Path, file: BinaryIO) -> Iterator[BinaryIO]:
    with ExitStack() as stack:
        if target.suffix == ".gz":
            yield cast("BinaryIO", stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)))
        elif target.suffix == ".zst":
            writer = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
            yield cast("BinaryIO", stack.enter_context(writer))
        else:
            yield file
