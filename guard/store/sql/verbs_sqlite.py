"""The hot verbs on SQLite as plain statements, each with the sentence that it answers."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from guard.store.sql.codes import EXECUTING, IN_DOUBT, ONCE, PENDING, REPORTED_SUCCESS, RUN_OPEN, SUCCEEDED, UNREPORTED
from guard.store.sql.tables import effects

Row = Sequence[Any]

_RUN_BYTES: Final = 6
"""What of a key is its run's start: the keys of a run lie together."""
_COLUMNS: Final = tuple(column.name for column in effects.columns)
_NAMES: Final = ", ".join(_COLUMNS)
_FIXED: Final = frozenset(
    {
        "key", "version", "tenant", "run_id", "run", "step", "tool", "rule", "caller_step", "business_key",
        "occurrence", "generation", "began_at", "slot",
    }
)  # fmt: skip
"""What no later write changes; the version is counted."""
_CHANGES: Final = ", ".join(f"{name} = ?{at}" for at, name in enumerate(_COLUMNS, 1) if name not in _FIXED)
_SEEN: Final = f"?{len(_COLUMNS) + 1}"

_HOLD_RUN: Final = "SELECT state, effects FROM runs WHERE id = ?"
_COUNT_EFFECTS: Final = "UPDATE runs SET effects = ? WHERE id = ?"
_INSERT_EFFECT: Final = (
    f"INSERT INTO effects ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))}) ON CONFLICT DO NOTHING"  # noqa: S608
)
_FINISH_EFFECT: Final = f"""
    UPDATE effects
       SET state = {SUCCEEDED}, report = {REPORTED_SUCCESS}, reported_at = ?2, ended_at = ?2, outcome = ?1, closed = 0,
           retry_at = NULL, version = version + 1
     WHERE key = ?3 AND attempt = ?4 AND fence = ?5 AND state IN ({EXECUTING}, {IN_DOUBT}) AND report = {UNREPORTED}
       AND NOT settled
    RETURNING {_NAMES}"""  # noqa: S608
_REPLACE_EFFECT: Final = f"""
    UPDATE effects SET version = version + 1, {_CHANGES} WHERE key = ?1 AND version = {_SEEN}
    RETURNING version, step, began_at"""  # noqa: S608
_FIND_EFFECT: Final = f"SELECT {_NAMES} FROM effects WHERE key = ?"  # noqa: S608
_HAS_DOUBT: Final = f"""
    SELECT EXISTS (SELECT 1 FROM effects WHERE state IN ({PENDING}, {IN_DOUBT}) AND state = {IN_DOUBT})
        OR EXISTS (SELECT 1 FROM effects WHERE state = {EXECUTING} AND lease_expires_at <= ?)"""  # noqa: S608
_FIND_SIBLING: Final = f"""
    SELECT {_NAMES} FROM effects
     WHERE state IN ({PENDING}, {IN_DOUBT}) AND state = {IN_DOUBT} AND key BETWEEN ?5 AND ?6
       AND +run_id = ?1 AND tool = ?2 AND identity_digest <> ?3 AND rule = {ONCE} AND NOT closed
    UNION ALL
    SELECT {_NAMES} FROM effects
     WHERE state = {EXECUTING} AND lease_expires_at <= ?4
       AND +run_id = ?1 AND tool = ?2 AND identity_digest <> ?3 AND rule = {ONCE} LIMIT 1"""  # noqa: S608
_IS_HELD: Final = "SELECT 1 FROM holds WHERE id = ? AND state = 1"
_IS_APPROVED: Final = "SELECT 1 FROM approvals WHERE id = ? AND state = 2"
_COUNT_EDITS: Final = "SELECT count(*) FROM approvals WHERE edited_key = ? AND state = 2"
_FIND_ATTEMPTS: Final = """
    SELECT token, fence, granted_at, deadline, report, reported_at, settled FROM attempts
     WHERE key = ? ORDER BY fence, granted_at DESC, token"""
