"""What a sink is handed of a message that was claimed."""

from typing import Final

import msgspec

from guard.ports.relay import Claimed
from outbox_relay.sinks.base import Outgoing

_HEADERS: Final = msgspec.json.Decoder(dict[str, str])


def outgoing(message: Claimed, destination: str, at: int | None) -> Outgoing:
    """Return a message as it leaves, with the number of its try; `at` is the database's time."""
    headers: dict[str, str] = {} if message.headers == b"{}" else _HEADERS.decode(message.headers)
    return Outgoing(
        message=message.message,
        epoch=message.epoch,
        number=message.attempts + 1,
        destination=destination,
        content_type=message.content_type,
        body=message.body,
        headers=headers,
        staged_at=message.staged_at,
        type=message.type,
        lane=message.lane,
        recipient=message.recipient,
        run=message.run,
        at=at,
    )
