"""Claims on SQLite: what each destination may send now, of messages without a lane and of the first in each lane."""

import sqlite3
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

import msgspec

from guard.core.effects import SECOND, Duration, Instant
from guard.core.outbox import FIRST_EPOCH
from guard.ports.relay import Ask, Claimed
from guard.store.sql.codes import CLAIMED, SENDING, WAITING
from guard.store.sql.marks import Marks, Walk
from guard.store.sql.relay_rows import CLAIMED_COLUMNS, TO_SEND, claimed_of

_MOST: Final = 5000
"""Messages that one ask is given at the most."""
_MOST_LANES: Final = 2000
"""Lanes that are looked at for one ask in one turn."""
_BEYOND: Final = "\U0010ffff"
"""Sorts behind every lane."""

_ASKED: Final = """
    SELECT rate, tokens, refilled_at, breaker, allowance FROM destinations
    WHERE id = ? AND state = 1 AND coalesce(held_until, 0) <= ? AND (breaker = 1 OR coalesce(open_until, 0) <= ?)"""
IN_FLIGHT: Final = f"""
    SELECT count(*) FROM outbox WHERE state IN ({CLAIMED}, {SENDING}) AND state = {SENDING} AND destination_id = ?"""  # noqa: S608
FREE: Final = f"""
    SELECT {CLAIMED_COLUMNS}, effect FROM outbox
    WHERE destination_id = ? AND state = {WAITING} AND lane IS NULL AND due_at <= ? ORDER BY due_at, id LIMIT ?"""  # noqa: S608
NEXT_HEAD: Final = f"""
    SELECT lane, id, state = {WAITING} AND due_at <= ? FROM outbox
    WHERE destination_id = ? AND in_lane AND lane > ? AND lane <= ? ORDER BY lane, id LIMIT 1"""  # noqa: S608
_HEAD: Final = f"SELECT {CLAIMED_COLUMNS}, effect FROM outbox WHERE id = ?"  # noqa: S608
BEHIND: Final = f"""
    SELECT {CLAIMED_COLUMNS}, effect, state = {WAITING} AND due_at <= ? FROM outbox
    WHERE destination_id = ? AND in_lane AND lane = ? AND id > ? ORDER BY id LIMIT ?"""  # noqa: S608
IS_BUSY: Final = f"""
    SELECT coalesce(max(state IN ({CLAIMED}, {SENDING})), 0) FROM (
      SELECT state FROM outbox WHERE destination_id = ? AND in_lane AND lane = ? AND id > ? ORDER BY id LIMIT 50)"""  # noqa: S608
_VERDICT: Final = """
    SELECT CASE WHEN s.state = 2 THEN 3 WHEN s.state = 5 OR (s.state = 1 AND g.state IN (3, 5)) THEN 2 ELSE 1 END
    FROM saga_steps s JOIN sagas g ON g.id = s.saga WHERE s.key = ?"""
_TAKE: Final = "UPDATE outbox SET state = ?, lease = ?, lease_until = ?, repeatable = ? WHERE id = ?"
_SPEND: Final = "UPDATE destinations SET tokens = ?, refilled_at = max(refilled_at, ?) WHERE id = ?"
_PROBE: Final = "UPDATE destinations SET breaker = 3, open_until = ? WHERE id = ?"


class _Room(msgspec.Struct, kw_only=True):
    """What a destination may still be given in this turn."""

    left: int
    budget: int
    followers: int
    tokens: float | None
    is_probe: bool
    sent: bool = False


