"""A batch of steps on SQLite: the same sentences as the function `apply_steps_v2` on PostgreSQL, on a bare connection.

The caller holds a transaction that began immediately, so nobody else writes; `at` is the time of all its steps.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, assert_never
from uuid import UUID

from guard.core.effects import Effect, Instant, Intent, Key, RunId
from guard.ports.steps import (
    Finish,
    Found,
    HoldGone,
    Insert,
    Look,
    Overruled,
    Replace,
    RunClosed,
    Sibling,
    Step,
    StepResult,
    Written,
)
from guard.store.sql import verbs_sqlite as verbs
from guard.store.sql.order import in_order, runs_of
from guard.store.sql.rows import earlier_of, effect_of, inserted, replaced, row_of
from guard.store.sql.staging import stage


def apply_steps(connection: sqlite3.Connection, steps: Sequence[Step], at: Instant) -> list[StepResult]:
    """Apply the steps in their order; answer each in its place."""
    batch = _Batch(connection, steps, at)
    answers = {place: batch.apply(step) for place, step in in_order(steps)}
    batch.count_effects()
    return [answers[place] for place in range(len(steps))]


class _Batch:
    """A batch in its transaction: the runs that it names, and how many effects each has."""

    def __init__(self, connection: sqlite3.Connection, steps: Sequence[Step], at: Instant) -> None:
        self._connection = connection
        self._at = at
        self._has_doubt: bool | None = None
        self._open: dict[RunId, bool] = {}
        self._before: dict[RunId, int] = {}
        for run in runs_of(steps):
            held = verbs.hold_run(connection, run.bytes)
            if held is not None:
                self._open[run], self._before[run] = held
        self._counted = dict(self._before)

    def apply(self, step: Step) -> StepResult:
        """Apply one step."""
        match step:
            case Insert() | Replace(seen=0):
                return self._create(step)
            case Finish():
                return self._finish(step)
            case Replace():
                return self._change(step)
            case Look():
                return Found(effect=self._stands(step.key), at=self._at)
            case _:
                assert_never(step)

    def count_effects(self) -> None:
        """Write down how many effects each run has now."""
        for run, count in self._counted.items():
            if count > self._before[run]:
                verbs.count_effects(self._connection, run.bytes, count)

    def _create(self, step: Insert | Replace) -> StepResult:
        intent = step.intent if isinstance(step, Insert) else step.effect.intent
        run = intent.run_id
        must_be_open = isinstance(step, Insert) or step.open_run is not None
        if run is not None and (run not in self._open or (must_be_open and not self._open[run])):
            stands = self._stands(intent.key)
            return RunClosed(at=self._at) if stands is None else Found(effect=stands, at=self._at)
        if step.hold is not None and not verbs.is_held(self._connection, step.hold.bytes):
            stands = self._stands(intent.key)
            return HoldGone(at=self._at) if stands is None else Found(effect=stands, at=self._at)
        sibling = self._sibling(intent) if step.alone else None
        if sibling is not None:
            stands = self._stands(intent.key)
            return sibling if stands is None else Found(effect=stands, at=self._at)
        if not self._has_consent(step, intent.key):
            stands = self._stands(intent.key)
            return Overruled(at=self._at) if stands is None else Found(effect=stands, at=self._at)
        count = None if run is None else self._counted[run] + 1
        made = inserted(step, self._at, count) if isinstance(step, Insert) else replaced(step, 1, count, self._at)
        row = (*_plain(row_of(made)), len(earlier_of(made.life)))
        if not verbs.insert_effect(self._connection, row):
            return Found(effect=self._stands(intent.key), at=self._at)
        if run is not None and count is not None:
            self._counted[run] = count
        if isinstance(step, Replace):
            self._keep_history(step)
            self._stage(step, made)
        return Written(effect=made, at=self._at)

    def _has_consent(self, step: Insert | Replace, key: Key) -> bool:
        consent = step.consent
        if consent is None:
            return True
        approval = consent.approval
        is_approved = approval is None or verbs.is_approved(self._connection, approval.bytes)
        return is_approved and (consent.edits is None or verbs.count_edits(self._connection, key) <= consent.edits)

    def _sibling(self, intent: Intent) -> Sibling | None:
        if intent.run_id is None or not self._is_doubt_anywhere():
            return None
        asked = (intent.run_id.bytes, intent.tool, intent.identity_digest, self._at)
        row = verbs.find_sibling(self._connection, intent.key, asked)
        return None if row is None else Sibling(effect=self._effect_of(row), at=self._at)

    def _is_doubt_anywhere(self) -> bool:
        """Say whether anything is in doubt, which is rare: one look tells all steps that they need not look."""
        if self._has_doubt is None:
            self._has_doubt = verbs.has_doubt(self._connection, self._at)
        return self._has_doubt

    def _finish(self, step: Finish) -> StepResult:
        row = (step.outcome, self._at, step.key, step.token.bytes, step.fence)
        done = verbs.finish_effect(self._connection, row)
        if done is None:
            return Found(effect=self._stands(step.key), at=self._at)
        effect = self._effect_of(done)
        self._stage(step, effect)
        return Written(effect=effect, at=self._at)

    def _stage(self, step: Finish | Replace, effect: Effect) -> None:
        if step.staging is not None:
            latest = effect.life.latest if isinstance(step, Finish) else None
            ended_at = None if latest is None else latest.deadline
            stage(self._connection, effect, step.staging, ended_at, self._at)

    def _change(self, step: Replace) -> StepResult:
        intent = step.effect.intent
        if step.open_run is not None and not self._open.get(step.open_run, False):
            stands = self._stands(intent.key)
            is_as_seen = stands is None or stands.version == step.seen
            return RunClosed(at=self._at) if is_as_seen else Found(effect=stands, at=self._at)
        if step.hold is not None and not verbs.is_held(self._connection, step.hold.bytes):
            stands = self._stands(intent.key)
            is_as_seen = stands is None or stands.version == step.seen
            return HoldGone(at=self._at) if is_as_seen else Found(effect=stands, at=self._at)
        sibling = self._sibling(intent) if step.alone else None
        if sibling is not None:
            stands = self._stands(intent.key)
            return sibling if stands is not None and stands.version == step.seen else Found(effect=stands, at=self._at)
        if not self._has_consent(step, intent.key):
            stands = self._stands(intent.key)
            is_as_seen = stands is None or stands.version == step.seen
            return Overruled(at=self._at) if is_as_seen else Found(effect=stands, at=self._at)
        row = (*_plain(row_of(step.effect)), len(earlier_of(step.effect.life)), step.seen)
        written = verbs.replace_effect(self._connection, row)
        if written is None:
            return Found(effect=self._stands(intent.key), at=self._at)
        self._keep_history(step)
        effect = replaced(step, *written)
        self._stage(step, effect)
        return Written(effect=effect, at=self._at)

    def _keep_history(self, step: Replace) -> None:
        key = step.effect.intent.key
        earlier = earlier_of(step.effect.life)
        verbs.forget_attempts(self._connection, key, [row[0].bytes for row in earlier])
        verbs.keep_attempts(self._connection, [(key, *_plain(row)) for row in earlier])
        for proof in step.evidence:
            verbs.append_evidence(self._connection, (key, *_plain((proof.at, proof.token, proof.kind, proof.body))))

    def _stands(self, key: Key) -> Effect | None:
        row = verbs.find_effect(self._connection, key)
        return None if row is None else self._effect_of(row)

    def _effect_of(self, row: verbs.Row) -> Effect:
        return effect_of(row, verbs.find_attempts(self._connection, row[0]) if row[-1] else ())


def _plain(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the row as a bare connection stores it: UUIDs as their bytes."""
    return tuple(value.bytes if isinstance(value, UUID) else value for value in row)
