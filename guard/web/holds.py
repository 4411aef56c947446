"""Holds on the wire."""

from guard.core.effects import Instant
from guard.core.holds import Hold, Rival
from guard.web.instants import rfc3339, rfc3339_or_none
from guard.web.wire import wire_key
from twiceshy_contract.holds import HoldRef, HoldView, RivalView


def hold_ref(hold: Hold) -> HoldRef:
    """Return a hold as one that stands in the way."""
    return HoldRef(
        id=hold.id,
        resource=hold.resource,
        start=rfc3339(hold.start),
        end=rfc3339(hold.end),
        holder=hold.holder,
        priority=hold.priority,
        state=hold.state,
    )


def hold_view(hold: Hold, at: Instant) -> HoldView:
    """Return a hold as it stands."""
    rival = None if hold.rival is None else _rival(hold.rival)
    return HoldView(
        id=hold.id,
        resource=hold.resource,
        start=rfc3339(hold.start),
        end=rfc3339(hold.end),
        holder=hold.holder,
        priority=hold.priority,
        state=hold.state,
        as_of=rfc3339(at),
        run=hold.run,
        key=None if hold.key is None else wire_key(hold.key),
        placed_at=rfc3339(hold.placed_at),
        expires_at=rfc3339_or_none(hold.expires_at),
        ended_at=rfc3339_or_none(hold.ended_at),
        lost_to=rival if hold.state == "lost" else None,
        wanted_by=rival if hold.state == "held" else None,
    )


def _rival(rival: Rival) -> RivalView:
    return RivalView(id=rival.id, holder=rival.holder, priority=rival.priority)
