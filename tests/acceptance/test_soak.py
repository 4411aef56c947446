"""A short soak: agents, an operator and faults, and no violation in the whole history. `make soak` takes longer."""

from collections import Counter
from pathlib import Path

import pytest

from tests.soak.checker import check, summary
from tests.soak.history import Executed, Fault, Operation
from tests.soak.stage import Backend, Plan, soak


@pytest.mark.parametrize(
    ("backend", "seconds", "with_redis"),
    [("postgresql", 8.0, True), ("sqlite", 4.0, False)],
    ids=["postgresql", "sqlite"],
)
def test_nothing_is_lost_or_done_twice(tmp_path: Path, backend: Backend, seconds: float, *, with_redis: bool) -> None:
    history = soak(Plan(seconds=seconds, backend=backend, agents=6, with_redis=with_redis, seed=11), tmp_path)
    violations = check(history)
    assert violations == [], summary(violations)
    said = Counter(entry.said for entry in history if isinstance(entry, Operation))
    assert min(said["execute"], said["succeeded"]) > 10
    assert said["replay"] > 2
    assert sum(isinstance(entry, Executed) for entry in history) > 10
    assert sum(isinstance(entry, Fault) for entry in history) >= 1
