"""A relay that is asked to stop ends what is under way, and at once where it is asked again."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from guard.ports.store import Store
from tests.integration.relaying import declared, stage, until
from twiceshy_contract.destinations import WebhookDestination

pytestmark = pytest.mark.anyio
COMMANDS = pytest.mark.parametrize(
    ("backend", "command"),
    [
        pytest.param("postgresql", ("relay",), id="relay"),
        pytest.param("sqlite", ("serve", "--port", "0", "--with-relay"), id="serve --with-relay"),
    ],
    indirect=["backend"],
)


@asynccontextmanager
async def sending(store: Store, database_url: str, *command: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """Relay to a receiver that never answers, until a message is under way."""

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        with suppress(OSError):
            await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        gone.set()

    came, gone = asyncio.Event(), asyncio.Event()
    server = await asyncio.start_server(never, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    there = await declared(store, settings=WebhookDestination(url=f"http://127.0.0.1:{port}/"))
    await stage(store, there, ["a"])
    whole = [sys.executable, "-m", "twiceshy", *command, "--database", database_url, "--allow", "127.0.0.1/32"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}
    process = await asyncio.to_thread(
        subprocess.Popen, whole, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    try:
        await asyncio.wait_for(came.wait(), 30)
        yield process
        process.kill()
        await asyncio.wait_for(gone.wait(), 30)
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)
        if process.stderr is not None:
            process.stderr.close()
        server.close()
        await server.wait_closed()


@COMMANDS
async def test_a_second_signal_ends_it_at_once(store: Store, database_url: str, command: tuple[str, ...]) -> None:
    async with sending(store, database_url, *command, "--drain-seconds", "3600") as process:

        async def has_ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        await until(has_ended)
        assert process.returncode == 1
        assert process.stderr is not None
        said = await asyncio.to_thread(process.stderr.read)
        assert said.endswith(b"Ended at once: what was under way is taken back when its lease has run out.\n")
