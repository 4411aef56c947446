"""Effects live on the running service as the design says, on both databases and behind two replicas."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.acceptance.machine.conftest import OpenWorld
from tests.acceptance.machine.example import World
from tests.acceptance.machine.machine import machine_of

QUICK = settings(
    max_examples=40,
    stateful_step_count=40,
    database=None,
    deadline=None,
    print_blob=False,
    # An example waits for real requests: what is slow is the computer that runs it.
    suppress_health_check=[HealthCheck.too_slow],
)
MET = [
    ("begin", "new", "execute"),
    ("begin", "new", "run-finished"),
    ("begin", "over", "execute"),
    ("begin", "pending", "execute"),
    ("begin", "pending", "retry-later"),
    ("begin", "executing", "execute"),
    ("begin", "executing", "in-progress"),
    ("begin", "in_doubt", "outcome-in-doubt"),
    ("begin", "in_doubt", "sibling-in-doubt"),
    ("begin", "succeeded", "replay"),
    ("commit", "executing", "ok"),
    ("fail not_applied", "executing", "ok"),
    ("fail not_applied", "pending", "ok"),
    ("fail rejected", "executing", "ok"),
    ("fail unknown", "executing", "ok"),
    ("renew", "executing", "ok"),
    ("renew", "executing", "lease-lost"),
    ("release", "executing", "ok"),
    ("resolve not_applied", "in_doubt", "ok"),
    ("resolve not_applied", "in_doubt", "not-possible"),
    ("cancel", "pending", "ok"),
    ("cancel", "in_doubt", "not-possible"),
    ("reopen", "pending", "ok"),
]
"""What a search that is worth its time meets: a verb, the state in which it finds an effect, and the answer.

The quick searches are drawn from fixed numbers that meet them all; where an event is drawn otherwise, choose others.
"""


def search(world: World, number: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Search quickly and always the same way; under hypothesis' profile `search`, long and another way each time."""
    is_long = settings.get_current_profile_name() == "search"
    chosen = settings(settings.get_profile("search"), suppress_health_check=[HealthCheck.too_slow])
    machine = machine_of(world, None if is_long else number)
    run_state_machine_as_test(machine, settings=chosen if is_long else QUICK)
    if is_long:
        with capsys.disabled():
            print("\n".join(f"{count:7} {' · '.join(met)}" for met, count in sorted(world.tally.items())))


def test_a_service_does_what_the_design_says(
    open_world: OpenWorld, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world = open_world(1)
    search(world, 10, capsys)
    assert [met for met in MET if not world.tally[met]] == []


@pytest.mark.parametrize("backend", ["postgresql"])
def test_two_replicas_do_together_what_the_design_says_of_one(
    open_world: OpenWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    search(open_world(2), 30, capsys)
