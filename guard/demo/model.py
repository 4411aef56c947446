"""A deterministic stand-in for the model: it says the tool calls of one real retry, word for word."""

from typing import Final, TypedDict

from guard.demo.holds import Hold

TITLES: Final = ("Strategy Sync with Alex", "Alex / Strategy Sync")
DURATION_MINUTES: Final = 30


class HoldCall(TypedDict):
    """The arguments of `create_calendar_hold`, as the model gives them."""

    start_time: str
    duration_minutes: int
    title: str


class ModelStandIn:
    """Asks for one hold until it is told of one; whenever it asks again, it has found other words.

    `asks_anyway` is how often it asks although it was told of the hold, as a model does whose context was
    compacted. `is_restarted` makes its first words the second ones: nothing is sampled twice alike.
    """

    def __init__(self, start_time: str, *, asks_anyway: int = 0, is_restarted: bool = False) -> None:
        self._start_time = start_time
        self._asks_anyway = asks_anyway
        self._calls = int(is_restarted)

    def next_call(self, told: Hold | None) -> HoldCall | None:
        """Say the next call, given the answer to the last one (none yet, or an error: None)."""
        if told is not None:
            if self._asks_anyway == 0:
                return None
            self._asks_anyway -= 1
        title = TITLES[min(self._calls, 1)]
        self._calls += 1
        return HoldCall(start_time=self._start_time, duration_minutes=DURATION_MINUTES, title=title)
