"""A flag as the record holds it."""

from uuid import UUID

from msgspec.structs import replace

from guard.core.effects import Instant
from guard.core.flags import Flag, RaisedFlag


def test_a_flag_is_open_until_somebody_closes_it() -> None:
    raised = RaisedFlag(id=UUID(int=1), flag=Flag(kind="loop", subject="s", detail="d"), at=Instant(1))
    assert raised.state == "open"
    assert replace(raised, closed_at=Instant(2)).state == "closed"
