"""What the service needs of a database for the logs of runs. Events and what they hold by content are only added."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from guard.core.effects import RunId, TenantId
from guard.core.recording import Diverged, Expired, Gap, TakenOver, Unfounded, Written
from guard.core.runs import Run


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Append to a run's log as its writer of an epoch: texts by their digests (in hex), and then events.

    `events` follow each other; what the log has already may be among them. `needs` are the digests that must be kept
    besides those of the `blobs`.
    """

    tenant: TenantId
    run: RunId
    epoch: int
    events: tuple[Written, ...] = ()
    blobs: Mapping[str, bytes] = {}
    needs: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """How many bytes are to be written at the most."""
        return sum(len(text) for text in self.blobs.values()) + sum(len(event.body) for event in self.events)


class Appended(msgspec.Struct, frozen=True, kw_only=True):
    """The log is kept up to `head`; `added` events of it are new."""

    head: int
    added: int


class BlobsMissing(msgspec.Struct, frozen=True, kw_only=True):
    """These digests are needed, and their texts are not kept. Nothing was appended."""

    digests: tuple[str, ...]


AppendResult = Appended | Diverged | Gap | TakenOver | Expired | Unfounded | BlobsMissing


class LogPage(msgspec.Struct, frozen=True, kw_only=True):
    """Texts of events in their order; `next` is the number of the last one, where the log goes on behind it."""

    items: list[bytes]
    next: int | None


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts by their digests, and the digests of those that did not fit."""

    texts: dict[str, bytes]
    left: tuple[str, ...]


class EventStore(Protocol):
    """The logs of runs, and what they hold by content."""

    async def open_writer(self, run: RunId) -> Run | None:
        """Give the log of an open run its next writer; return the run with that epoch, an ended one as it is.

        None: there is no such run.
        """

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        """Append to logs, all in one transaction; answer each append in its place. None spoils another.

        The same append may be sent again. Raises StoreUnavailable, and StatementFailed (nothing of it happened).
        """

    async def page(self, run: RunId, after: int, limit: int, size: int) -> LogPage:
        """Return the events that come next: up to `limit`, and up to about `size` bytes, but at least one."""

    async def blobs(self, tenant: TenantId, digests: Sequence[str], size: int) -> Texts:
        """Return texts in the order that is asked: up to about `size` bytes, but at least one."""
