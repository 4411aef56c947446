"""Holds with what became of the effects that they belong to, and where the rows of a resource are found.

Whoever locks several holds locks them in the order of their ids, in one statement; so do the grants that demand them.
"""

from collections.abc import Iterable, Sequence

import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from guard.core.approvals import Approval
from guard.core.effects import Duration, Effect, Instant, Key, TenantId
from guard.core.holds import PROMISE, Claim, Hold, Wish, asked_until
from guard.core.lease import SETTLE
from guard.store.sql.approval_rows import approval_of
from guard.store.sql.hold_pages import Wanted
from guard.store.sql.hold_rows import hold_of, row_of
from guard.store.sql.policy_tables import approvals, holds
from guard.store.sql.rows import effect_of
from guard.store.sql.tables import effects
from guard.store.sql.tools import select_held


def met(connection: Connection, at: Instant, *wanted: sa.ColumnElement[bool]) -> list[Claim]:
    """Lock the holds, read the effects that they belong to, and write down what has become of each."""
    found = _select_locked(connection, wanted)
    of_key = _select_effects(connection, [hold.key for hold in found if hold.key is not None])
    asked = _select_asked(connection, [key for key, effect in of_key.items() if effect.life.state == "pending"])
    settles = _select_settles(connection, of_key.values())
    claims = []
    for hold in found:
        claim = _claim(hold, of_key, asked, settles, at)
        claims.append(claim.at(at))
        if claims[-1] is not claim:
            update_hold(connection, claims[-1].hold)
    return claims


def _claim(
    hold: Hold, of_key: dict[Key, Effect], asked: dict[Key, Approval], settles: dict[Key, Duration], at: Instant
) -> Claim:
    effect = None if hold.key is None else of_key.get(hold.key)
    if effect is None:
        return Claim(hold=hold)
    settle = settles.get(effect.intent.key, SETTLE)
    claim = Claim(hold=hold, life=effect.life, slot=effect.intent.slot, settle=settle)
    approval = asked.get(effect.intent.key)
    if approval is None:
        return claim
    until = asked_until(approval.state_at(at), approval.expires_at, approval.decided_at)
    return replace(claim, asked_until=until)


def claims_any_of(connection: Connection, wish: Wish | Hold) -> sa.ColumnElement[bool]:
    """Say that a hold is that of the wish, of its effect, or claims a moment of its resource that the wish claims."""
    own = [sa.select(holds.c.id).where(holds.c.id == wish.id)]
    if wish.key is not None:
        own.append(sa.select(holds.c.id).where(holds.c.key == wish.key))
    overlapping = sa.select(holds.c.id).where(*_of_resource(wish), _overlaps(connection, wish), _is_claiming())
    ids = sa.union(*own, overlapping)
    if connection.dialect.name == "postgresql":  # as an array it is found first; as a set the table might be scanned
        return holds.c.id == sa.any_(sa.func.array(ids.scalar_subquery(), type_=sa.ARRAY(holds.c.id.type)))
    return holds.c.id.in_(ids)


def overlaps(hold: Hold, wish: Wish | Hold) -> bool:
    """Say whether a hold claims a moment of the wish's resource that the wish claims."""
    is_same = (hold.tenant, hold.resource) == (wish.tenant, wish.resource)
    return hold.is_live and is_same and hold.start < wish.end and wish.start < hold.end


def select_yielded(connection: Connection, at: Instant, wish: Wish) -> list[Hold]:
    """Select the holds that lately gave way to somebody who has not come for the time yet."""
    other = holds.alias()
    has_come = sa.exists().where(other.c.id == holds.c.rival)
    is_about = (holds.c.starts_at < wish.end, holds.c.ends_at > wish.start)
    wanted = (*_of_resource(wish), _is_lost(), holds.c.ended_at > at - PROMISE, *is_about, ~has_come)
    return [hold_of(row) for row in connection.execute(sa.select(holds).where(*wanted))]


def update_hold(connection: Connection, hold: Hold) -> None:
    """Write the hold as it stands now."""
    connection.execute(sa.update(holds).where(holds.c.id == hold.id).values(row_of(hold)))


def _of_resource(wish: Wish | Hold) -> Wanted:
    return (holds.c.tenant == wish.tenant, holds.c.resource == wish.resource)


def _overlaps(connection: Connection, wish: Wish | Hold) -> sa.ColumnElement[bool]:
    """Say it as the index of the database can answer it."""
    if connection.dialect.name == "postgresql":
        kind = postgresql.INT8RANGE()
        claimed = sa.func.int8range(holds.c.starts_at, holds.c.ends_at, type_=kind)
        return claimed.bool_op("&&")(sa.func.int8range(wish.start, wish.end, type_=kind))
    return (holds.c.starts_at < wish.end) & (holds.c.ends_at > wish.start)


def _is_claiming() -> sa.ColumnElement[bool]:
    """Say that a hold is written as held or committed, in the text of the partial indexes."""
    return holds.c.state.in_([sa.literal_column("1", sa.SmallInteger), sa.literal_column("2", sa.SmallInteger)])


def _is_lost() -> sa.ColumnElement[bool]:
    """Say that a hold is written as lost, in the text of the partial index."""
    return holds.c.state == sa.literal_column("4", sa.SmallInteger)


def _select_locked(connection: Connection, wanted: Wanted) -> list[Hold]:
    """Select holds, and lock them in the order of their ids."""
    statement = sa.select(holds).where(*wanted).order_by(holds.c.id).with_for_update()
    return [hold_of(row) for row in connection.execute(statement)]


def _select_effects(connection: Connection, keys: Sequence[Key]) -> dict[Key, Effect]:
    """Select effects without their earlier attempts, in a statement of its own: it sees what committed meanwhile."""
    if not keys:
        return {}
    found = (effect_of(row) for row in connection.execute(sa.select(effects).where(effects.c.key.in_(keys))))
    return {effect.intent.key: effect for effect in found}


def _select_settles(connection: Connection, found: Iterable[Effect]) -> dict[Key, Duration]:
    """Select how long a request of these effects may be under way after an attempt, as their tools say today."""
    waiting = [effect.intent for effect in found if effect.life.state == "pending" and effect.life.attempts]
    declared: dict[tuple[TenantId, str], Duration] = {}
    for tenant in {intent.tenant for intent in waiting}:
        held = select_held(connection, tenant, [intent.tool for intent in waiting if intent.tenant == tenant])
        declared.update({(tenant, name): tool.rules.settle for name, tool in held.items()})
    return {intent.key: declared.get((intent.tenant, intent.tool), SETTLE) for intent in waiting}


def _select_asked(connection: Connection, keys: Sequence[Key]) -> dict[Key, Approval]:
    """Select the last round about each effect."""
    if not keys:
        return {}
    statement = sa.select(approvals).where(approvals.c.key.in_(keys)).order_by(approvals.c.round)
    return {Key(row.key): approval_of(row, ()) for row in connection.execute(statement)}
