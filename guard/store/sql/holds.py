"""Holds: whoever places one sees every other of its resource, and what became of the effects that they belong to.

On PostgreSQL the rows that are met are locked before the effects are read. A grant that demands a hold shares its lock,
so either the taker sees the lease, or the grant sees that its hold is gone. Those who want one resource come one after
the other: in one process they queue before they take a connection. On SQLite nobody else writes meanwhile.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import SECOND, Duration, Instant, Key, TenantId
from guard.core.holds import (
    Barred,
    Blocked,
    Changed,
    Claim,
    Hold,
    Wish,
    contest,
    ended,
    is_kept_for_another,
    promise,
    rival_of,
    taken,
)
from guard.ports.holds import Altered, Different, Foreign, HoldFilter, HoldPage, Occupied, Placed, Placement, Standing
from guard.store.sql.clock import database_now
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.hold_claims import claims_any_of, met, overlaps, select_yielded, update_hold
from guard.store.sql.hold_pages import Wanted, chosen_holds, is_held, select_outdated, select_page
from guard.store.sql.hold_rows import hold_of, place_of, row_of
from guard.store.sql.policy_tables import holds
from guard.store.sql.turns import Turns

_LOOK_AGAIN: Final = Duration(60 * SECOND)
"""After how long a sweep looks again at the hold of an effect that goes on."""
_AT_ONCE: Final = 4
"""How many resources are being claimed at once: those who wait for other processes leave connections to the rest."""
_TURN_SECONDS: Final = 5.0


class SqlHolds:
    """The port's holds over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database
        self._turns = Turns(_AT_ONCE, _TURN_SECONDS)

    async def place(self, wish: Wish) -> Placement:
        """Place a hold unless one stands in its way; take over what gives way to it, in the same transaction."""
        async with self._turns.of((wish.tenant, wish.resource), f"{wish.resource!r}"):
            return await self._database.write(lambda connection, at: _place(connection, at, wish))

    async def change(
        self, tenant: TenantId, hold: UUID, rule: Callable[[Claim, Instant], Changed | Barred]
    ) -> Altered | None:
        """Change a hold by a rule; None: there is none."""

        def work(connection: Connection, at: Instant) -> Altered | None:
            for claim in met(connection, at, holds.c.tenant == tenant, holds.c.id == hold):
                result = rule(claim, at)
                if isinstance(result, Changed) and result.hold != claim.hold:
                    update_hold(connection, result.hold)
                return Altered(result=result, at=at)
            return None

        return await self._database.write(work)

    async def get(self, tenant: TenantId, hold: UUID) -> Standing | None:
        """Find a hold."""

        def work(connection: Connection, at: Instant) -> Standing | None:
            claims = met(connection, at, holds.c.tenant == tenant, holds.c.id == hold)
            return Standing(hold=claims[0].hold, at=at) if claims else None

        return await self._database.write(work)

    async def of_effect(self, key: Key) -> Hold | None:
        """Find the newest hold of an effect, as it was written last."""
        return await self._database.read(lambda connection: _select_newest(connection, key))

    async def settle(self, key: Key) -> None:
        """Write down what the outcome of an effect means to its hold."""
        hold = await self.of_effect(key)
        if hold is not None:
            async with self._turns.of((hold.tenant, hold.resource), f"{hold.resource!r}"):
                await self._database.write(lambda connection, at: _settle(connection, at, hold, key))

    async def give_back(self, key: Key) -> None:
        """Release the committed hold of an effect that was taken back."""

        def work(connection: Connection, at: Instant) -> None:
            for claim in met(connection, at, holds.c.key == key):
                if claim.hold.state == "committed":
                    update_hold(connection, ended(claim.hold, "released", at))

        await self._database.write(work)

    async def sweep(self, limit: int) -> int:
        """Settle holds whose time has run out; return how many there were."""
        ids = await self._database.read(lambda connection: _select_run_out(connection, limit))

        def work(connection: Connection, at: Instant) -> None:
            has_run_out = (is_held(), holds.c.expires_at <= at)  # still: it may have been renewed meanwhile
            for claim in met(connection, at, holds.c.id.in_(ids), *has_run_out):
                if claim.hold.state == "held":
                    update_hold(connection, claim.looked_at(at, _LOOK_AGAIN))

        if ids:
            await self._database.write(work)
        return len(ids)

    async def page(self, tenant: TenantId, chosen: HoldFilter) -> HoldPage:
        """Return holds by resource, start and id. Raises ValueError for a foreign cursor."""
        after = None if chosen.after is None else place_of(chosen.after)
        wanted = chosen_holds(tenant, chosen)
        await self._bring_up_to_date(wanted)
        return await self._database.read_at_once(lambda connection: select_page(connection, wanted, chosen, after))

    async def _bring_up_to_date(self, wanted: Wanted) -> None:
        """Write down what has become of the holds that a listing is to show."""
        settled = True
        while settled:
            ids = await self._database.read(lambda connection: select_outdated(connection, wanted))
            settled = bool(ids) and await self._database.write(_Settling(ids))


