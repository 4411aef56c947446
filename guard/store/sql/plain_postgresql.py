"""The wire form of a plain batch for PostgreSQL's function `apply_plain_v1`, and of its answers.

Plain are begins and commits that ask for nothing besides: what agents do nearly always. They travel as columns, and
the function writes all of them by two statements. What it leaves out is for `apply_steps_v2`, which says why.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import replace

from guard.core.effects import Instant, Key
from guard.ports.steps import Finish, Insert, Step, StepResult, Written
from guard.store.sql.order import runs_of
from guard.store.sql.rows import EFFECT_WIDTH, effect_of, finished, inserted, intent_row

FEWEST: Final = 4
"""So many steps are a batch: fewer are done as quickly one by one, and what is left out costs no second round trip."""
_KEY: Final = itemgetter(0)
_BEGIN_WIDTH: Final = 19
_COMMIT_WIDTH: Final = 5


def is_plain(steps: Sequence[Step]) -> bool:
    """Say whether the batch is of plain steps alone, enough of them, each of another effect."""
    return (
        len(steps) >= FEWEST and all(map(_asks_nothing, steps)) and len({_key_of(step) for step in steps}) == len(steps)
    )


def columns_of(steps: Sequence[Step]) -> list[Sequence[Any] | None]:
    """Return the arguments of the function: runs to lock, the columns of begins, the columns of commits."""
    begins = sorted((_begin_row(step) for step in steps if isinstance(step, Insert)), key=_KEY)
    commits = sorted((_commit_row(step) for step in steps if isinstance(step, Finish)), key=_KEY)
    return [runs_of(steps), *_turned(begins, _BEGIN_WIDTH), *_turned(commits, _COMMIT_WIDTH)]


def results_of(steps: Sequence[Step], rows: Sequence[Sequence[Any]]) -> list[StepResult | None]:
    """Return what became of each step in its place; None: it was left out, and nothing has happened."""
    written = {row[0]: row for row in rows}
    return [_result(step, written.get(_key_of(step))) for step in steps]


def _asks_nothing(step: Step) -> bool:
    match step:
        case Insert():
            return step.hold is None and step.consent is None
        case Finish():
            return step.staging is None
        case _:
            return False


def _key_of(step: Step) -> Key | None:
    match step:
        case Insert():
            return step.intent.key
        case Finish():
            return step.key
        case _:
            return None


def _begin_row(step: Insert) -> tuple[Any, ...]:
    key, _version, tenant, run_id, run, _step, *named, _began_at = intent_row(step.intent, 0)
    return (key, tenant, run_id, run, *named, step.intent.slot, step.token, step.lease, step.alone)


def _commit_row(step: Finish) -> tuple[Any, ...]:
    return (step.key, step.token, step.fence, step.outcome, None if step.known is None else step.known.version)


def _turned(rows: Sequence[tuple[Any, ...]], width: int) -> list[Sequence[Any] | None]:
    """Return rows as columns; of one in which nothing stands nothing is sent."""
    if not rows:
        return [()] * width
    return [None if _is_empty(column) else column for column in zip(*rows, strict=True)]


def _is_empty(column: Sequence[Any]) -> bool:
    return column[0] is None and all(value is None for value in column)


def _result(step: Step, row: Sequence[Any] | None) -> StepResult | None:
    if row is None:
        return None
    _, stamp, _version, count, stands = row
    at = Instant(stamp)
    if isinstance(step, Insert):
        return Written(effect=inserted(step, at, count), at=at)
    assert isinstance(step, Finish)  # noqa: S101  nothing else is plain
    if stands is None and step.known is not None:
        return Written(effect=finished(step, step.known, at), at=at)
    effect = effect_of(stands, stands[EFFECT_WIDTH])
    return Written(effect=replace(effect, outcome=step.outcome), at=at)
