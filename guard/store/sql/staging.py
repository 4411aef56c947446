"""Staging: how what an effect stages becomes rows, and the statements that write them on SQLite.

On PostgreSQL the function `stage_messages_v1` writes them, within the statement that applies the batch.
"""

import sqlite3
from typing import Any, Final

from guard.core.effects import Effect, Instant
from guard.core.outbox import Staged, Staging
from guard.ports.steps import Finish, Replace
from guard.store.sql.codes import PARKED, WAITING

_TOO_LATE: Final = "the proof of its effect came too late: redrive it if it is wanted still"
_IN_A_FORK: Final = "it was staged in a fork: redrive it if the world should have it"
_CLAIM_EFFECT: Final = """
    INSERT INTO stagings (effect, tenant, token, messages, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
_IS_FORK: Final = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND parent_id IS NOT NULL)"
_INSERT_MESSAGE: Final = f"""
    INSERT INTO outbox (message, epoch, tenant, effect, run_id, run, destination_id, destination, lane, type,
      recipient, content_type, headers, body, staged_at, state, attempts, note, in_lane, due_at)
    VALUES ({", ".join("?" * 20)})"""  # noqa: S608
_INSERT_MAIL: Final = """
    INSERT INTO mails (mail_id, tenant, message, epoch, thread, thread_name, run_id, run, destination, recipient,
      staged_at)
    VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?)"""


def staging_row(step: Finish | Replace, staging: Staging) -> tuple[Any, ...]:
    """Return a staging in the order of the type `staging_v1`, without the place of its step."""
    rows = [
        (
            row.message,
            row.destination_id,
            row.destination,
            row.lane,
            row.type,
            row.recipient,
            row.content_type,
            row.headers,
            row.body,
            row.delay,
            row.not_after,
            row.parked,
            row.mail_id,
            row.thread,
            row.thread_name,
        )
        for row in staging.rows
    ]
    key = step.key if isinstance(step, Finish) else step.effect.intent.key
    intent = None if isinstance(step, Finish) else step.effect.intent
    run_id, run = (None, None) if intent is None else (intent.run_id, intent.run)
    return (key, staging.tenant, staging.token, run_id, run, staging.ended_at, staging.admitted, rows)


def stage(connection: sqlite3.Connection, effect: Effect, staging: Staging, lease_end: int | None, at: Instant) -> None:
    """Write what an effect stages, unless it has staged before."""
    key, run_id = effect.intent.key, effect.intent.run_id
    token = None if staging.token is None else staging.token.bytes
    ids = b"".join(row.message.bytes for row in staging.rows)
    claimed = connection.execute(_CLAIM_EFFECT, (key, staging.tenant, token, ids, at))
    if claimed.rowcount != 1:
        return
    of_run = None if run_id is None else run_id.bytes
    is_fork = not staging.admitted and bool(connection.execute(_IS_FORK, (of_run,)).fetchone()[0])
    ended = lease_end if staging.ended_at is None else staging.ended_at
    for row in staging.rows:
        note = _why_parked(row, at, ended, is_fork=is_fork)
        values: tuple[Any, ...] = (
            row.message.bytes,
            1,
            staging.tenant,
            key,
            of_run,
            effect.intent.run,
            row.destination_id,
        )
        values += (row.destination, row.lane, row.type, row.recipient, row.content_type, row.headers, row.body, at)
        values += (WAITING if note is None else PARKED, 0, note, row.lane is not None and note is None, at + row.delay)
        connection.execute(_INSERT_MESSAGE, values)
        if row.mail_id is not None:
            thread = (row.thread, row.thread_name, of_run, effect.intent.run, row.destination, row.recipient, at)
            connection.execute(_INSERT_MAIL, (row.mail_id, staging.tenant, row.message.bytes, *thread))


def _why_parked(row: Staged, at: Instant, ended: int | None, *, is_fork: bool) -> str | None:
    if row.parked is not None:
        return row.parked
    if is_fork:
        return _IN_A_FORK
    return _TOO_LATE if ended is not None and at > ended + row.not_after else None
