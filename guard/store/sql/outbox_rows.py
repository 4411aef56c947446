"""Messages as rows: of the queue, and of the history."""

from typing import Any, Final

import msgspec
import sqlalchemy as sa

from guard.core.effects import Instant, Key, RunId, moment
from guard.core.outbox import Staged, Standing
from guard.store.sql.codes import MESSAGE_STATES, TRIES, WAITING
from twiceshy_contract.outbox import AttemptLine

_headers: Final = msgspec.json.Decoder(dict[str, str])


def standing_of(row: sa.Row[Any]) -> Standing:
    """Return a message that waits, or one that is over."""
    found = row._mapping  # noqa: SLF001 - SQLAlchemy's own name for a row as a mapping
    is_over = "settled_at" in found
    return Standing(
        id=row.id,
        message=row.message,
        epoch=row.epoch,
        effect=None if row.effect is None else Key(row.effect),
        run_id=None if row.run_id is None else RunId(row.run_id),
        run=row.run,
        destination_id=row.destination_id,
        destination=row.destination,
        lane=row.lane,
        type=row.type,
        recipient=row.recipient,
        content_type=row.content_type,
        headers=_headers.decode(row.headers),
        body=row.body,
        staged_at=Instant(row.staged_at),
        state=MESSAGE_STATES[row.state],
        attempts=row.attempts,
        note=row.note,
        due_at=None if is_over else Instant(row.due_at),
        settled_at=Instant(row.settled_at) if is_over else None,
        receipt=row.receipt if is_over else None,
    )


def line_of(row: sa.Row[Any]) -> AttemptLine:
    """Return a try that failed."""
    at = moment(Instant(row.at)).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return AttemptLine(number=row.number, epoch=row.epoch, at=at, result=TRIES[row.result], detail=row.detail)


def staged_row(row: Staged, place: sa.Row[Any], note: str, at: Instant) -> dict[str, Any]:
    """Return a rendered message as columns, in the place of one that was not rendered."""
    return {
        "message": row.message,
        "epoch": place.epoch,
        "tenant": place.tenant,
        "effect": place.effect,
        "run_id": place.run_id,
        "run": place.run,
        "destination_id": row.destination_id,
        "destination": row.destination,
        "lane": row.lane,
        "type": row.type,
        "recipient": row.recipient,
        "content_type": row.content_type,
        "headers": row.headers,
        "body": row.body,
        "staged_at": place.staged_at,
        "state": WAITING,
        "attempts": 0,
        "note": note,
        "in_lane": row.lane is not None,
        "due_at": at,
    }
