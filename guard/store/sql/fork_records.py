"""The records of forks: effects of their ancestors, each given once for one call, and how many calls were let run."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import AttemptToken, Effect, Key, RunId
from guard.core.forks import Fork, Span
from guard.ports.forks import Gave, Given, Wanted
from guard.store.sql.codes import FAILED, RULE_CODES, SUCCEEDED
from guard.store.sql.database import Database
from guard.store.sql.policy_tables import fork_answers, fork_calls
from guard.store.sql.rows import effect_of
from guard.store.sql.tables import effects, run_tools, runs

_forks: Final = msgspec.json.Decoder(Fork)


class SqlForks:
    """The port's forks over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def ancestors(self, run: RunId) -> list[Fork]:
        """Return the run as a fork, its parent as one, and so on to the first that is none."""
        return await self._database.read_at_once(lambda connection: _ancestors(connection, run))

    async def behind(self, runs: Sequence[RunId]) -> list[RunId]:
        """Return the runs that any of these goes on from as a fork, those that these go on from, and so on."""
        return await self._database.read_at_once(lambda connection: _behind(connection, runs))

    async def pinned(self, run: RunId, tool: str) -> int | None:
        """Return the version of a tool that a run keeps to."""
        return await self._database.read(lambda connection: _select_pinned(connection, run, tool))

    async def pins(self, runs: Sequence[RunId], tool: str) -> set[int]:
        """Return the versions of a tool that these runs keep to."""
        return await self._database.read(lambda connection: _select_pins(connection, runs, tool))

    async def gave(self, fork: RunId, keys: Sequence[Key]) -> dict[Key, Gave]:
        """Return for which of these calls the fork was given an effect."""
        return await self._database.read(lambda connection: _select_gave(connection, fork, keys))

    async def given(self, fork: RunId, key: Key) -> Given | None:
        """Return what the fork was given for the call of a key."""
        return await self._database.read(lambda connection: _select_given(connection, fork, key))

    async def find(
        self, fork: RunId, spans: Sequence[Span], wanted: Wanted, besides: Sequence[Key] = (), *, in_place: bool
    ) -> Effect | None:
        """Return the first effect of the spans that may answer the call and was not given yet, nor is one of `besides`.

        `in_place` it is an effect of the call's own place, whatever became of it. Else it is one with the call's
        identity and an outcome: that of its place, else with the call's very arguments, else the earliest.
        """
        select = _select_in_place if in_place else _select_alike
        return await self._database.read_at_once(
            lambda connection: _first(select(connection, fork, span, wanted, besides) for span in spans)
        )

    async def give(self, fork: RunId, key: Key, origin: Key, token: AttemptToken) -> Given | None:
        """Give an effect for the call of a key, unless it has one; None where the effect was given for another."""

        def work(connection: Connection, _at: object) -> Given | None:
            _insert_given(connection, fork, key, origin, token)
            return _select_given(connection, fork, key)

        return await self._database.write(work)

    async def deliver(self, fork: RunId, origins: Sequence[Key]) -> None:
        """Note that the fork knows the outcomes of these effects of its record."""
        await self._database.write(lambda connection, _at: _update_delivered(connection, fork, origins))

    async def let(self, fork: RunId, tool: str) -> list[Key]:
        """Return the keys of the tool's calls that were let run in the fork."""
        return await self._database.read(lambda connection: _select_calls(connection, fork, tool))

    async def is_let(self, fork: RunId, key: Key) -> bool:
        """Say whether the call of a key was let run in the fork, whatever its tool."""
        return await self._database.read(lambda connection: _select_is_let(connection, fork, key))

    async def let_run(self, fork: RunId, tool: str, key: Key, most: int | None) -> bool:
        """Let the call of a key run, unless as many others as `most` are let; say whether it may."""

        def work(connection: Connection, _at: object) -> bool:
            _hold_run(connection, fork)
            found = _select_calls(connection, fork, tool)
            if key not in found and (most is None or len(found) < most):
                _insert_call(connection, fork, tool, key)
                return True
            return key in found

        return await self._database.write(work)


def _ancestors(connection: Connection, run: RunId) -> list[Fork]:
    found: list[Fork] = []
    fork = _select_fork(connection, run)
    while fork is not None:
        found.append(fork)
        fork = _select_fork(connection, fork.parent_id)
    return found


def _behind(connection: Connection, of: Sequence[RunId]) -> list[RunId]:
    found: dict[RunId, None] = {}
    latest = list(of)
    while latest:
        latest = [run for run in _select_parents(connection, latest) if run not in found]
        found |= dict.fromkeys(latest)
    return list(found)


def _first(found: Any) -> Effect | None:
    return next((effect for effect in found if effect is not None), None)


def _select_fork(connection: Connection, run: RunId) -> Fork | None:
    """Select what a run is as a fork."""
    text = connection.execute(sa.select(runs.c.fork).where(runs.c.id == run)).scalar()
    return None if text is None else _forks.decode(text)


def _select_parents(connection: Connection, of: Sequence[RunId]) -> list[RunId]:
    """Select the runs that some runs go on from as forks."""
    statement = sa.select(runs.c.fork).where(runs.c.id.in_(of), runs.c.fork.is_not(None))
    return list(dict.fromkeys(_forks.decode(text).parent_id for text in connection.execute(statement).scalars()))


def _select_pinned(connection: Connection, run: RunId, tool: str) -> int | None:
    """Select the version of a tool that a run keeps to."""
    chosen = (run_tools.c.run_id == run, run_tools.c.tool == tool)
    return connection.execute(sa.select(run_tools.c.version).where(*chosen)).scalar()


