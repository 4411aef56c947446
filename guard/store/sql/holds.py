"""Holds: whoever places one sees every other of its resource, and what became of the effects that they belong to.

On PostgreSQL the rows that are met are locked before the effects are read. A grant that demands a hold shares its lock,
so either the taker sees the lease, or the grant sees that its hold is gone. Those who want one resource come one after
the other. On SQLite nobody else writes meanwhile.
"""

from collections.abc import Callable, Sequence
from typing import Final
from uuid import UUID

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import SECOND, Duration, Effect, Instant, Key, TenantId
from guard.core.holds import (
    PROMISE,
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
from guard.ports.holds import Altered, Different, HoldFilter, HoldPage, Occupied, Placed, Placement, Standing
from guard.store.sql.clock import database_now
from guard.store.sql.database import Database
from guard.store.sql.faults import Contended
from guard.store.sql.hold_pages import Wanted, chosen_holds, is_held, select_outdated, select_page
from guard.store.sql.hold_rows import COMMITTED, HELD, LOST, hold_of, place_of, row_of
from guard.store.sql.policy_tables import holds
from guard.store.sql.rows import effect_of
from guard.store.sql.tables import effects

_LOOK_AGAIN: Final = Duration(60 * SECOND)
"""After how long a sweep looks again at the hold of an effect that goes on."""


class SqlHolds:
    """The port's holds over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def place(self, wish: Wish) -> Placement:
        """Place a hold unless one stands in its way; take over what gives way to it, in the same transaction."""
        return await self._database.write(lambda connection, at: _place(connection, at, wish))

    async def change(
        self, tenant: TenantId, hold: UUID, rule: Callable[[Claim, Instant], Changed | Barred]
    ) -> Altered | None:
        """Change a hold by a rule; None: there is none."""

        def work(connection: Connection, at: Instant) -> Altered | None:
            for claim in _met(connection, at, holds.c.tenant == tenant, holds.c.id == hold):
                result = rule(claim, at)
                if isinstance(result, Changed) and result.hold != claim.hold:
                    _update(connection, result.hold)
                return Altered(result=result, at=at)
            return None

        return await self._database.write(work)

    async def get(self, tenant: TenantId, hold: UUID) -> Standing | None:
        """Find a hold."""

        def work(connection: Connection, at: Instant) -> Standing | None:
            met = _met(connection, at, holds.c.tenant == tenant, holds.c.id == hold)
            return Standing(hold=met[0].hold, at=at) if met else None

        return await self._database.write(work)

    async def of_effect(self, key: Key) -> Hold | None:
        """Find the newest hold of an effect, as it was written last."""
        return await self._database.read(lambda connection: _select_newest(connection, key))

    async def settle(self, key: Key) -> None:
        """Write down what the outcome of an effect means to its hold."""
        await self._database.write(lambda connection, at: _settle(connection, at, key))

    async def give_back(self, key: Key) -> None:
        """Release the committed hold of an effect that was taken back."""

        def work(connection: Connection, at: Instant) -> None:
            for claim in _met(connection, at, holds.c.key == key):
                if claim.hold.state == "committed":
                    _update(connection, ended(claim.hold, "released", at))

        await self._database.write(work)

    async def sweep(self, limit: int) -> int:
        """Settle holds whose time has run out; return how many there were."""
        ids = await self._database.read(lambda connection: _select_run_out(connection, limit))

        def work(connection: Connection, at: Instant) -> None:
            for claim in _met(connection, at, holds.c.id.in_(ids)):
                if claim.hold.state == "held":
                    _update(connection, replace(claim.hold, expires_at=Instant(at + _LOOK_AGAIN)))

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
        claims = _met(connection, at, holds.c.id.in_(self._ids))
        return any(claim.hold.state != "held" for claim in claims)


def _place(connection: Connection, at: Instant, wish: Wish) -> Placement:
    _lock_resource(connection, wish)
    known = _met(connection, at, holds.c.id == wish.id)
    if known:
        hold = known[0].hold
        names = wish.differing(hold)
        return Different(hold=hold, at=at, names=names) if names else Placed(hold=hold, at=at, is_new=False)
    own = None if wish.key is None else _own(connection, at, wish, wish.key)
    if isinstance(own, Placed):
        return own
    overlapping = [claim for claim in _met(connection, at, *_overlap(wish, HELD, COMMITTED)) if claim.hold.is_live]
    yielded = _select_yielded(connection, at, wish)
    promised = [claim for hold in yielded if (claim := promise(hold)) and is_kept_for_another(claim, wish, at)]
    verdict = contest(wish, [*overlapping, *promised], at)
    if isinstance(verdict, Blocked):
        for hold in verdict.asked:
            _update(connection, replace(hold, rival=rival_of(wish)))
        return Occupied(by=verdict.by, at=at, retry_after=verdict.retry_after, lost=own)
    for hold in verdict.taken:
        _update(connection, taken(hold, wish, at))
    for hold in yielded:
        _update(connection, replace(hold, rival=rival_of(wish)))
    placed = wish.placed(at)
    _insert(connection, placed)
    return Placed(hold=placed, at=at, is_new=True, taken=verdict.taken)


def _own(connection: Connection, at: Instant, wish: Wish, key: Key) -> Placed | Hold | None:
    """Renew the hold that the effect has; one for another resource or time is given up. Else return what it lost."""
    claims = _met(connection, at, holds.c.key == key)
    for claim in claims:
        hold = claim.hold
        if hold.is_live and (hold.resource, hold.start, hold.end) == (wish.resource, wish.start, wish.end):
            renewed = wish.renewed(hold, at) if hold.state == "held" else hold
            _update(connection, renewed)
            return Placed(hold=renewed, at=at, is_new=False)
        if hold.is_live and not claim.is_acting(at):
            _update(connection, ended(hold, "released", at))
    lost = [claim.hold for claim in claims if claim.hold.state == "lost"]
    return max(lost, key=lambda hold: hold.placed_at, default=None)


def _settle(connection: Connection, at: Instant, key: Key) -> None:
    """Write down the outcome; proof that came after the hold was given up claims the time again, if it is free."""
    newest = _select_newest(connection, key)
    if newest is None:
        return
    _lock_resource(connection, newest)
    claims = _met(connection, at, holds.c.key == key)
    claim = max(claims, key=lambda claim: claim.hold.placed_at)
    if claim.is_proven_late and not any(other.hold.is_live for other in claims):
        others = _met(connection, at, *_overlap(claim.hold, HELD, COMMITTED))
        if not any(other.hold.is_live for other in others):
            _update(connection, replace(claim.hold, state="committed", expires_at=None, ended_at=None, rival=None))


def _overlap(wish: Wish | Hold, *states: int) -> tuple[sa.ColumnElement[bool], ...]:
    """Say that a row, in one of these states, is about a moment of the wish's resource that the wish claims."""
    return (
        holds.c.tenant == wish.tenant,
        holds.c.resource == wish.resource,
        holds.c.starts_at < wish.end,
        holds.c.ends_at > wish.start,
        holds.c.state.in_(states),
    )


def _met(connection: Connection, at: Instant, *wanted: sa.ColumnElement[bool]) -> list[Claim]:
    """Lock the holds, read the effects that they belong to, and write down what has become of each."""
    found = _select_locked(connection, wanted)
    of_key = _select_effects(connection, [hold.key for hold in found if hold.key is not None])
    claims = []
    for hold in found:
        effect = None if hold.key is None else of_key.get(hold.key)
        claim = Claim(hold=hold)
        if effect is not None:
            claim = Claim(hold=hold, life=effect.life, slot=effect.intent.slot)
        claims.append(claim.at(at))
        if claims[-1] is not claim:
            _update(connection, claims[-1].hold)
    return claims


def _lock_resource(connection: Connection, wish: Wish | Hold) -> None:
    """Let those who want one resource come one after the other; on SQLite they do anyway."""
    if connection.dialect.name == "postgresql":
        lock = sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(wish.resource, wish.tenant))
        connection.execute(sa.select(lock))


