"""The machine sees: whatever fault is planted between it and the service, it finds it."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.acceptance.machine import liars
from tests.acceptance.machine.clock import Clock
from tests.acceptance.machine.example import World
from tests.acceptance.machine.machine import machine_of
from tests.service import ServiceProcess

FIND = settings(
    max_examples=200,
    stateful_step_count=40,
    phases=[Phase.generate],
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize(
    ("liar", "complaint"),
    [
        (liars.grants_a_second_lease, "answer: the service says 'execute', the design says 'in-progress'"),
        (liars.executes_again_in_doubt, "the design says 'outcome-in-doubt'"),
        (liars.knows_no_settle_time, "answer: the service says 'ok', the design says 'not-possible'"),
        (liars.forgets_how_old_word_is, "answer: the service says 'ok', the design says 'not-possible'"),
        (liars.replays_another_result, "outcome: the service says"),
        (liars.loses_commits, "state: the service says 'executing', the design says 'succeeded'"),
        (liars.believes_any_fence, "the design says 'lease-lost'"),
        (liars.changes_the_downstream_key, "downstream key"),
        (liars.keeps_the_downstream_key, "downstream key"),
        (liars.hides_other_arguments, "the design says 'arguments-changed'"),
        (liars.hides_drift, "drift: the service says None"),
        (liars.counts_no_attempts, "the design says 'attempts-exhausted'"),
        (liars.loses_cancellations, "state: the service says 'pending', the design says 'failed'"),
        (liars.forgets_what_is_known, "answer: the service says 'replay', the design says 'execute'"),
        (liars.takes_other_words_for_another_intent, "the design says 'sibling-in-doubt'"),
        (liars.swallows_heartbeats, "seconds to lease_expires_at"),
        (liars.leaves_members_out, "missing members: the service says ['generation']"),
    ],
)
def test_a_planted_fault_is_found(
    honest_service: ServiceProcess, honest_clock: Clock, liar: liars.Liar, complaint: str
) -> None:
    lying = World(asks=[liar(honest_service.ask, honest_clock)], clock=honest_clock)
    with pytest.raises(AssertionError) as found:
        run_state_machine_as_test(machine_of(lying, 8), settings=FIND)
    assert complaint in str(found.value)
