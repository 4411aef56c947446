"""PostgreSQL: lanes that hold a connection each for the hot function, and a pool for all other statements."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import asyncpg
from sqlalchemy import AdaptedConnection, Connection, event, select
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from guard.core.effects import Instant
from guard.ports.steps import Step, StepResult
from guard.store.sql.address import ServerAddress
from guard.store.sql.apply_postgresql import answers_of, arguments_of
from guard.store.sql.clock import database_now
from guard.store.sql.database import ResultT
from guard.store.sql.faults import patiently, translated

_LANES: Final = 1
"""Two batches in flight were smaller and more, and cost more than what they did at the same time."""
_CONNECT_SECONDS: Final = 2
_ANSWER_SECONDS: Final = 12
"""Above the server's own statement time-out: what takes longer comes from a server that is gone."""
_APPLY: Final = "select * from apply_steps_v2($1::uuid[], $2::integer[], $3::uuid[], $4::step_v2[])"
_SETTINGS: Final = {"jit": "off", "lock_timeout": "2s", "statement_timeout": "10s"}
_LANE_SETTINGS: Final = {**_SETTINGS, "enable_seqscan": "off"}
"""A plan that is made while a table is empty would be a scan of it, and stay one."""


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
        self._lanes = tuple(_Lane(lane_engine) for _ in range(_LANES))
        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connector(address, _SETTINGS),
            pool_size=4,
            max_overflow=4,
            pool_timeout=_CONNECT_SECONDS,
        )
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)
        self._single = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = self._engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)

    @property
    def lanes(self) -> int:
        """How many batches may be in flight at once."""
        return len(self._lanes)

    async def apply(self, lane: int, steps: Sequence[Step]) -> list[StepResult]:
        """Apply a batch in one transaction and one round trip."""
        arguments = arguments_of(steps)

        async def once() -> list[StepResult]:
            with translated():
                return answers_of(steps, await self._lanes[lane].call(*arguments))

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

    async def close(self) -> None:
        """Give back all connections."""
        for lane in self._lanes:
            await lane.close()
        await self._engine.dispose()


def read_clock(connection: Connection) -> Instant:
    """Select the time of this transaction."""
    return Instant(connection.execute(select(database_now())).scalar_one())


class _Lane:
    """One held connection, made anew when it is needed and the last one is gone."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._turn = asyncio.Lock()
        self._held: AsyncConnection | None = None
        self._driver: Any = None

    async def call(self, *arguments: list[Any]) -> list[Any]:
        """Apply a batch of steps, and select what became of each."""
        async with self._turn:
            if self._driver is None or self._driver.is_closed():
                await self._connect()
            try:
                rows: list[Any] = await self._driver.fetch(_APPLY, *arguments, timeout=_ANSWER_SECONDS)
            except asyncpg.PostgresError:
                raise
            except BaseException:
                self._driver.terminate()
                raise
            return rows

    async def close(self) -> None:
        """Give the connection back."""
        async with self._turn:
            held, self._held, self._driver = self._held, None, None
            if held is not None:
                await held.close()

    async def _connect(self) -> None:
        await self._drop()
        self._held = await self._engine.connect()
        self._driver = (await self._held.get_raw_connection()).driver_connection

    async def _drop(self) -> None:
        """Let go of a connection of which nobody knows in what state it is."""
        held, driver, self._held, self._driver = self._held, self._driver, None, None
        if driver is not None:
            driver.terminate()
        if held is not None:
            await held.invalidate()
            await held.close()


def _refuse_closed(connection: DBAPIConnection, record: object, proxy: object) -> None:
    """Refuse a pooled connection that the server has closed, and so all of its age: a ping without a round trip."""
    del record, proxy
    if isinstance(connection, AdaptedConnection) and connection.driver_connection.is_closed():
        raise InvalidatePoolError


def connector(address: ServerAddress, settings: dict[str, str]) -> Callable[[], Any]:
    """Return what makes a connection with these settings."""

    async def connect() -> Any:
        return await asyncpg.connect(
            address.dsn, timeout=_CONNECT_SECONDS, command_timeout=_ANSWER_SECONDS, server_settings=settings
        )

    return connect
