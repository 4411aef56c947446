"""Settling apart: where many results cannot be written together, each is written alone."""

from typing import Final
from uuid import UUID

from guard.core.effects import Duration, seconds
from guard.logs import logger
from guard.ports.relay import Again, Done, RelayStore, Settlement, Stands
from guard.ports.store import StoreUnavailable

_LENGTH: Final[Duration] = seconds(30)
_log = logger("guard.relay")


async def settle_apart(store: RelayStore, lease: UUID, settlement: Settlement) -> tuple[int, ...] | None:
    """Write one result, plainly if it cannot be written as it is; return what was fenced. Raises StoreUnavailable.

    None: one that cannot be written at all is left to its lease: it ends, and the message is taken back.
    """
    for said in (settlement, _plain(settlement)):
        try:
            return (await store.turn(lease, _LENGTH, (said,), ())).fenced
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001  the next word may be taken
            _log.error("result_not_written", row=settlement.id, exc_info=True)
    return None


def _plain(settlement: Settlement) -> Settlement:
    """Say the same without the words of others."""
    match settlement:
        case Done(id=id_, over=over, counts=counts):
            return Done(id=id_, over=over, counts=counts)
        case Again(id=id_, delay=delay, tried=tried):
            return Again(id=id_, delay=delay, tried=tried)
        case Stands(id=id_, state=state, tried=tried, blocks=blocks):
            return Stands(id=id_, state=state, note="its reason could not be written", tried=tried, blocks=blocks)
