"""What makes a true answer arrive sooner: final outcomes that every replica may read, and counts of hot keys.

All of it may be lost, stale, slow or a lie, and no answer changes by that: whatever is not proved to be this database's
own record is as if it were not there. No method raises, and none takes longer than a short time-out.
"""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from guard.core.effects import Duration, Effect, Key, TenantId
from guard.ports.wire import Wire

WINDOW_MINUTES: Final = 5
"""Of how many minutes begins are counted that found another attempt's lease."""

Recalled = Literal["hit", "miss", "refused", "away"]
"""What came of a look for a record: it was proved, there was none, there was something else, nobody was asked."""


class HotKey(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that begins found executing lately, and how many of them, on all replicas together."""

    key: Key
    tool: str
    begins: int


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """Where the accelerator is, without its password, whether it is reached, and if not, why not."""

    address: str
    is_reached: bool
    why: str = ""


class AcceleratorMeters(Protocol):
    """Counts what becomes of the accelerator."""

    def recalled(self, answer: Recalled) -> None:
        """Count a look for a record."""

    def distrusted(self, why: str) -> None:
        """Count an entry that was not believed."""

    def shared(self, answer: Literal["sent", "dropped"], times: int) -> None:
        """Count what was to be kept, forgotten or counted for all replicas."""

    def accelerator_failed(self, why: str) -> None:
        """Count a failure: it was too slow, could not be reached, or answered an error."""

    def accelerator_reached(self, *, is_reached: bool) -> None:
        """Take whether it is asked at all."""


class Accelerator(Protocol):
    """A shared cache beside the database."""

    @property
    def wire(self) -> Wire:
        """Words between replicas, faster than through the database."""

    @property
    def reached(self) -> Reached:
        """Where it is, and whether it is reached."""

    def measure(self, meters: AcceleratorMeters) -> None:
        """Count what becomes of it with these meters from now on."""

    async def recall(self, tenant: TenantId, key: Key, kept: Duration) -> Effect | None:
        """Return the final effect that a replica kept under the key, where that is proved.

        `kept` is how long after their end the records of its tool are kept at least: older ones are none.
        """

    def keep(self, effect: Effect) -> None:
        """Keep a final effect, soon, for all replicas."""

    def forget(self, tenant: TenantId, keys: Sequence[Key]) -> None:
        """Keep these effects no longer, soon."""

    def contended(self, tenant: TenantId, tool: str, key: Key) -> None:
        """Count a begin that found another attempt's lease."""

    async def hottest(self, tenant: TenantId, limit: int) -> list[HotKey] | None:
        """Return the keys that most begins found executing within the last minutes, most first.

        None where it cannot be reached.
        """

    async def close(self) -> None:
        """Give back all connections."""