def _select_locked(connection: Connection, wanted: Wanted) -> list[Hold]:
    """Select holds, and lock them."""
    statement = sa.select(holds).where(*wanted).order_by(holds.c.id).with_for_update()
    return [hold_of(row) for row in connection.execute(statement)]


def _select_effects(connection: Connection, keys: Sequence[Key]) -> dict[Key, Effect]:
    """Select effects without their earlier attempts, in a statement of its own: it sees what committed meanwhile."""
    if not keys:
        return {}
    found = (effect_of(row) for row in connection.execute(sa.select(effects).where(effects.c.key.in_(keys))))
    return {effect.intent.key: effect for effect in found}


def _select_yielded(connection: Connection, at: Instant, wish: Wish) -> list[Hold]:
    """Select the holds that lately gave way to somebody who has not come for the time yet."""
    other = holds.alias()
    has_come = sa.exists().where(other.c.id == holds.c.rival)
    wanted = (*_overlap(wish, LOST), holds.c.ended_at > at - PROMISE, ~has_come)
    return [hold_of(row) for row in connection.execute(sa.select(holds).where(*wanted))]


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


def _update(connection: Connection, hold: Hold) -> None:
    """Write the hold as it stands now."""
    connection.execute(sa.update(holds).where(holds.c.id == hold.id).values(row_of(hold)))
