"""Write recordings: a stream of lines, with memory for digests only."""

import hashlib
from collections.abc import Callable, Iterable
from typing import BinaryIO, assert_never

import msgspec

from twiceshy._recording_lines import PartNumber, blob_line, end_line, event_line, head_line
from twiceshy._recording_parts import BlobPart, EventPart, Part
from twiceshy_contract.runs import RunView


def write_recording(
    file: BinaryIO,
    head: RunView,
    parts: Iterable[Part],
    *,
    number: PartNumber | None = None,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write one run. `advance` is called with every event. Its head says as many events as the parts have."""
    whole = hashlib.sha256()
    events = lines = 0

    def put(line: bytes) -> None:
        nonlocal lines
        whole.update(line)
        file.write(line)
        lines += 1

    put(head_line(head, number))
    for part in parts:
        match part:
            case BlobPart(digest, text):
                put(blob_line(digest, text))
            case EventPart(text):
                put(event_line(text))
                events += 1
                advance()
            case _:
                assert_never(part)
    if events != head.events:
        raise ValueError(f"run {head.run} has {head.events} events, and {events} came")
    file.write(end_line(events, lines, whole.hexdigest()))


def numbered(head: RunView, events: int) -> RunView:
    """Return a head that says so many events."""
    return msgspec.structs.replace(head, events=events)
