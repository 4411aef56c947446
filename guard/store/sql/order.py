"""The order in which a batch is applied, on both databases.

Creating steps first, then changing ones, then looks, each by key. A transaction that creates waits for those that
change but holds nothing they wait for, and within a phase all go by key: so no two batches wait for each other. The
holds that the steps demand are locked before all effects, by id: as those do who place or settle holds.
"""

from collections import Counter
from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from guard.core.effects import RunId
from guard.ports.steps import Finish, Insert, Look, Replace, Step

_CREATES, _CHANGES, _LOOKS = range(3)


def in_order(steps: Sequence[Step]) -> list[tuple[int, Step]]:
    """Return the steps as they are to be applied, each with its place in the batch."""
    ranked = [(*_rank(step), place) for place, step in enumerate(steps)]
    return [(place, steps[place]) for *_, place in sorted(ranked)]


def runs_of(steps: Sequence[Step]) -> list[RunId]:
    """Return the runs to lock: those that count a new effect or must be open, in the order of their ids."""
    runs = {run for step in steps if (run := _run_of(step)) is not None}
    return sorted(runs)


def creating_in(steps: Sequence[Step], runs: Sequence[RunId]) -> list[int]:
    """Return how many effects the steps may create in each of the runs."""
    creating = Counter(_run_of(step) for step in steps if isinstance(step, Insert) or _is_new(step))
    return [creating[run] for run in runs]


def holds_of(steps: Sequence[Step]) -> list[UUID]:
    """Return the holds that must be held still."""
    return [step.hold for step in steps if isinstance(step, Insert | Replace) and step.hold is not None]


def _is_new(step: Step) -> bool:
    return isinstance(step, Replace) and not step.seen


def _rank(step: Step) -> tuple[int, bytes]:
    match step:
        case Insert():
            return _CREATES, step.intent.key
        case Replace():
            return (_CHANGES if step.seen else _CREATES), step.effect.intent.key
        case Finish():
            return _CHANGES, step.key
        case Look():
            return _LOOKS, step.key
        case _:
            assert_never(step)


def _run_of(step: Step) -> RunId | None:
    match step:
        case Insert():
            return step.intent.run_id
        case Replace():
            return step.open_run if step.seen else step.effect.intent.run_id
        case _:
            return None
