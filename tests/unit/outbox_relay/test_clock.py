"""The database's time between two looks at it."""

from guard.core.effects import Instant
from outbox_relay.clock import DatabaseClock


def test_the_time_is_counted_on_from_what_the_database_said_in_the_middle_of_the_question() -> None:
    clock = DatabaseClock()
    assert clock.at(7.0) is None
    clock.tell(Instant(1_000_000_000), asked=5.0, answered=5.5)
    assert clock.at(5.25) == 1_000_000_000
    assert clock.at(65.25) == 1_060_000_000


def test_the_newest_word_of_the_database_counts() -> None:
    clock = DatabaseClock()
    clock.tell(Instant(1_000_000_000), asked=5.0, answered=5.0)
    clock.tell(Instant(900_000_000), asked=6.0, answered=6.0)
    assert clock.at(6.0) == 900_000_000
