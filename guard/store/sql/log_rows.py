"""How events become rows."""

from collections.abc import Iterable
from typing import Any

from guard.core.effects import Instant
from guard.core.payloads import indexed
from guard.core.recording import Boundary, Written
from guard.ports.events import Append
from guard.store.sql.codes import EVENT_KIND_CODES, OUTCOME_CODES
from twiceshy_contract.events import Delivery

Added = Iterable[tuple[Written, Boundary]]


def event_rows(append: Append, added: Added, at: Instant) -> list[dict[str, Any]]:
    """Return the rows of events that an append adds."""
    return [_event_row(append, event, boundary, at) for event, boundary in added]


def argument_rows(append: Append, added: Added) -> list[dict[str, Any]]:
    """Return the rows by which the calls among the events are found."""
    return [
        {
            "run_id": append.run,
            "seq": event.seq,
            "argument": argument,
            "tenant": append.tenant,
            "name": boundary.name,
            "value": value,
        }
        for event, boundary in added
        for argument, value in indexed(event.event)
    ]


def _event_row(append: Append, written: Written, boundary: Boundary, at: Instant) -> dict[str, Any]:
    event = written.event
    ended = event if isinstance(event, Delivery) else None
    return {
        "run_id": append.run,
        "seq": event.seq,
        "tenant": append.tenant,
        "kind": EVENT_KIND_CODES[boundary.kind],
        "name": boundary.name,
        "intent": None if ended is None else ended.intent,
        "outcome": None if ended is None else OUTCOME_CODES[ended.outcome],
        "empty": None if ended is None else ended.empty,
        "at": event.at,
        "kept_at": at,
        "digest": written.imprint,
        "body": written.body,
    }
