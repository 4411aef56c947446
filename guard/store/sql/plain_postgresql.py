"""The wire form of a plain batch for PostgreSQL's function `apply_plain_v1`, and of its answers.

Plain are begins and commits that ask for nothing besides: what agents do nearly always. They travel as columns, and
the function writes all of them by two statements. What it leaves out is for `apply_steps_v2`, which says why.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias, assert_never

from msgspec.structs import replace

from guard.core.effects import Instant, Key
from guard.ports.steps import Finish, Insert, Step, Written
from guard.store.sql.order import runs_of
from guard.store.sql.rows import EFFECT_WIDTH, effect_of, finished, inserted, intent_row

Plain: TypeAlias = Insert | Finish
FEWEST: Final = 4
"""So many steps are a batch: fewer are done as quickly one by one, and what is left out costs no second round trip."""
_KEY: Final = itemgetter(0)
_BEGIN_WIDTH: Final = 19
_COMMIT_WIDTH: Final = 5
WIDTH: Final = 1 + _BEGIN_WIDTH + _COMMIT_WIDTH
"""How many arguments the function takes: runs, and the columns of begins and of commits."""


def plain(steps: Sequence[Step]) -> list[Plain] | None:
    """Return the steps of a plain batch: enough of them, each of another effect; None for any other batch."""
    if len(steps) < FEWEST:
        return None
    asking = [step for step in steps if isinstance(step, Insert | Finish) and _asks_nothing(step)]
    return asking if len({_key_of(step) for step in asking}) == len(steps) else None


def columns_of(steps: Sequence[Plain]) -> list[Sequence[Any] | None]:
    """Return the arguments of the function: runs to lock, the columns of begins, the columns of commits."""
    begins = sorted((_begin_row(step) for step in steps if isinstance(step, Insert)), key=_KEY)
    commits = sorted((_commit_row(step) for step in steps if isinstance(step, Finish)), key=_KEY)
    return [runs_of(steps), *_turned(begins, _BEGIN_WIDTH), *_turned(commits, _COMMIT_WIDTH)]


def results_of(steps: Sequence[Plain], rows: Sequence[Sequence[Any]]) -> list[Written | None]:
    """Return what became of each step in its place; None: it was left out, and nothing has happened."""
    found = {row[0]: row for row in rows}
    return [_written(step, found.get(_key_of(step))) for step in steps]


def _asks_nothing(step: Plain) -> bool:
    match step:
        case Insert():
            return step.hold is None and step.consent is None
        case Finish():
            return step.staging is None
        case _:
            assert_never(step)


def _key_of(step: Plain) -> Key:
    match step:
        case Insert():
            return step.intent.key
        case Finish():
            return step.key
        case _:
            assert_never(step)


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


def _written(step: Plain, row: Sequence[Any] | None) -> Written | None:
    if row is None:
        return None
    _, stamp, count, stands = row
    at = Instant(stamp)
    match step:
        case Insert():
            return Written(effect=inserted(step, at, count), at=at)
        case Finish(known=known) if stands is None and known is not None:
            return Written(effect=finished(step, known, at), at=at)
        case Finish():
            return Written(effect=replace(effect_of(stands, stands[EFFECT_WIDTH]), outcome=step.outcome), at=at)
        case _:
            assert_never(step)
