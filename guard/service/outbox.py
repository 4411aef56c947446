"""The outbox as operators meet it: what waits and what was delivered is read, sent again, or taken back.

What a person sends again is done: a message that could not be rendered when it was staged is rendered now, or it is
said why it still cannot be. What is being sent, and what is over, cannot be taken back: that is said too.
"""

from typing import Final
from uuid import UUID

import msgspec

from guard.core.effects import Key, TenantId
from guard.core.outbox import RAW, Standing, render_anew
from guard.logs import logger
from guard.ports.outbox import MessageFilter, OutboxStore, Redrive
from guard.service.outcomes import Refused
from guard.service.staging import Source, Stagings
from twiceshy_contract.messages import Message
from twiceshy_contract.outbox import AttemptLine, CancelMessageRequest, RedriveRequest
from twiceshy_contract.refusals import Refusal

_PAGE: Final = 500
_TOLD: Final = 5
"""Of what is left, so many are told at the most."""
_NOT_YET: Final = "no more were to be sent at once, or another holds it: ask again"

_log = logger("guard.outbox")


class Found(msgspec.Struct, frozen=True):
    """A message as it stands, with its tries that failed."""

    standing: Standing
    tries: tuple[AttemptLine, ...]


class Redriven(msgspec.Struct, frozen=True):
    """How many messages are to be sent again, how many of those that were meant are left, and why the first of them."""

    count: int
    left: int = 0
    reasons: tuple[str, ...] = ()


class Operations:
    """Reading, sending again, taking back."""

    def __init__(self, store: OutboxStore, stagings: Stagings) -> None:
        self._store: Final = store
        self._stagings: Final = stagings

    async def page(self, tenant: TenantId, chosen: MessageFilter) -> tuple[list[Standing], str | None]:
        """List messages, newest first. Raises ValueError for a cursor that is not one."""
        return await self._store.page(tenant, chosen)

    async def get(self, tenant: TenantId, message: UUID) -> Found | None:
        """Read a message."""
        found = await self._store.get(tenant, message)
        return None if found is None else Found(found[0], tuple(found[1]))

    async def redrive(self, tenant: TenantId, request: RedriveRequest) -> Redriven | Refused:
        """Let messages be sent again. Raises StoreUnavailable, the outcome unknown."""
        wish = Redrive(
            anew=request.as_ == "anew", note=_note(f"sent again ({request.as_})", request.by, request.reason)
        )
        if request.id is not None:
            outcome = await self._one(tenant, request.id, wish)
        else:
            outcome = await self._all(tenant, request, wish)
        if isinstance(outcome, Redriven) and outcome.count:
            self._stagings.ring()
            _log.info("messages_redriven", count=outcome.count, by=request.by, anew=wish.anew)
        return outcome

    async def cancel(self, tenant: TenantId, message: UUID, request: CancelMessageRequest) -> Standing | Refused:
        """Take a message back that is not being sent. Raises StoreUnavailable."""
        moved = await self._store.cancel(tenant, message, _note("taken back", request.by, request.reason))
        if moved is None:
            return no_message(message)
        if moved.is_done or moved.standing.state == "cancelled":
            return moved.standing
        return _cannot(moved.standing, moved.why or "it can be taken back no more")

    async def _one(self, tenant: TenantId, message: UUID, wish: Redrive) -> Redriven | Refused:
        found = await self._store.get(tenant, message)
        if found is None:
            return no_message(message)
        if _is_unrendered(found[0]):
            return await self._rendered(tenant, found[0], wish)
        moved = await self._store.redrive(tenant, message, wish)
        if moved is None:
            return no_message(message)
        return Redriven(1) if moved.is_done else _cannot(moved.standing, moved.why or _why_not(moved.standing))

    async def _all(self, tenant: TenantId, request: RedriveRequest, wish: Redrive) -> Redriven:
        """Send all of a state again, and what was never rendered where it can be by now.

        That is rendered first, and stays parked: so all go in the order in which they were staged, as lanes promise.
        """
        state = request.state
        assert state is not None  # noqa: S101 - the request has an id or a state
        whys = await self._render_all(tenant, request, wish) if state == "parked" else {}
        moved = await self._store.redrive_all(tenant, state, request.destination, wish, request.limit)
        reasons = [
            whys.get(one.standing.message) or _cannot(one.standing, one.why or _NOT_YET).detail for one in moved.oldest
        ]
        return Redriven(moved.count, moved.left, tuple(reasons))

    async def _render_all(self, tenant: TenantId, request: RedriveRequest, wish: Redrive) -> dict[UUID, str]:
        """Render what can be by now, the oldest first; return why the first of the others cannot."""
        whys: dict[UUID, str] = {}
        count, after, is_more = 0, 0, True
        while is_more:
            page = await self._store.unrendered(tenant, request.destination, after, _PAGE)
            for standing in page[: request.limit - count]:
                outcome = await self._rendered(tenant, standing, wish, is_held=True)
                count += isinstance(outcome, Redriven)
                if isinstance(outcome, Refused) and len(whys) < _TOLD:
                    whys[standing.message] = outcome.detail
                after = standing.id
            is_more = len(page) == _PAGE and count < request.limit
        return whys

    async def _rendered(
        self, tenant: TenantId, standing: Standing, wish: Redrive, *, is_held: bool = False
    ) -> Redriven | Refused:
        """Render a message that was kept as it came, and put it in its own place, parked still where it `is_held`."""
        message = msgspec.json.decode(standing.body, type=Message)
        places = await self._stagings.places(tenant, [message.destination])
        place = places.get(message.destination)
        if place is None:
            return _still_cannot(standing, f"no destination is named {message.destination!r}")
        source = Source(tenant=tenant, key=Key(standing.effect or b""), run=standing.run, is_known=True)
        sender = await self._stagings.sender(source, [message], places)
        try:
            rows = render_anew(standing, place, source.key, sender)
        except Refusal as refusal:
            return _still_cannot(standing, refusal.reason)
        match await self._store.replace(tenant, standing.message, rows, wish, is_held=is_held):
            case "replaced":
                return Redriven(1)
            case "gone":
                return _cannot(standing, "it has moved on meanwhile: read it again")
            case "taken_back":
                return _cannot(standing, "its effect was taken back: send it `anew`, if the world should have it still")


def _is_unrendered(standing: Standing) -> bool:
    return standing.state == "parked" and standing.content_type == RAW


def _note(what: str, by: str | None, reason: str) -> str:
    whose = "" if by is None else f" by {by}"
    return f"{what}{whose}: {reason}"


def _why_not(standing: Standing) -> str:
    if standing.state in ("pending", "claimed", "sending"):
        return "it waits to be sent, or is being sent, anyway"
    return "it is over: it can only be sent `anew`, as a second effect"


def _cannot(standing: Standing, why: str) -> Refused:
    detail = f"Message {standing.message} to {standing.destination} is {standing.state}: {why}."
    return Refused(code="message-state", detail=detail)


def _still_cannot(standing: Standing, why: str) -> Refused:
    return Refused(
        code="message-state",
        detail=f"Message {standing.message} to {standing.destination} could not be rendered when it was staged, and "
        f"still cannot be: {why}.",
    )


def no_message(message: UUID) -> Refused:
    """Say that there is no message of an id."""
    return Refused(code="not-found", detail=f"There is no message {message}; history is kept for a time only.")
