"""A hold, and the calendar as its clients see it."""

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from guard.demo.http import JsonService

Fault = Literal["drop", "hang"]
"""What becomes of the answer once a hold is made: the connection is cut, or the answer never comes."""

CALENDAR_VARIABLE: Final = "CALENDAR_URL"
GUEST_VARIABLE: Final = "GUEST_ADDRESS"
"""Who is told by mail of what is booked, where somebody is."""


@dataclass(frozen=True, kw_only=True)
class Hold:
    """A time that is held in the calendar."""

    id: int
    start_time: str
    duration_minutes: int
    title: str


class Calendar:
    """The calendar service. Asked twice, it makes two holds."""

    def __init__(self, url: str) -> None:
        self._service = JsonService(url)

    def hold(self, start_time: str, duration_minutes: int, title: str) -> Hold:
        """Make a hold. Raises OSError where no answer comes, which does not say that nothing was made."""
        body = {"start_time": start_time, "duration_minutes": duration_minutes, "title": title}
        return self._service.post("/holds", body, Hold)

    def holds(self, start_time: str) -> list[Hold]:
        """List the holds of one start time, oldest first."""
        return self._service.get(f"/holds?start={quote(start_time)}", list[Hold])

    def break_next(self, start_time: str, fault: Fault) -> None:
        """Let the answer to the next hold at `start_time` go wrong, after the hold is made."""
        self._service.post("/faults", {"start_time": start_time, "fault": fault}, dict[str, str])
