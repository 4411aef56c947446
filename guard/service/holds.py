"""Holds as people and agents ask for them, and what they hear; and the loops that keep them true to their effects."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, assert_never
from uuid import UUID

import msgspec

from guard.core.effects import SECOND, Duration, Effect, Instant, Key, TenantId, instant, seconds
from guard.core.holds import Barred, Changed, Claim, Hold, HoldVerb, Wish, change
from guard.logs import logger
from guard.ports.holds import Altered, Different, Foreign, HoldFilter, HoldPage, HoldStore, Occupied, Placed, Standing
from guard.ports.store import StatementFailed, StoreUnavailable
from guard.service.outcomes import Refused
from guard.service.recent import Recent
from twiceshy_contract.holds import ChangeHoldRequest, PlaceHoldRequest, RenewHoldRequest
from twiceshy_contract.refusals import Refusal

SWEEP_SECONDS: Final = 5.0
SWEEP_BATCH: Final = 500
MAX_BOUND: Final = 100_000
"""Effects with a hold whose end this process listens for; what it forgets, the sweep settles."""
_NO_TIME: Final = Duration(0)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_log = logger("guard.holds")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The hold as it stands at the database's time `at`; `is_new` where it was placed now."""

    hold: Hold
    at: Instant
    is_new: bool = False


HoldOutcome = Kept | Refused


class Holds:
    """Placing, committing, renewing, releasing and reading holds."""

    def __init__(self, store: HoldStore) -> None:
        self._store = store
        self._bound: Recent[Key, UUID] = Recent(MAX_BOUND)
        self._settling: set[asyncio.Task[None]] = set()

    async def place(self, tenant: TenantId, request: PlaceHoldRequest) -> HoldOutcome:
        """Place a hold. Raises Refusal for an interval that is none, StoreUnavailable."""
        start, end = _interval(request)
        wish = Wish(
            id=request.id,
            tenant=tenant,
            resource=request.resource,
            start=start,
            end=end,
            priority=request.priority,
            holder=request.holder,
            run=request.run,
            lasts=seconds(request.hold_seconds),
        )
        placed = await self._store.place(wish)
        match placed:
            case Placed(hold=hold):
                return Kept(hold=hold, at=placed.at, is_new=placed.is_new) if hold.is_live else gone(hold)
            case Occupied():
                return occupied(wish, placed)
            case Different():
                return _different(placed)
            case Foreign():
                return _foreign(wish)
        assert_never(placed)

    async def commit(self, tenant: TenantId, hold: UUID, request: ChangeHoldRequest) -> HoldOutcome:
        """Keep a hold for good: no priority takes it over any more."""
        return await self._change(tenant, hold, "commit", request.holder)

    async def release(self, tenant: TenantId, hold: UUID, request: ChangeHoldRequest) -> HoldOutcome:
        """Give the resource back, committed or not."""
        return await self._change(tenant, hold, "release", request.holder)

    async def renew(self, tenant: TenantId, hold: UUID, request: RenewHoldRequest) -> HoldOutcome:
        """Keep a hold that is not committed from lapsing."""
        return await self._change(tenant, hold, "renew", request.holder, seconds(request.hold_seconds))

    async def get(self, tenant: TenantId, hold: UUID) -> Standing | None:
        """Find a hold."""
        return await self._store.get(tenant, hold)

    async def page(self, tenant: TenantId, chosen: HoldFilter) -> HoldPage:
        """List holds. Raises ValueError for a foreign cursor."""
        return await self._store.page(tenant, chosen)

    async def claim(self, wish: Wish) -> Placed | Occupied:
        """Place the hold of an effect, or find the one that it has; listen for the effect's end."""
        placed = await self._store.place(wish)
        if isinstance(placed, Different | Foreign):
            raise LookupError(f"the random id {wish.id} is that of another hold")
        if isinstance(placed, Placed) and wish.key is not None:
            self._bound.keep(wish.key, wish.id)
        return placed

    async def wanted(self, key: Key) -> Hold | None:
        """Return the hold of an effect if a higher priority asks for it."""
        hold = await self._store.of_effect(key)
        return hold if hold is not None and hold.state == "held" and hold.rival is not None else None

    async def give_back(self, key: Key) -> None:
        """Release the committed hold of an effect that was taken back."""
        await self._store.give_back(key)

    def written(self, effect: Effect) -> None:
        """Settle the hold of an effect of this process once its lease has ended."""
        if effect.life.state not in ("executing", "in_doubt") and self._bound.get(effect.intent.key) is not None:
            task = asyncio.create_task(self._settle(effect.intent.key))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def run(self) -> None:
        """Sweep for ever; a database that is away is tried again."""
        while True:
            swept = 0
            try:
                swept = await self.run_once()
            except StoreUnavailable as error:
                _log.warning("hold_sweep_postponed", reason=str(error))
            except Exception:  # noqa: BLE001  a sweep that ends would leave every later hold standing
                _log.error("hold_sweep_failed", exc_info=True)
            if swept < SWEEP_BATCH:
                await asyncio.sleep(SWEEP_SECONDS)

    async def run_once(self) -> int:
        """Settle one batch of holds whose time has run out; return how many there were."""
        return await self._store.sweep(SWEEP_BATCH)

    async def close(self) -> None:
        """Let what is being settled come to its end."""
        await asyncio.gather(*self._settling, return_exceptions=True)

    async def _settle(self, key: Key) -> None:
        try:
            await self._store.settle(key)
        except (StoreUnavailable, StatementFailed) as error:
            _log.warning("hold_not_settled", key=key.hex(), reason=str(error))

    async def _change(
        self, tenant: TenantId, hold: UUID, verb: HoldVerb, holder: str, lasts: Duration = _NO_TIME
    ) -> HoldOutcome:
        altered = await self._store.change(tenant, hold, partial(_rule, verb, holder, lasts))
        if altered is None:
            return Refused(code="not-found", detail=f"There is no hold {hold}.")
        return _answer(altered, verb)


