"""Child runs in a replay: served what came of them, or replayed from recordings of their own."""

import pytest

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import charge, guard, look_up
from twiceshy import Recording, replay
from twiceshy_contract.events import ChildHead


@pytest.fixture
def child_name() -> str:
    """How the SDK calls the child."""
    from twiceshy._child_names import Children

    return Children().name(RUN, "", "price")


def price(order: str) -> int:
    return int(look_up(order)["price"])


def agent() -> str:
    with guard.run(RUN) as run:
        return charge("a", run.child("price", price, "a"))


def parent_of(child: str) -> Recording:
    log = Writing(RUN)
    intent = log.asked("child_run", "price", {"order": "a"}, child=child)
    log.gave(intent, 5, child=ChildHead(run=child, events=2))
    log.tool("charge", {"order": "a", "amount": 5}, "charged")
    return log.recording()


def child_of(child: str, order: str = "a") -> Recording:
    log = Writing(child)
    log.tool("look_up", {"order": order}, {"price": 5})
    return log.recording()


def test_a_child_is_served_what_came_of_it(child_name: str) -> None:
    again = replay(parent_of(child_name), agent)
    assert (again.value, again.divergences) == ("charged", ())


def test_a_child_with_a_recording_is_replayed_itself(child_name: str) -> None:
    again = replay(parent_of(child_name), agent, children=[child_of(child_name)])
    assert (again.value, again.divergences) == ("charged", ())


def test_a_difference_in_the_child_is_told(child_name: str) -> None:
    again = replay(parent_of(child_name), agent, children=[child_of(child_name, order="b")])
    assert [(one.class_, one.recorded and one.recorded.arguments) for one in again.differences] == [
        ("arguments", {"order": "b"})
    ]
