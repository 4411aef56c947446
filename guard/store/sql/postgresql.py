"""PostgreSQL: lanes that hold a connection each for the hot function, and a pool for all other statements."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import asyncpg
from sqlalchemy import AdaptedConnection, Connection, event, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from guard.core.effects import Instant
from guard.ports.steps import Step, StepResult, Written
from guard.ports.store import StoreUnavailable
from guard.store.sql.address import ServerAddress
from guard.store.sql.apply_postgresql import answers_of, arguments_of, stagings_of
from guard.store.sql.clock import database_now
from guard.store.sql.database import ResultT
from guard.store.sql.faults import patiently, translated
from guard.store.sql.held import ANSWER_SECONDS, HeldConnection
from guard.store.sql.plain_postgresql import WIDTH, Plain, columns_of, plain, results_of

_LANES: Final = 1
"""Two batches in flight were smaller and more, and cost more than what they did at the same time."""
_CONNECT_SECONDS: Final = 2
_APPLY: Final = "select * from apply_steps_v2($1::uuid[], $2::integer[], $3::uuid[], $4::step_v2[])"
_APPLY_AND_STAGE: Final = f"""
    with applied as materialized ({_APPLY}),
    staged as materialized (
      select stage_messages_v1(s, a.stamp, a.f_deadline, a.f_run_id, a.f_run) as rows
        from applied a join unnest($5::staging_v1[]) s on s.place = a.place where a.answer = 1)
    select a.* from applied a cross join (select count(rows) from staged) counted"""  # noqa: S608
"""The count is asked for so that all rows are staged; steps that stage nothing are spared this."""
_APPLY_PLAIN: Final = f"select * from apply_plain_v1({', '.join(f'${place}' for place in range(1, WIDTH + 1))})"  # noqa: S608
_SETTINGS: Final = {"jit": "off", "lock_timeout": "2s", "statement_timeout": "10s"}
_LANE_SETTINGS: Final = {**_SETTINGS, "enable_seqscan": "off", "plan_cache_mode": "force_generic_plan"}
"""A plan that is made while a table is empty would be a scan of it, and stay one; to plan anew costs as much again."""
_RELAY_SETTINGS: Final = {
    **_LANE_SETTINGS,
    "enable_sort": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""A relay walks indexes and joins few rows to them: other plans are for tables that are not what they were."""


class PostgresDatabase:
    """A PostgreSQL database."""

    def __init__(self, address: ServerAddress) -> None:
        """Connect nothing yet: every connection is made when it is first needed."""
        lane_engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connector(address, _LANE_SETTINGS),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        self._connect_alone = connector(address, _SETTINGS)
        self._lanes = tuple(HeldConnection(lane_engine) for _ in range(_LANES))
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connector(address, _SETTINGS),
            pool_size=4,
            max_overflow=4,
            pool_timeout=_CONNECT_SECONDS,
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        self._relay_engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connector(address, _RELAY_SETTINGS),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
        )
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""
        return len(self._lanes)

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply a batch in one transaction and one round trip; what a plain batch leaves out, in another."""
        together = plain(steps)
        if together is None:
            return await self._apply_each(lane, steps)
        written = await self._apply_plain(lane, together)
        rest = iter(await self._apply_left(lane, [step for step, done in zip(steps, written, strict=True) if not done]))
        return [done or next(rest) for done in written]

    async def _apply_plain(self, lane: int, steps: Sequence[Plain]) -> list[Written | None]:
        """Write what is as assumed; nothing where another transaction makes one of the effects at this moment."""

        async def once() -> list[Written | None]:
            with translated():
                try:
                    return results_of(steps, await self._lanes[lane].call(_APPLY_PLAIN, *columns_of(steps)))
                except asyncpg.UniqueViolationError:
                    return [None] * len(steps)

        return await patiently(once)

    async def _apply_left(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply what a plain batch left out; once more where its reply is lost, so that what was written is told."""
        if not steps:
            return []
        try:
            return await self._apply_each(lane, steps)
        except StoreUnavailable:
            return await self._apply_each(lane, steps)

    async def _apply_each(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        arguments: tuple[list[Any], ...] = arguments_of(steps)
        stagings = stagings_of(steps)
        statement = _APPLY_AND_STAGE if stagings else _APPLY
        arguments = (*arguments, stagings) if stagings else arguments

        async def once() -> list[StepResult]:
            with translated():
                return answers_of(steps, await self._lanes[lane].call(statement, *arguments))

        return await patiently(once)

    async def read(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in one statement."""
        with translated():
            async with self._single.connect() as connection:
                return await connection.run_sync(work)

    async def read_at_once(self, work: Callable[[Connection], ResultT]) -> ResultT:
        """Do work that only reads, in several statements that see one moment."""
        with translated():
            async with self._snapshots.begin() as connection:
                return await connection.run_sync(work)

    async def write(self, work: Callable[[Connection, Instant], ResultT]) -> ResultT:
        """Do work in one transaction, at the database's time; it is done again where others stood in its way."""

        async def once() -> ResultT:
            with translated():
                async with self._engine.begin() as connection:
                    return await connection.run_sync(lambda held: work(held, read_clock(held)))

        return await patiently(once)

    def held(self) -> HeldConnection:
        """Return a connection of its own for a relay, to be closed by whoever asks for it."""
        return HeldConnection(self._relay_engine)

    async def listener(self) -> "asyncpg.Connection[asyncpg.Record]":
        """Connect outside of all pools, to listen. Raises the driver's errors."""
        connection: asyncpg.Connection[asyncpg.Record] = await self._connect_alone()
        return connection

    async def close(self) -> None:
        """Give back all connections."""
        for lane in self._lanes:
            await lane.close()
        await self._engine.dispose()


def read_clock(connection: Connection) -> Instant:
    """Select the time of this transaction."""
    return Instant(connection.execute(select(database_now())).scalar_one())


def _refuse_closed(connection: DBAPIConnection, record: object, proxy: object) -> None:
    """Refuse a pooled connection that the server has closed, and so all of its age: a ping without a round trip."""
    del record, proxy
    if isinstance(connection, AdaptedConnection) and connection.driver_connection.is_closed():
        raise InvalidatePoolError


def connector(address: ServerAddress, settings: dict[str, str]) -> Callable[[], Any]:
    """Return what makes a connection with these settings."""

    async def connect() -> Any:
        return await asyncpg.connect(
            address.dsn, timeout=_CONNECT_SECONDS, command_timeout=ANSWER_SECONDS, server_settings=settings
        )

    return connect
