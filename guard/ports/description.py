"""What a database says of itself."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from guard.core.effects import Instant


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """What a database says of itself at its time `now`: its `revision` (None: no schema) and the one that is needed.

    `durability` are the settings that decide whether a power cut can take back what was answered, in the database's
    own words. `free_bytes` is the room that is left where the file is.
    """

    kind: Literal["sqlite", "postgresql"]
    version: str
    revision: str | None
    needed: str
    now: Instant
    durability: Mapping[str, str]
    is_durable: bool
    free_bytes: int | None = None

    @property
    def is_current(self) -> bool:
        """Whether the schema is the one that this code needs."""
        return self.revision == self.needed
