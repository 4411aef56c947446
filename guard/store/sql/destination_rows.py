"""Destinations as rows: what others must know of one, and its settings."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import sqlalchemy as sa

from guard.core.outbox import Place
from guard.store.sql.codes import DESTINATION_STATES
from twiceshy_contract.destinations import Destination

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Destination)


def settings_row(settings: Destination) -> bytes:
    """Return settings as they stand in a row."""
    return _encoder.encode(settings)


def settings_of(row: sa.Row[Any]) -> Destination | None:
    """Return the settings of a destination; None where this version cannot read them, as a kind of a newer one."""
    try:
        return _decoder.decode(row.settings)
    except msgspec.DecodeError:
        return None


def is_readable(row: sa.Row[Any]) -> bool:
    """Say whether this version can read a destination."""
    return settings_of(row) is not None


def places_of(rows: Iterable[sa.Row[Any]]) -> list[Place]:
    """Return those of these destinations that this version can read, as whoever stages must know them."""
    return [place_of(row) for row in rows if is_readable(row)]


def place_of(row: sa.Row[Any]) -> Place:
    """Return a destination as whoever stages must know it. Raises msgspec.DecodeError: this version cannot read it."""
    return Place(id=row.id, name=row.name, state=DESTINATION_STATES[row.state], settings=_decoder.decode(row.settings))
