"""One calendar, many agents: nobody books a time twice, and whoever loses one hears by whom."""

import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.acceptance.conftest import Agent
from tests.service import ServiceProcess

StartBooking = Callable[..., Agent]


@pytest.fixture
def start_booking(service: ServiceProcess, sink: Path) -> Iterator[StartBooking]:
    """Start agents that book; whatever is left of them ends with the test."""
    agents: list[Agent] = []

    def start(*words: str) -> Agent:
        agents.append(Agent(service.url, sink, *words, module="booking_agents"))
        return agents[-1]

    yield start
    for agent in agents:
        agent.end()


def booked(sink: Path) -> list[tuple[datetime, datetime, str]]:
    """Return what stands in the calendar, by start."""
    lines = [line.split() for line in sink.read_text().splitlines()]
    starts = [(datetime.fromisoformat(start), int(minutes), name) for start, minutes, name in lines]
    return sorted((start, start + timedelta(minutes=minutes), name) for start, minutes, name in starts)


def test_agents_of_different_priority_that_are_killed_book_nothing_twice(
    service: ServiceProcess, sink: Path, start_booking: StartBooking
) -> None:
    count = 16
    names = {"ann": "0", "bob": "0", "cid": "3", "dora": "7"}
    agents = {name: start_booking("many", name, priority, str(count)) for name, priority in names.items()}
    for agent in agents.values():
        assert agent.hear() == "ready"
    for agent in agents.values():
        agent.tell()
    for name in ("ann", "cid"):  # in the middle of their work, and once more
        for _ in range(2):
            agents[name].hear()
            agents[name].send(signal.SIGKILL)
            agents[name] = start_booking("many", name, names[name], str(count))
            assert agents[name].hear() == "ready"
            agents[name].tell()
    heard = {name: agent.hear_all() for name, agent in agents.items()}
    for words in heard.values():
        assert (words[-1], len(words)) == ("over", count + 1)  # each heard of every time what became of it
        assert not [word for word in words if word.startswith("failed")]
    entries = booked(sink)
    assert entries
    assert all(one[1] <= other[0] for one, other in pairwise(entries)), entries
    for name, words in heard.items():
        mine = {start.isoformat() for start, _, whose in entries if whose == name}
        assert {word.split()[1] for word in words if word.startswith("booked")} <= mine
    items = service.ask("GET", "/v1/holds?resource=calendar&limit=500").body["items"]
    live = sorted((item["start"], item["end"]) for item in items if item["state"] in ("held", "committed"))
    assert all(one[1] <= other[0] for one, other in pairwise(live)), live
    taken = {datetime.fromisoformat(item["start"]) for item in items if item["state"] in ("held", "committed")}
    assert {start for start, _, _ in entries} <= taken


def test_a_loser_that_had_not_sent_gives_way_and_hears_by_whom(
    service: ServiceProcess, sink: Path, start_booking: StartBooking
) -> None:
    low = start_booking("one", "intern", "0")
    assert low.hear() == "inside"
    high = start_booking("one", "director", "5")
    gave_way = low.hear()
    assert gave_way.startswith("LeaseLost: book_slowly: the service says hold-lost: The hold of 'calendar'"), gave_way
    assert "asks for it with priority 5" in gave_way
    assert high.hear() == "inside"
    lost = low.hear()
    assert lost.startswith("HoldLost: book_slowly did not run: Tool 'book_slowly' was not begun: its hold was taken"), (
        lost
    )
    high.tell()
    assert high.hear() == "booked director"
    assert [name for _, _, name in booked(sink)] == ["director"]
    low.tell()


def test_a_loser_that_was_killed_keeps_the_time_until_it_is_settled(
    service: ServiceProcess, sink: Path, start_booking: StartBooking
) -> None:
    low = start_booking("one", "intern", "0")
    assert low.hear() == "inside"
    low.send(signal.SIGKILL)
    (hold,) = service.ask("GET", "/v1/holds?resource=calendar").body["items"]
    high = start_booking("one", "director", "5")
    while True:
        reply = service.ask(
            "POST",
            f"/v1/effects/{hold['key']}/resolve",
            {"as": "not_applied", "fence": 1, "reason": "nothing is entered"},
        )
        if reply.status == 200:
            break
        assert reply.code == "not-possible"
    assert high.hear() == "inside"
    high.tell()
    assert high.hear() == "booked director"
    assert [name for _, _, name in booked(sink)] == ["director"]
