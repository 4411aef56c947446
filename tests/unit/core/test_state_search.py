"""The search that found the four rules: no world in which all four hold applies an effect twice at its provider.

The search is over the real table and the real `decide`, breadth first, in the world of `tests.unit.core.world`.
It is complete: time has no horizon there, and every world that can be reached from the first is visited.
"""

import gc
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from guard.core.lifecycle import TABLE, Row
from guard.core.situation import Condition
from tests.unit.core.world import Model, Setting, World

PLAIN = Setting(lease=2)
"""A side effect whose provider keeps nothing."""
AGEING = Setting(lease=1, window=4)
"""A side effect whose provider answers a downstream key from its record for four ticks."""

HARMLESS = Setting(lease=1, is_idempotent=True, clients=2)
"""An idempotent tool, which is tried again while an attempt is silent."""


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    """Keep Python's collector from walking through all worlds again and again; none of them is in a cycle."""
    gc.disable()
    yield
    gc.enable()


class Finding(NamedTuple):
    """How many worlds were visited, and the shortest way to a double execution, if there is one."""

    worlds: int
    trace: tuple[str, ...] | None


def search(setting: Setting, *, minds_hiding: bool = True) -> Finding:
    """Visit every world that can be reached, or stop at the first in which the effect was applied twice.

    As bad is one in which it was applied and the record says that it was cancelled: the next call would apply it again.
    With `minds_hiding` the search stops there too.
    """
    model = Model(setting)
    first = model.start()
    origin: dict[World, tuple[World, str] | None] = {first: None}
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        if model.is_over(world):
            continue
        for name, after in model.steps(world):
            visited = len(origin)
            origin.setdefault(after, (world, name))
            if len(origin) == visited:
                continue
            if after.applied > 1 or (minds_hiding and after.is_hidden):
                return Finding(len(origin), _way_to(after, origin))
            waiting.append(after)
    return Finding(len(origin), None)


def _way_to(world: World, origin: dict[World, tuple[World, str] | None]) -> tuple[str, ...]:
    names: list[str] = []
    step = origin[world]
    while step is not None:
        names.append(step[1])
        step = origin[step[0]]
    return tuple(reversed(names))


def assert_clean(setting: Setting, *, at_least: int) -> None:
    found = search(setting)
    assert found.trace is None, "applied twice, or hidden:\n  " + "\n  ".join(found.trace or ())
    assert found.worlds >= at_least


def assert_double_execution(setting: Setting) -> None:
    found = search(setting, minds_hiding=False)
    assert found.trace is not None, f"{found.worlds} worlds, and no double execution: the rule does nothing"
    assert found.trace[-1].endswith("request lands and is applied")


def without_condition(condition: Condition) -> tuple[Row, ...]:
    """Return the table whose rows do not ask for the condition."""
    drop: Callable[[Row], Row] = lambda row: Row(  # noqa: E731
        row.source, row.event, tuple(c for c in row.when if c != condition), row.target, row.act, row.verdict
    )
    return tuple(map(drop, TABLE))


def without_rule_one() -> tuple[Row, ...]:
    """Return the table that believes one attempt for all, and grants a pending effect whoever may still send."""
    believing = [row for row in TABLE if "another unresolved" not in row.when]
    granting = Row("pending", "begin", ("attempts left",), "executing", "grant", "granted")
    is_grant: Callable[[Row], bool] = lambda row: (row.source, row.event, row.act) == ("pending", "begin", "grant")  # noqa: E731
    return tuple(granting if is_grant(row) else row for row in believing)


def test_with_all_rules_a_side_effect_without_a_window_is_never_applied_twice() -> None:
    assert_clean(PLAIN, at_least=150_000)


def test_with_all_rules_a_side_effect_with_an_ageing_provider_window_is_never_applied_twice() -> None:
    assert_clean(AGEING, at_least=400_000)


def test_without_another_unresolved_it_is_applied_twice() -> None:
    """Rule 1: while another attempt is unresolved, one's word settles nothing, and no pending effect is granted."""
    assert_double_execution(AGEING._replace(table=without_rule_one()))


def test_without_another_unresolved_a_cancel_hides_what_was_applied() -> None:
    """An effect with a silent attempt cannot be cancelled: what it may have applied would look as if it never was."""
    assert_clean(HARMLESS, at_least=10_000)
    believing = tuple(row for row in TABLE if row.event != "cancelled" or "another unresolved" not in row.when)
    found = search(HARMLESS._replace(table=believing))
    assert found.trace is not None
    assert "the operator's 'cancelled' arrives: done" in found.trace


def test_without_self_fencing_it_is_applied_twice() -> None:
    """Rule 2: a client starts and sends nothing after its lease's deadline."""
    assert_double_execution(PLAIN._replace(do_clients_fence_themselves=False))
    assert_double_execution(AGEING._replace(do_clients_fence_themselves=False))


def test_without_settle_time_it_is_applied_twice() -> None:
    """Rule 3: word from outside that nothing was applied counts only when no request can be on its way any more."""
    assert_double_execution(PLAIN._replace(settle=0))
    assert_double_execution(PLAIN._replace(table=without_condition("settled")))
    assert_double_execution(AGEING._replace(table=without_condition("settled")))


def test_without_the_window_rule_it_is_applied_twice() -> None:
    """Rule 4: doubt is run again only while the provider's window outlasts the new lease and the settle time."""
    assert_double_execution(AGEING._replace(table=without_condition("re-run harmless")))
    assert_double_execution(PLAIN._replace(table=without_condition("re-run harmless")))


def test_without_saying_when_the_provider_was_asked_it_is_applied_twice() -> None:
    """The settle time counts to when the provider was asked, not to when its answer arrives at the service."""
    assert_double_execution(PLAIN._replace(does_word_say_when_it_asked=False))
    assert_double_execution(AGEING._replace(does_word_say_when_it_asked=False))


def test_an_operator_who_waits_for_the_settle_time_before_asking_does_not_replace_saying_when() -> None:
    """Between the question and its answer's arrival the latest attempt may renew under the same fence, send and die."""
    assert_double_execution(PLAIN._replace(does_word_say_when_it_asked=False, does_operator_wait_to_ask=True))
