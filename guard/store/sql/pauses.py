"""Calls at which forks stopped, one row a key; what a person answered stands in it."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import AttemptToken, Instant, Key, RunId, TenantId
from guard.core.pauses import Pause, PauseAnswer, Stop, may_give_way
from guard.ports.pauses import PauseFilter
from guard.store.sql.cursors import AfterKey, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.recording_tables import fork_pauses
from twiceshy_contract.forks import PauseWord

_WORDS: Final[dict[int, PauseWord]] = {1: "inject", 2: "deny", 3: "allow"}
_CODES: Final = {word: code for code, word in _WORDS.items()}
_UNANSWERED: Final[dict[str, None]] = dict.fromkeys(("answer", "outcome", "reason", "answered_by", "answered_at"))


class SqlPauses:
    """The port's pauses over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def keep(self, stop: Stop) -> Pause:
        """Keep a stop, unless its key has a pause that does not give way to it; return the pause of the key."""

        def work(connection: Connection, at: Instant) -> Pause:
            _insert(connection, at, stop)
            pause = _select(connection, stop.run, stop.key, hold=True)
            if pause is None:
                raise LookupError(f"the stop at {stop.key.hex()} was not kept")
            if not may_give_way(pause, stop):
                return pause
            _update(connection, stop.run, stop.key, {**_row(stop, at), **_UNANSWERED})
            return Pause(stop=stop, at=at)

        return await self._database.write(work)

    async def find(self, run: RunId, key: Key) -> Pause | None:
        """Return the pause of a key in a run."""
        return await self._database.read(lambda connection: _select(connection, run, key))

    async def page(self, run: RunId, chosen: PauseFilter) -> tuple[list[Pause], str | None]:
        """Return pauses of a run, oldest first, and the cursor of the next page. Raises ValueError for another's."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterKey | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of pauses before.")
        found = await self._database.read(lambda connection: _select_page(connection, run, chosen, place))
        if len(found) <= chosen.limit:
            return found, None
        last_shown = found[chosen.limit - 1]
        return found[: chosen.limit], cursor_of(AfterKey(last_shown.at, last_shown.stop.key))

    async def answer(self, run: RunId, key: Key, answer: PauseAnswer, by: str | None) -> Pause | None:
        """Answer a pause that is open; return it as it stands (an answered one unchanged), or None: there is none."""

        def work(connection: Connection, at: Instant) -> Pause | None:
            pause = _select(connection, run, key, hold=True)
            if pause is None or pause.answer is not None:
                return pause
            said = {"answer": _CODES[answer.word], "outcome": answer.outcome, "reason": answer.reason}
            _update(connection, run, key, {**said, "answered_by": by, "answered_at": at})
            return _select(connection, run, key)

        return await self._database.write(work)

    async def spend(self, run: RunId, key: Key, token: AttemptToken) -> AttemptToken | None:
        """Let an attempt use an answer, unless another was the first to do so; return which was (None: no answer)."""

        def work(connection: Connection, _at: Instant) -> AttemptToken | None:
            pause = _select(connection, run, key, hold=True)
            if pause is None or pause.answer is None or pause.spent_by is not None:
                return None if pause is None else pause.spent_by
            _update(connection, run, key, {"spent_by": token})
            return token

        return await self._database.write(work)


def _row(stop: Stop, at: Instant) -> dict[str, object]:
    return {
        "run_id": stop.run,
        "key": stop.key,
        "tenant": stop.tenant,
        "tool": stop.tool,
        "arguments": stop.arguments,
        "identity_digest": stop.identity_digest,
        "arguments_digest": stop.arguments_digest,
        "rule": stop.rule,
        "at": at,
    }


def _pause_of(row: sa.Row[Any]) -> Pause:
    stop = Stop(
        run=row.run_id,
        tenant=TenantId(row.tenant),
        key=Key(row.key),
        tool=row.tool,
        arguments=row.arguments,
        identity_digest=row.identity_digest,
        arguments_digest=row.arguments_digest,
        rule=row.rule,
    )
    word = None if row.answer is None else _WORDS[row.answer]
    return Pause(
        stop=stop,
        at=Instant(row.at),
        answer=None if word is None else PauseAnswer(word=word, outcome=row.outcome, reason=row.reason),
        answered_by=row.answered_by,
        answered_at=row.answered_at,
        spent_by=row.spent_by,
    )


def _insert(connection: Connection, at: Instant, stop: Stop) -> None:
    """Keep a stop where its key has no pause."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    connection.execute(dialect.insert(fork_pauses).values(_row(stop, at)).on_conflict_do_nothing())


def _update(connection: Connection, run: RunId, key: Key, values: dict[str, Any]) -> None:
    """Write what has changed of a pause."""
    connection.execute(
        sa.update(fork_pauses).where(fork_pauses.c.run_id == run, fork_pauses.c.key == key).values(**values)
    )


def _select(connection: Connection, run: RunId, key: Key, *, hold: bool = False) -> Pause | None:
    """Select the pause of a key; hold it where it is to be written."""
    statement = sa.select(fork_pauses).where(fork_pauses.c.run_id == run, fork_pauses.c.key == key)
    row = connection.execute(statement.with_for_update() if hold else statement).first()
    return None if row is None else _pause_of(row)


def _select_page(connection: Connection, run: RunId, chosen: PauseFilter, last: AfterKey | None) -> list[Pause]:
    """Select the pauses of a run that come next, oldest first, and one more."""
    statement = sa.select(fork_pauses).where(fork_pauses.c.run_id == run)
    if chosen.state is not None:
        is_open = fork_pauses.c.answer.is_(None)
        statement = statement.where(is_open if chosen.state == "open" else ~is_open)
    if last is not None:
        behind = sa.tuple_(sa.literal(last.began_at, sa.BigInteger), sa.literal(last.key, sa.LargeBinary))
        statement = statement.where(sa.tuple_(fork_pauses.c.at, fork_pauses.c.key) > behind)
    statement = statement.order_by(fork_pauses.c.at, fork_pauses.c.key).limit(chosen.limit + 1)
    return [_pause_of(row) for row in connection.execute(statement)]
