"""A connection that is held for statements that come one after the other, each a transaction of its own."""

import asyncio
from typing import Any, Final

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

ANSWER_SECONDS: Final = 12
"""Above the server's own statement time-out: what takes longer comes from a server that is gone."""


class HeldConnection:
    """One held connection, made anew when it is needed and the last one is gone."""

    def __init__(self, engine: AsyncEngine) -> None:
        """Connect nothing yet."""
        self._engine = engine
        self._turn = asyncio.Lock()
        self._held: AsyncConnection | None = None
        self._driver: Any = None

    async def call(self, statement: str, *arguments: Any) -> list[Any]:
        """Execute one statement, and return its rows. Raises the driver's errors."""
        async with self._turn:
            if self._driver is None or self._driver.is_closed():
                await self._connect()
            try:
                rows: list[Any] = await self._driver.fetch(statement, *arguments, timeout=ANSWER_SECONDS)
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
