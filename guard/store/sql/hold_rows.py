"""Between rows of `holds` and holds, and the cursor of their pages."""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import msgspec

from guard.core.effects import Instant, Key, TenantId
from guard.core.holds import Hold, Rival
from twiceshy_contract.holds import HoldState

HOLD_CODES: Final[Mapping[HoldState, int]] = MappingProxyType(
    {"held": 1, "committed": 2, "released": 3, "lost": 4, "expired": 5}
)
HELD: Final = HOLD_CODES["held"]
COMMITTED: Final = HOLD_CODES["committed"]
LOST: Final = HOLD_CODES["lost"]
_STATES: Final = MappingProxyType({code: state for state, code in HOLD_CODES.items()})
_PLACE: Final = struct.Struct(">cq16s")
_MARK: Final = b"h"


class AfterHold(msgspec.Struct, frozen=True):
    """A page of holds ended with this one."""

    resource: str
    start: int
    id: UUID


def hold_of(row: Any) -> Hold:
    """Return the hold of a row of `holds`."""
    rival = None
    if row.rival is not None:
        rival = Rival(id=row.rival, holder=row.rival_holder, priority=row.rival_priority)
    return Hold(
        id=row.id,
        tenant=TenantId(row.tenant),
        resource=row.resource,
        start=Instant(row.starts_at),
        end=Instant(row.ends_at),
        priority=row.priority,
        state=_STATES[row.state],
        holder=row.holder,
        run=row.run,
        key=None if row.key is None else Key(row.key),
        placed_at=Instant(row.placed_at),
        expires_at=row.expires_at,
        ended_at=row.ended_at,
        rival=rival,
    )


def row_of(hold: Hold) -> dict[str, Any]:
    """Return the columns of a hold."""
    rival = hold.rival
    return {
        "id": hold.id,
        "tenant": hold.tenant,
        "resource": hold.resource,
        "starts_at": hold.start,
        "ends_at": hold.end,
        "priority": hold.priority,
        "state": HOLD_CODES[hold.state],
        "holder": hold.holder,
        "run": hold.run,
        "key": hold.key,
        "placed_at": hold.placed_at,
        "expires_at": hold.expires_at,
        "ended_at": hold.ended_at,
        "rival": None if rival is None else rival.id,
        "rival_holder": None if rival is None else rival.holder,
        "rival_priority": None if rival is None else rival.priority,
    }


def cursor_of(hold: Hold) -> str:
    """Return the cursor of the page that ends with a hold."""
    packed = _PLACE.pack(_MARK, hold.start, hold.id.bytes) + hold.resource.encode()
    return urlsafe_b64encode(packed).decode("ascii").rstrip("=")


def place_of(cursor: str) -> AfterHold:
    """Return the place of a cursor. Raises ValueError for one that `cursor_of` did not make."""
    try:
        raw = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        mark, start, id_ = _PLACE.unpack_from(raw)
        place = AfterHold(raw[_PLACE.size :].decode(), start, UUID(bytes=id_))
    except (ValueError, struct.error) as error:
        raise ValueError(f"{cursor!r} is not a cursor of this listing: take `next` of the page before.") from error
    if mark != _MARK:
        raise ValueError(f"{cursor!r} is not a cursor of holds: take `next` of the page of holds before.")
    return place