class _Settling:
    """Settles holds; says whether any of them claims nothing tentative any more."""

    def __init__(self, ids: Sequence[UUID]) -> None:
        self._ids = ids

    def __call__(self, connection: Connection, at: Instant) -> bool:
        claims = met(connection, at, holds.c.id.in_(self._ids))
        return any(claim.hold.state != "held" for claim in claims)


def _place(connection: Connection, at: Instant, wish: Wish) -> Placement:
    _lock_resource(connection, wish)
    claims = met(connection, at, claims_any_of(connection, wish))
    known = next((claim.hold for claim in claims if claim.hold.id == wish.id), None)
    if known is not None:
        return _found(known, wish, at)
    is_own = [wish.key is not None and claim.hold.key == wish.key for claim in claims]
    own = _own(connection, at, wish, [claim for claim, is_mine in zip(claims, is_own, strict=True) if is_mine])
    if isinstance(own, Placed):
        return own
    others = [claim for claim, is_mine in zip(claims, is_own, strict=True) if not is_mine or claim.is_acting(at)]
    overlapping = [claim for claim in others if overlaps(claim.hold, wish)]
    yielded = select_yielded(connection, at, wish)
    promised = [claim for hold in yielded if (claim := promise(hold)) and is_kept_for_another(claim, wish, at)]
    verdict = contest(wish, [*overlapping, *promised], at)
    if isinstance(verdict, Blocked):
        for hold in verdict.asked:
            update_hold(connection, replace(hold, rival=rival_of(wish)))
        return Occupied(by=verdict.by, at=at, retry_after=verdict.retry_after, lost=own)
    for hold in verdict.taken:
        update_hold(connection, taken(hold, wish, at))
    for hold in yielded:
        update_hold(connection, replace(hold, rival=rival_of(wish)))
    placed = wish.placed(at)
    _insert(connection, placed)
    return Placed(hold=placed, at=at, is_new=True, taken=verdict.taken)


def _found(known: Hold, wish: Wish, at: Instant) -> Placed | Different | Foreign:
    """Say what a wish hears whose id is that of a hold."""
    if known.tenant != wish.tenant:
        return Foreign(at=at)
    names = wish.differing(known)
    return Different(hold=known, at=at, names=names) if names else Placed(hold=known, at=at, is_new=False)


def _own(connection: Connection, at: Instant, wish: Wish, claims: Iterable[Claim]) -> Placed | Hold | None:
    """Renew the hold that the effect has; one for another resource or time is given up. Else return what it lost."""
    lost = []
    for claim in claims:
        hold = claim.hold
        if hold.is_live and (hold.resource, hold.start, hold.end) == (wish.resource, wish.start, wish.end):
            renewed = wish.renewed(hold, at) if hold.state == "held" else hold
            update_hold(connection, renewed)
            return Placed(hold=renewed, at=at, is_new=False)
        if hold.is_live and not claim.is_acting(at):
            update_hold(connection, ended(hold, "released", at))
        if hold.state == "lost":
            lost.append(hold)
    return max(lost, key=lambda hold: hold.placed_at, default=None)


def _settle(connection: Connection, at: Instant, seen: Hold, key: Key) -> None:
    """Write down the outcome; proof that came after the hold was given up claims the time again, if it is free."""
    _lock_resource(connection, seen)
    claims = met(connection, at, claims_any_of(connection, seen))
    own = [claim for claim in claims if claim.hold.key == key]
    claim = max(own, key=lambda claim: claim.hold.placed_at, default=None)
    if claim is None:
        return  # it ended long ago, and its record with it
    if claim.hold.id != seen.id:
        raise Contended("The effect was given another hold at the same moment.")
    is_free = not any(other.hold.is_live for other in own) and not any(overlaps(each.hold, seen) for each in claims)
    if claim.is_proven_late and is_free:
        update_hold(connection, replace(claim.hold, state="committed", expires_at=None, ended_at=None, rival=None))


def _lock_resource(connection: Connection, wish: Wish | Hold) -> None:
    """Let those who want one resource come one after the other; on SQLite they do anyway."""
    if connection.dialect.name == "postgresql":
        lock = sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(f"resource {wish.resource}", wish.tenant))
        connection.execute(sa.select(lock))


def _select_newest(connection: Connection, key: Key) -> Hold | None:
    """Select the hold that an effect had last."""
    statement = sa.select(holds).where(holds.c.key == key).order_by(holds.c.placed_at.desc()).limit(1)
    row = connection.execute(statement).one_or_none()
    return None if row is None else hold_of(row)


def _select_run_out(connection: Connection, limit: int) -> list[UUID]:
    """Select the holds whose time has run out, longest first."""
    statement = (
        sa.select(holds.c.id)
        .where(is_held(), holds.c.expires_at <= database_now())
        .order_by(holds.c.expires_at)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def _insert(connection: Connection, hold: Hold) -> None:
    """Make the hold. Raises Contended where one of its id was made elsewhere at the same moment."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    made = connection.execute(dialect.insert(holds).values(row_of(hold)).on_conflict_do_nothing())
    if made.rowcount == 0:
        raise Contended("A hold of the same id, or for the same time, was made at the same moment.")
