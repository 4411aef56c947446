"""Whatever a broker's client raises, a send ends with a result, and a check with what was seen."""

import errno
import ssl
from typing import Literal
from uuid import UUID

from outbox_relay.networks import Networks
from outbox_relay.sinks.base import Outgoing, Result, Retryable, Unknown
from outbox_relay.sinks.connected import ConnectedSink, kind_of

OUTGOING = Outgoing(
    message=UUID(int=1),
    epoch=1,
    number=1,
    destination="orders",
    content_type="text/plain",
    body=b"",
    headers={},
    staged_at=0,
)


class Breaking(ConnectedSink[str]):
    """Raises an AssertionError where it connects, sends, or ends."""

    def __init__(self, where: str) -> None:
        super().__init__("orders", 5, Networks())
        self._where = where

    @property
    def capability(self) -> Literal["deduplicates"]:
        return "deduplicates"

    async def _open(self) -> str:
        self._break_at("open")
        return "open"

    def _is_open(self, connection: str) -> bool:
        return connection == "open"

    async def _end(self, connection: str) -> None:
        raise AssertionError(connection)

    async def _publish(self, connection: str, outgoing: Outgoing) -> Result:
        self._break_at("publish")
        raise TypeError(connection)

    async def _look(self, connection: str) -> str:
        raise AssertionError(connection)

    def _break_at(self, place: str) -> None:
        if self._where == place:
            raise AssertionError("word " * 10_000)


async def test_before_a_connection_nothing_has_left() -> None:
    sink = Breaking("open")
    result = await sink.send(OUTGOING)
    seen = await sink.check()
    await sink.close()
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert (result.why[:22], len(result.why)) == ("no connection: word wo", 316)
    assert (seen.ok, seen.detail) == (False, "no connection (AssertionError)")


async def test_after_a_connection_nobody_knows() -> None:
    sink = Breaking("publish")
    result = await sink.send(OUTGOING)
    seen = await sink.check()
    await sink.close()
    assert isinstance(result, Unknown)
    assert result.why.startswith("the connection broke before an answer came (word word")
    assert (seen.ok, seen.detail) == (False, "the connection broke (AssertionError)")


def test_the_kind_of_an_error_is_told_in_the_words_of_the_system() -> None:
    broken = ConnectionError("the words of a peer")
    assert kind_of(broken) == "ConnectionError"
    broken.__cause__ = ConnectionRefusedError(errno.ECONNREFUSED, "the words of a peer")
    assert kind_of(broken) == "ConnectionError: Connection refused"
    broken.__cause__.__cause__ = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] the words of a peer")
    assert kind_of(broken) == "ConnectionError: SSLError"