def _select_pins(connection: Connection, chosen: Sequence[RunId], tool: str) -> set[int]:
    """Select the versions of a tool that some runs keep to."""
    statement = sa.select(run_tools.c.version).where(run_tools.c.run_id.in_(chosen), run_tools.c.tool == tool)
    return set(connection.execute(statement.distinct()).scalars())


def _select_gave(connection: Connection, fork: RunId, keys: Sequence[Key]) -> dict[Key, Gave]:
    """Select for which of the calls the fork was given an effect, and what became of that."""
    given = fork_answers.c
    statement = (
        sa.select(given.key, given.token, given.delivered, effects.c.state, effects.c.arguments_digest)
        .join(effects, effects.c.key == given.origin)
        .where(given.run_id == fork, given.key.in_(keys))
    )
    return {
        Key(row.key): Gave(
            token=AttemptToken(row.token),
            delivered=bool(row.delivered),
            is_failed=row.state == FAILED,
            arguments_digest=row.arguments_digest,
        )
        for row in connection.execute(statement)
    }


def _select_given(connection: Connection, fork: RunId, key: Key) -> Given | None:
    """Select the effect that the fork was given for the call of a key, and for whom."""
    statement = (
        sa.select(effects, fork_answers.c.token, fork_answers.c.delivered.label("is_delivered"))
        .join(fork_answers, fork_answers.c.origin == effects.c.key)
        .where(fork_answers.c.run_id == fork, fork_answers.c.key == key)
    )
    row = connection.execute(statement).first()
    if row is None:
        return None
    return Given(origin=effect_of(row), token=AttemptToken(row.token), delivered=bool(row.is_delivered))


def _not_given(fork: RunId, span: Span, wanted: Wanted, besides: Sequence[Key]) -> sa.Select[Any]:
    """Select the effects of the tool in the span that the fork was not given yet."""
    taken = sa.exists().where(fork_answers.c.run_id == fork, fork_answers.c.origin == effects.c.key)
    statement = sa.select(effects).where(
        effects.c.run_id == span.run, effects.c.step > span.after, effects.c.tool == wanted.tool, ~taken
    )
    if span.until is not None:
        statement = statement.where(effects.c.step <= span.until)
    return statement.where(effects.c.key.not_in(besides)) if besides else statement


def _of_place(wanted: Wanted) -> sa.ColumnElement[bool]:
    """Say that an effect has the call's place: it is named by the same rule and the same name."""
    named = {
        "once": effects.c.identity_digest == wanted.identity_digest,
        "step": effects.c.caller_step == wanted.step,
        "business_key": effects.c.business_key == wanted.business_key,
    }[wanted.rule]
    is_same_rule = effects.c.rule == RULE_CODES[wanted.rule]
    return sa.and_(is_same_rule, named, effects.c.occurrence == wanted.occurrence)


def _select_in_place(
    connection: Connection, fork: RunId, span: Span, wanted: Wanted, besides: Sequence[Key]
) -> Effect | None:
    """Select the first effect of the call's own place."""
    statement = _not_given(fork, span, wanted, besides).where(_of_place(wanted)).order_by(effects.c.step).limit(1)
    row = connection.execute(statement).first()
    return None if row is None else effect_of(row)


def _select_alike(
    connection: Connection, fork: RunId, span: Span, wanted: Wanted, besides: Sequence[Key]
) -> Effect | None:
    """Select the effect with the call's identity and an outcome that fits best."""
    is_same = effects.c.arguments_digest == wanted.arguments_digest
    ranks = (sa.case((condition, 0), else_=1) for condition in (_of_place(wanted), is_same))
    statement = (
        _not_given(fork, span, wanted, besides)
        .where(
            effects.c.identity_digest == wanted.identity_digest,
            effects.c.state.in_((SUCCEEDED, FAILED)),
            effects.c.outcome.is_not(None),
        )
        .order_by(*ranks, effects.c.step)
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None else effect_of(row)


def _insert_given(connection: Connection, fork: RunId, key: Key, origin: Key, token: AttemptToken) -> None:
    """Give the effect for the call, unless the call has one or the effect was given."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {"run_id": fork, "key": key, "origin": origin, "token": token, "delivered": False}
    connection.execute(dialect.insert(fork_answers).values(row).on_conflict_do_nothing())


def _update_delivered(connection: Connection, fork: RunId, origins: Sequence[Key]) -> None:
    """Note that the outcomes of these effects are known."""
    chosen = (fork_answers.c.run_id == fork, fork_answers.c.origin.in_(origins), ~fork_answers.c.delivered)
    connection.execute(sa.update(fork_answers).where(*chosen).values(delivered=True))


def _select_calls(connection: Connection, fork: RunId, tool: str) -> list[Key]:
    """Select the keys of the tool's calls that were let run."""
    chosen = (fork_calls.c.run_id == fork, fork_calls.c.tool == tool)
    return [Key(key) for key in connection.execute(sa.select(fork_calls.c.key).where(*chosen)).scalars()]


def _select_is_let(connection: Connection, fork: RunId, key: Key) -> bool:
    """Select whether a call was let run."""
    chosen = sa.select(fork_calls.c.key).where(fork_calls.c.run_id == fork, fork_calls.c.key == key)
    return bool(connection.execute(sa.select(chosen.exists())).scalar_one())


def _hold_run(connection: Connection, fork: RunId) -> None:
    """Let nobody else count the fork's calls until this transaction ends; on SQLite it holds all of it already."""
    connection.execute(sa.select(runs.c.id).where(runs.c.id == fork).with_for_update(key_share=True))


def _insert_call(connection: Connection, fork: RunId, tool: str, key: Key) -> None:
    """Note that a call is let run."""
    connection.execute(sa.insert(fork_calls).values(run_id=fork, tool=tool, key=key))