_KEEP_ATTEMPT: Final = """
    INSERT OR REPLACE INTO attempts (key, token, fence, granted_at, deadline, report, reported_at, settled)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_FIND_TOKENS: Final = "SELECT token FROM attempts WHERE key = ?"
_FORGET_ATTEMPT: Final = "DELETE FROM attempts WHERE key = ? AND token = ?"
_APPEND_EVIDENCE: Final = """
    INSERT INTO evidence (key, number, at, token, kind, body)
    SELECT ?1, 1 + last, ?2, ?3, ?4, ?5
    FROM (SELECT coalesce(max(number), 0) AS last FROM evidence WHERE key = ?1) WHERE last < 100"""


def hold_run(connection: sqlite3.Connection, run: bytes) -> tuple[bool, int] | None:
    """Select whether the run is open, and how many effects it began."""
    row = connection.execute(_HOLD_RUN, (run,)).fetchone()
    return None if row is None else (row[0] == RUN_OPEN, row[1])


def count_effects(connection: sqlite3.Connection, run: bytes, count: int) -> None:
    """Write down how many effects the run began."""
    connection.execute(_COUNT_EFFECTS, (count, run))


def insert_effect(connection: sqlite3.Connection, row: Row) -> bool:
    """Make the effect unless there is one of its key; say whether it was made."""
    return connection.execute(_INSERT_EFFECT, row).rowcount == 1


def finish_effect(connection: sqlite3.Connection, row: Row) -> Row | None:
    """Record success (outcome, now, key, token, fence) of the latest attempt, if it said nothing yet."""
    found = connection.execute(_FINISH_EFFECT, row).fetchall()
    return found[0] if found else None


def replace_effect(connection: sqlite3.Connection, row: Row) -> tuple[int, int | None, int] | None:
    """Write the effect over the version that was seen; return its version, step and beginning."""
    found = connection.execute(_REPLACE_EFFECT, row).fetchall()
    return found[0] if found else None


def find_effect(connection: sqlite3.Connection, key: bytes) -> Row | None:
    """Select the effect as it stands."""
    row: Row | None = connection.execute(_FIND_EFFECT, (key,)).fetchone()
    return row


def has_doubt(connection: sqlite3.Connection, at: int) -> bool:
    """Select whether any effect is in doubt, or its lease has run out unseen."""
    return bool(connection.execute(_HAS_DOUBT, (at,)).fetchone()[0])


def find_sibling(connection: sqlite3.Connection, key: bytes, row: Row) -> Row | None:
    """Select an effect of the run and tool (run, tool, identity, now) with other arguments that is in open doubt.

    A `+` keeps the planner from the index of runs: a run is longer than the list of what is in doubt.
    """
    start = key[:_RUN_BYTES]
    ends = (start, start + b"\xff" * (32 - _RUN_BYTES))
    found: Row | None = connection.execute(_FIND_SIBLING, (*row, *ends)).fetchone()
    return found


def is_held(connection: sqlite3.Connection, hold: bytes) -> bool:
    """Select whether a hold is held and not committed."""
    return connection.execute(_IS_HELD, (hold,)).fetchone() is not None


def is_approved(connection: sqlite3.Connection, approval: bytes) -> bool:
    """Select whether an approval is approved, and was not taken back since."""
    return connection.execute(_IS_APPROVED, (approval,)).fetchone() is not None


def count_edits(connection: sqlite3.Connection, key: bytes) -> int:
    """Select how many approvals put arguments that name this effect in the place of another's."""
    found: tuple[int] = connection.execute(_COUNT_EDITS, (key,)).fetchone()
    return found[0]


def find_attempts(connection: sqlite3.Connection, key: bytes) -> list[Row]:
    """Select the attempts that came before the latest, in the order of their fences."""
    return connection.execute(_FIND_ATTEMPTS, (key,)).fetchall()


def keep_attempts(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Write down the attempts that came before the latest."""
    connection.executemany(_KEEP_ATTEMPT, rows)


def forget_attempts(connection: sqlite3.Connection, key: bytes, kept: Sequence[bytes]) -> None:
    """Remove the attempts that are no longer among the earlier ones."""
    tokens = [token for (token,) in connection.execute(_FIND_TOKENS, (key,))]
    connection.executemany(_FORGET_ATTEMPT, [(key, token) for token in tokens if token not in kept])


def append_evidence(connection: sqlite3.Connection, row: Row) -> None:
    """Append proof (key, at, token, kind, body) that contradicts the effect."""
    connection.execute(_APPEND_EVIDENCE, row)
