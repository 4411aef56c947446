"""The history of a soak: what was asked when, and what was answered; and each real effect of a tool.

Times are seconds of one monotonic clock: all clients live on one machine. An operation whose answer was lost may have
happened at any time from its start on, or never.
"""

import threading
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

EffectClass = Literal["side_effect", "idempotent"]
Verb = Literal["begin", "commit", "fail", "renew", "resolve", "read", "call"]


class Operation(msgspec.Struct, frozen=True, kw_only=True, tag="operation", omit_defaults=True):
    """One request. `said` is its decision, state or problem; None: no answer came. `outcome` is the result it told.

    `what` is the kind of a failure or of a resolution, `lease` the seconds that the lease had left when it was granted
    or renewed.
    """

    client: str
    verb: Verb
    key: str
    tool: EffectClass
    started: float
    ended: float
    said: str | None = None
    attempt: str = ""
    fence: int = 0
    lease: float = 0.0
    what: str = ""
    outcome: object = None

    @property
    def is_answered(self) -> bool:
        """Whether an answer came."""
        return self.said is not None


class Executed(msgspec.Struct, frozen=True, kw_only=True, tag="executed"):
    """A tool had its effect out in the world, by an attempt."""

    client: str
    key: str
    tool: EffectClass
    attempt: str
    downstream_key: str
    receipt: str
    at: float


class Fault(msgspec.Struct, frozen=True, kw_only=True, tag="fault"):
    """What befell the service."""

    what: str
    at: float


class Stands(msgspec.Struct, frozen=True, kw_only=True, tag="stands"):
    """How an effect stands in the end, as one replica tells it."""

    replica: str
    key: str
    state: str
    outcome: object = None


Entry: TypeAlias = Operation | Executed | Fault | Stands


class Journal:
    """Writes entries to a file, a line each, as they come."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._turn = threading.Lock()

    def write(self, entry: Entry) -> None:
        """Add an entry."""
        line = msgspec.json.encode(entry) + b"\n"
        with self._turn:
            self._file.write(line)

    def flush(self) -> None:
        """Let what was written so far be read."""
        with self._turn:
            self._file.flush()

    def close(self) -> None:
        """Write the rest."""
        self._file.close()


def read(path: Path) -> list[Entry]:
    """Read a history."""
    decoder = msgspec.json.Decoder(Entry)
    return [decoder.decode(line) for line in path.read_bytes().splitlines()]