def _rule(verb: HoldVerb, holder: str, lasts: Duration, claim: Claim, at: Instant) -> Changed | Barred:
    return change(claim, verb, holder, lasts, at)


def _interval(request: PlaceHoldRequest) -> tuple[Instant, Instant]:
    """Return the interval in the database's measure. Raises Refusal with the place."""
    if (request.end is None) == (request.minutes is None):
        raise Refusal("say either `end` or `minutes`", ("end",))
    where = "minutes" if request.end is None else "end"
    try:
        start = request.start.astimezone(UTC)
        end = start + timedelta(minutes=request.minutes or 0) if request.end is None else request.end.astimezone(UTC)
    except OverflowError as error:
        raise Refusal("this lies outside of the years 1 to 9999", ("start" if where == "end" else where,)) from error
    if end <= start:
        raise Refusal("it does not lie after the start: what is claimed has a length", (where,))
    return instant(start), instant(end)


def _answer(altered: Altered, verb: HoldVerb) -> HoldOutcome:
    result = altered.result
    match result:
        case Changed(hold=hold):
            return Kept(hold=hold, at=altered.at)
        case Barred(why="gone", hold=hold):
            return gone(hold)
        case Barred(why="other_holder", hold=hold):
            return Refused(code="forbidden", detail=f"The hold is not yours to {verb}: {words(hold)}.", hold=hold)
        case Barred(why="of_an_effect", hold=hold):
            key = "" if hold.key is None else hold.key.hex()
            return Refused(
                code="not-possible", detail=f"The hold belongs to effect {key}, whose outcome decides it.", hold=hold
            )
        case Barred(hold=hold):
            key = "" if hold.key is None else hold.key.hex()
            return Refused(
                code="not-possible",
                detail=f"The hold cannot be released: effect {key} is under way or in doubt and may be acting on "
                f"{hold.resource!r}. Settle the effect, then the hold is free.",
                hold=hold,
            )
    assert_never(result)


def occupied(wish: Wish, found: Occupied) -> Refused:
    """Say who has the resource."""
    by = found.by.hold
    is_yielding = by.state == "held" and by.priority < wish.priority
    asked = " It is asked to give way, and does so once nothing of it is under way." if is_yielding else ""
    return Refused(
        code="resource-held",
        detail=f"{words(by)}, which overlaps {_when(wish.start, wish.end)}.{asked}",
        retry_after=None if found.retry_after is None else max(found.retry_after, 0) / SECOND,
        hold=by,
    )


def wanted(hold: Hold, effect: Effect) -> Refused:
    """Tell an attempt that a higher priority asks for its hold."""
    asks = "" if hold.rival is None else f"{hold.rival.holder} asks for it with priority {hold.rival.priority}"
    return Refused(
        code="hold-lost",
        detail=f"The hold of {hold.resource!r}, {_when(hold.start, hold.end)}, is wanted: {asks}. Give way if nothing "
        "has been sent, and report `not_applied`; what has been sent is to be reported as it is.",
        effect=effect,
        hold=hold,
    )


def gone(hold: Hold) -> Refused:
    """Say what became of a hold that claims nothing any more."""
    what = f"The hold {hold.id} on {hold.resource!r}, {_when(hold.start, hold.end)},"
    if hold.state == "lost" and hold.rival is not None:
        rival = hold.rival
        why = f"was taken over by {rival.holder} with priority {rival.priority} (hold {rival.id})"
    else:
        why = "has run out" if hold.state == "expired" else "was released"
    return Refused(code="hold-lost", detail=f"{what} {why}.", hold=hold)


def words(hold: Hold) -> str:
    """Name a hold to a person."""
    state = "has booked" if hold.state == "committed" else "holds"
    return (
        f"{hold.holder} {state} {hold.resource!r} {_when(hold.start, hold.end)} with priority {hold.priority} "
        f"(hold {hold.id})"
    )


def _when(start: Instant, end: Instant) -> str:
    return f"from {_moment(start)} to {_moment(end)}"


def _moment(at: Instant) -> str:
    return (_EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def _different(found: Different) -> Refused:
    paths = tuple(f"/{name}" for name in found.names)
    return Refused(
        code="hold-differs",
        detail=f"The hold {found.hold.id} was placed before by {found.hold.holder}; this request differs from that at "
        f"{', '.join(paths)}. Say there what was said then, or draw a new id for another hold.",
        paths=paths,
        hold=found.hold,
    )


def _foreign(wish: Wish) -> Refused:
    return Refused(
        code="not-found", detail=f"There is no hold {wish.id} of yours, and the id is taken. Draw a new one at random."
    )
