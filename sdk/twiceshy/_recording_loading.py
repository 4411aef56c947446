"""Load a file of recordings: verify it whole, and keep it open to be read at its places.

A file of execution logs is loaded as the recordings that they come to.
"""

import os
import tempfile
from typing import BinaryIO, Final, cast

import msgspec

from twiceshy._execution_log import execution_logs, looks_like_execution_log
from twiceshy._recording_files import opened
from twiceshy._recording_lines import MAX_LINE_BYTES, refused
from twiceshy._recording_reading import verified
from twiceshy._recording_sources import FileSource, SharedFile
from twiceshy._recording_writing import write_recording
from twiceshy_contract.runs import RunView

RecordingFile = str | os.PathLike[str] | BinaryIO
_HINT: Final = "Make one with `twiceshy runs export RUN -o FILE`."


class Loaded(msgspec.Struct, frozen=True):
    """A run of a file."""

    head: RunView
    source: FileSource


def name_of(file: RecordingFile) -> str:
    """Return how a file is called."""
    return os.fspath(file) if isinstance(file, str | os.PathLike) else str(getattr(file, "name", "the recording"))


def load(file: RecordingFile) -> list[Loaded]:
    """Verify a file and return its runs. Raises RecordingRefused with the line, and why."""
    name = name_of(file)
    try:
        return loaded(opened(file, name), name)
    except OSError as error:
        raise refused(name, None, f"it cannot be read: {error.strerror or error}", _HINT) from error


def loaded(stream: BinaryIO, name: str) -> list[Loaded]:
    """Verify what a stream that is read from its beginning holds. The stream is kept, or closed."""
    try:
        start = stream.readline(MAX_LINE_BYTES)
        stream.seek(0)
        _require_something(start, name)
        if looks_like_execution_log(start):
            with stream:
                stream = _converted(stream, name)
        runs = list(verified(stream, name))
    except BaseException:
        stream.close()
        raise
    shared = SharedFile(stream)
    return [Loaded(run.head, FileSource(shared, run.index, name)) for run in runs]


def _require_something(start: bytes, name: str) -> None:
    if not start.strip():
        raise refused(name, 1, "there is no recording in it", _HINT)


def _converted(stream: BinaryIO, name: str) -> BinaryIO:
    """Write execution logs anew as recordings, in a temporary file."""
    copy = cast("BinaryIO", tempfile.TemporaryFile(prefix="twiceshy-"))  # noqa: SIM115 - it is kept open
    try:
        for head, parts in execution_logs(stream, name):
            write_recording(copy, head, parts)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy
