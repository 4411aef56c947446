"""A stream in the record: its chunks, when each came, and how it ended.

    {"stream": {"chunks": [[micros, chunk], ...], "end": "complete"}}

The microseconds count from the entry of the boundary. The chunks are in tagged form.
"""

from typing import Final, Literal

import msgspec

from twiceshy_contract.outcomes import ErrorOutcome

STREAM: Final = "stream"
StreamEnd = Literal["complete", "stopped", "cancelled", "cut"]
"""`stopped`: its consumer closed it. `cancelled`: its consumer was cancelled. `cut`: it broke, with an error."""


class StreamValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a stream. `error` is what cut it."""

    chunks: tuple[tuple[int, object], ...] = ()
    end: StreamEnd
    error: ErrorOutcome | msgspec.UnsetType = msgspec.UNSET
