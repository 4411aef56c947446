"""What the tests of all sinks share: a message to send, and secrets by name."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from uuid import uuid4

import msgspec
import pytest

from outbox_relay.networks import networks_of
from outbox_relay.secrets import ReadSecret, secret_reader
from outbox_relay.sinks.base import Outgoing
from tests.integration.sinks.webhook_receivers import Webhooks

MakeOutgoing = Callable[..., Outgoing]
LOOPBACK = networks_of("127.0.0.1/32")
"""What an operator allows where the brokers are on the same host."""


@pytest.fixture
def make_outgoing() -> MakeOutgoing:
    """Make messages that differ in nothing but their identity, unless told otherwise."""

    def make(**changes: object) -> Outgoing:
        outgoing = Outgoing(
            message=uuid4(),
            epoch=1,
            number=1,
            destination="orders",
            content_type="application/json",
            body=b'{"order":7}',
            headers={"X-Trace": "abc"},
            staged_at=1_700_000_000_000_000,
            type="order.created",
        )
        return msgspec.structs.replace(outgoing, **changes)

    return make


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment that secrets are read from; a test may change it at any time."""
    return {}


@pytest.fixture
def read_secret(environment: dict[str, str]) -> ReadSecret:
    """Read secrets as the relay does."""
    return secret_reader(environment)


@pytest.fixture
async def silent_port() -> AsyncIterator[int]:
    """A port that takes connections and never says a word."""
    ended = asyncio.Event()

    async def keep(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.close()

    server = await asyncio.start_server(keep, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    ended.set()
    server.close()
    await server.wait_closed()


@pytest.fixture
async def webhooks(read_secret: ReadSecret) -> AsyncIterator[Webhooks]:
    """Open destinations of the kind `webhook`."""
    async with AsyncExitStack() as stack:
        yield Webhooks(read_secret, stack)
