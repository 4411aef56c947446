"""Turns on PostgreSQL: one call of `relay_turn_v1` each, on a connection of its own that is held for them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from guard.core.effects import Duration
from guard.ports.relay import Ask, Claimed, Settlement, Turn, Verdict
from guard.store.sql.due import due_statement
from guard.store.sql.faults import patiently, translated
from guard.store.sql.marks import Look, Mark, Marks, Walk
from guard.store.sql.postgresql import PostgresDatabase
from guard.store.sql.relay_rows import VERDICTS, ask_columns, claimed_of, settled_in_order, settlement_columns

_TURN: Final = """
    select * from relay_turn_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
      $18, $19, $20, $21, $22)"""
_START: Final = """
    with held as materialized (
      select o.id, case when o.epoch = 1 then o.effect end as effect
        from outbox o where o.id = any($2::bigint[]) and o.lease = $1
        order by o.id for no key update),
    judged as materialized (select h.id, relay_verdict_v1(h.effect) as verdict from held h)
    update outbox o set
        state = case j.verdict when 1 then 3 else o.state end,
        lease_until = (extract(epoch from clock_timestamp()) * 1000000)::bigint + $3
      from judged j where o.id = j.id returning o.id, j.verdict"""
_DUE: Final = due_statement("(extract(epoch from clock_timestamp()) * 1000000)::bigint")
_FENCED, _CLAIMED, _GONE, _LEFT = 0, 1, 3, 4


class PostgresTurns:
    """The turns of one store's relays."""

    def __init__(self, database: PostgresDatabase) -> None:
        """Connect nothing yet."""
        self._held = database.held()
        self._starting = database.held()
        self._marks = Marks()

    async def turn(self, lease: UUID, length: Duration, settlements: Sequence[Settlement], asks: Sequence[Ask]) -> Turn:
        """Settle what was sent, and claim what is due, in one transaction and one round trip."""
        settled = settlement_columns(settled_in_order(settlements))
        asks = [ask for ask in asks if ask.slots > 0]
        look = self._marks.begin(asks)

        async def once() -> list[Any]:
            with translated():
                return await self._held.call(_TURN, lease, length, look.lanes_first, *settled, *ask_columns(asks, look))

        return self._read(look, await patiently(once))

    async def due(self) -> frozenset[int]:
        """Select the destinations that have messages in lanes, or one without a lane that is due."""

        async def once() -> list[Any]:
            with translated():
                return await self._starting.call(_DUE)

        return frozenset(row[0] for row in await patiently(once))

    async def start(self, lease: UUID, ids: Sequence[int], length: Duration) -> Mapping[int, Verdict]:
        """Begin to send messages that were claimed, beside the turn that may be under way."""

        async def once() -> list[Any]:
            with translated():
                return await self._starting.call(_START, lease, sorted(set(ids)), length)

        return {id_: VERDICTS[verdict] for id_, verdict in await patiently(once)}

    async def close(self) -> None:
        """Give the connections back."""
        await self._held.close()
        await self._starting.close()

    def _read(self, look: Look, rows: Sequence[Any]) -> Turn:
        claimed: list[Claimed] = []
        fenced: list[int] = []
        last: dict[int, Mark] = {}
        walks: list[Walk] = []
        for row in rows:
            if row[0] == _CLAIMED:
                claimed.append(claimed_of(row[1:], _same, is_first=row[16], verdict=row[17]))
                if row[7] is None:
                    last[row[5]] = max((row[18], row[1]), last.get(row[5], (0, 0)))
            elif row[0] == _FENCED:
                fenced.append(row[1])
            elif row[0] == _GONE:
                self._marks.forget(row[5], row[7])
            elif row[0] == _LEFT:
                self._marks.leave(row[5], row[7], row[1])
            else:
                walks.append(Walk(destination=row[5], last=row[7], seen=row[1], microseconds=row[14]))
        self._marks.end(look, last.items(), claimed, walks)
        return Turn(claimed=tuple(claimed), fenced=tuple(fenced))


def _same(value: UUID) -> UUID:
    return value