class Claims:
    """The claims of one turn; `claimed` is what came of them."""

    def __init__(self, driver: sqlite3.Connection, at: Instant, lease: UUID, length: Duration, marks: Marks) -> None:
        self.claimed: list[Claimed] = []
        self._driver = driver
        self._at = at
        self._lease = lease.bytes
        self._end = at + length
        self._marks = marks
        self._walks: list[Walk] = []

    def take(self, asks: Sequence[Ask]) -> None:
        """Claim for each ask what its destination may be given."""
        look = self._marks.begin(asks)
        for ask, lane in zip(asks, look.cursors, strict=True):
            room = self._room(ask)
            if room is None:
                continue
            whole = room.budget
            if look.lanes_first:
                self._take_lanes(ask, room, lane)
                self._take_free(ask, room)
            else:
                self._take_free(ask, room)
                self._take_lanes(ask, room, lane)
            if room.budget == whole:
                continue
            if room.tokens is not None:
                self._driver.execute(_SPEND, (room.tokens - (whole - room.budget), self._at, ask.destination))
            if room.is_probe and room.sent:
                self._driver.execute(_PROBE, (self._end, ask.destination))
        self._marks.end(look, (), (), self._walks)

    def _room(self, ask: Ask) -> _Room | None:
        row = self._driver.execute(_ASKED, (ask.destination, self._at, self._at)).fetchone()
        if row is None:
            return None
        rate, tokens, refilled_at, breaker, allowance = row
        left, budget = ask.slots, _MOST
        if rate is not None:
            tokens = min(max(1.0, rate), tokens + rate * max(0, self._at - refilled_at) / SECOND)
            budget = min(budget, int(tokens))
        if allowance is not None:
            left = min(left, allowance - self._driver.execute(IN_FLIGHT, (ask.destination,)).fetchone()[0])
        is_probe = breaker != 1
        return _Room(
            left=min(1 if is_probe else left, budget),
            budget=budget,
            followers=0 if is_probe else ask.followers,
            tokens=None if rate is None else tokens,
            is_probe=is_probe,
        )

    def _take_free(self, ask: Ask, room: _Room) -> None:
        if room.left <= 0:
            return
        for row in self._driver.execute(FREE, (ask.destination, self._at, room.left)).fetchall():
            self._claim(ask, room, row, is_first=True)
            room.left -= 1

    def _take_lanes(self, ask: Ask, room: _Room, cursor: str) -> None:
        heads: list[tuple[str, int]] = []
        seen, last = 0, ""
        for low, high in ((cursor, _BEYOND), ("", cursor)):
            last = low
            while room.left > 0 and seen < _MOST_LANES:
                head = self._driver.execute(NEXT_HEAD, (self._at, ask.destination, last, high)).fetchone()
                if head is None:
                    break
                last, seen = head[0], seen + 1
                if head[2] and not self._driver.execute(IS_BUSY, (ask.destination, *head[:2])).fetchone()[0]:
                    self._claim(ask, room, self._driver.execute(_HEAD, (head[1],)).fetchone(), is_first=True)
                    heads.append((last, head[1]))
                    room.left -= 1
            if room.left <= 0 or seen >= _MOST_LANES:
                break
            last = ""
            if not cursor:
                break
        self._walks.append(Walk(destination=ask.destination, last=last, seen=seen, microseconds=0))
        for lane, id_ in heads:
            self._take_behind(ask, room, lane, id_)
        room.left = min(room.left, room.budget)

    def _take_behind(self, ask: Ask, room: _Room, lane: str, head: int) -> None:
        """Claim what is right behind the first message of a lane, up to the first that is not due."""
        most = min(room.followers, room.budget)
        rows = self._driver.execute(BEHIND, (self._at, ask.destination, lane, head, most)).fetchall()
        for row in takewhile(lambda row: bool(row[-1]), rows):
            self._claim(ask, room, row[:-1], is_first=False)

    def _claim(self, ask: Ask, room: _Room, row: Sequence[Any], *, is_first: bool) -> None:
        verdict = self._verdict(row[-1], row[2])
        is_sent = is_first and verdict == TO_SEND
        taken = (SENDING if is_sent else CLAIMED, self._lease, self._end, ask.repeatable, row[0])
        self._driver.execute(_TAKE, taken)
        self.claimed.append(claimed_of(row, _uuid, is_first=is_first, verdict=verdict))
        room.budget -= 1
        room.sent = room.sent or is_sent

    def _verdict(self, effect: bytes | None, epoch: int) -> int:
        """Select what the effect of a message says right before it is sent; of what a person sent anew, nothing."""
        if effect is None or epoch > FIRST_EPOCH:
            return TO_SEND
        row = self._driver.execute(_VERDICT, (effect,)).fetchone()
        return TO_SEND if row is None else int(row[0])


def _uuid(value: bytes) -> UUID:
    return UUID(bytes=value)
