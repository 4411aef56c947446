"""How a relay's words become columns, and rows become messages that are claimed."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, assert_never
from uuid import UUID

import msgspec

from guard.core.effects import SECOND
from guard.ports.relay import Again, Ask, Claimed, Done, Settlement, Stands, Verdict
from guard.store.sql.codes import MESSAGE_STATE_CODES, TRY_CODES, WAITING
from guard.store.sql.marks import Look

VERDICTS: Final[dict[int, Verdict]] = {1: "send", 2: "wait", 3: "withdrawn"}
TO_SEND: Final = 1
_LONGEST_TEXT: Final = 2000
_LONGEST_DELAY: Final = 400 * 86_400 * SECOND


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """A settlement as columns: the state that the message goes to, and what is written down with it."""

    id: int
    state: int
    delay: int = 0
    note: str | None = None
    receipt: str | None = None
    result: int | None = None
    counts: bool = True
    blocks: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the message moves to the history."""
        return self.state >= MESSAGE_STATE_CODES["delivered"]


def settled_in_order(settlements: Iterable[Settlement]) -> list[Settled]:
    """Return settlements in the order of their ids, one for each: rows are locked in that order."""
    first: dict[int, Settled] = {}
    for settlement in settlements:
        first.setdefault(settlement.id, _settled(settlement))
    return [first[id_] for id_ in sorted(first)]


def settlement_columns(settled: Sequence[Settled]) -> tuple[list[Any], ...]:
    """Return settlements as the arrays that `relay_turn_v1` takes."""
    return (
        [one.id for one in settled],
        [one.state for one in settled],
        [one.delay for one in settled],
        [one.note for one in settled],
        [one.receipt for one in settled],
        [one.result for one in settled],
        [one.counts for one in settled],
        [one.blocks for one in settled],
    )


def ask_columns(asks: Sequence[Ask], look: Look) -> tuple[list[Any], ...]:
    """Return asks as the arrays that `relay_turn_v1` takes."""
    return (
        [ask.destination for ask in asks],
        [ask.slots for ask in asks],
        [ask.followers for ask in asks],
        [ask.repeatable for ask in asks],
        [due_at for due_at, _ in look.marks],
        [id_ for _, id_ in look.marks],
        look.cursors,
        look.walks,
        [destination for destination, _, _ in look.known],
        [lane for _, lane, _ in look.known],
        [mark for _, _, mark in look.known],
    )


CLAIMED_COLUMNS: Final = (
    "id, message, epoch, tenant, destination_id, destination, lane, type, recipient, content_type, headers, body, run, "
    "staged_at, attempts"
)
"""What is read of a message that is claimed, in the order of `claimed_of`."""


def claimed_of(row: Sequence[Any], uuid: Callable[[Any], UUID], *, is_first: bool, verdict: int) -> Claimed:
    """Return a message from what is read of it."""
    return Claimed(
        id=row[0],
        message=uuid(row[1]),
        epoch=row[2],
        tenant=row[3],
        destination=row[4],
        name=row[5],
        lane=row[6],
        type=row[7],
        recipient=row[8],
        content_type=row[9],
        headers=row[10],
        body=row[11],
        run=row[12],
        staged_at=row[13],
        attempts=row[14],
        is_first=is_first,
        verdict=VERDICTS[verdict],
    )


def clean(text: str | None) -> str | None:
    """Return a text that every database takes: what a receiver said may hold anything, and must strand nothing."""
    if text is None:
        return None
    short = text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT]
    if "\0" in short:
        short = short.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return short if short.isascii() else short.encode("utf-8", "replace").decode("utf-8")


def _settled(settlement: Settlement) -> Settled:
    match settlement:
        case Done(id=id_, over=over, receipt=receipt, note=note, counts=counts):
            return Settled(
                id=id_, state=MESSAGE_STATE_CODES[over], note=clean(note), receipt=clean(receipt), counts=counts
            )
        case Again(id=id_, delay=delay, note=note, tried=tried):
            result = None if tried is None else TRY_CODES[tried]
            later = min(max(0, delay), _LONGEST_DELAY)
            return Settled(id=id_, state=WAITING, delay=later, note=clean(note), result=result)
        case Stands(id=id_, state=state, note=note, tried=tried, blocks=blocks):
            code, result = MESSAGE_STATE_CODES[state], TRY_CODES[tried]
            return Settled(id=id_, state=code, note=clean(note), result=result, blocks=blocks)
        case _:
            assert_never(settlement)
