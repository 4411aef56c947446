"""Clients of httpx2 at the boundary of a run: what they send is recorded, and served from the record in a replay.

client = httpx2.Client(transport=RecordingTransport())
client = httpx2.AsyncClient(transport=AsyncRecordingTransport())
"""

from collections.abc import Callable
from typing import Self

try:
    import httpx2
except ImportError as missing:
    raise ImportError('twiceshy.adapters.httpx2 needs httpx2: pip install "twiceshy[httpx2]"') from missing

from twiceshy._exchanges.httpx_family import Family, handle, handle_async, transports_replaced
from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy._exchanges.streams import AsyncPlayed, AsyncTee, Played, Tee

__all__ = ["AsyncRecordingTransport", "HttpOptions", "RecordingTransport", "instrumented"]


class _Tee(Tee, httpx2.SyncByteStream):
    """The body of a response that is recorded."""


class _AsyncTee(AsyncTee, httpx2.AsyncByteStream):
    """The body of a response that is recorded."""


class _Played(Played, httpx2.SyncByteStream):
    """The body of a response out of the record."""


class _AsyncPlayed(AsyncPlayed, httpx2.AsyncByteStream):
    """The body of a response out of the record."""


_FAMILY = Family(response=httpx2.Response, tee=_Tee, async_tee=_AsyncTee, played=_Played, async_played=_AsyncPlayed)


class RecordingTransport(httpx2.BaseTransport):
    """Sends through another transport, and records that where a run is recorded. A replay opens no connection."""

    def __init__(self, inner: httpx2.BaseTransport | None = None, *, options: HttpOptions = DEFAULT) -> None:
        """Wrap a transport; without one, that of httpx2."""
        self._inner = httpx2.HTTPTransport() if inner is None else inner
        self._options = options

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or serve its answer from the record."""
        response: httpx2.Response = handle(_FAMILY, self._inner, request, self._options)
        return response

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def close(self) -> None:
        """Close the transport that is wrapped."""
        self._inner.close()


class AsyncRecordingTransport(httpx2.AsyncBaseTransport):
    """Does the same on an event loop."""

    def __init__(self, inner: httpx2.AsyncBaseTransport | None = None, *, options: HttpOptions = DEFAULT) -> None:
        """Wrap a transport; without one, that of httpx2."""
        self._inner = httpx2.AsyncHTTPTransport() if inner is None else inner
        self._options = options

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, or serve its answer from the record."""
        response: httpx2.Response = await handle_async(_FAMILY, self._inner, request, self._options)
        return response

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def aclose(self) -> None:
        """Close the transport that is wrapped."""
        await self._inner.aclose()


def instrumented(options: Callable[[], HttpOptions]) -> Callable[[], None]:
    """Let every client of httpx2 record, those that are there already too; return what undoes that."""

    def wrapped(inner: httpx2.BaseTransport) -> httpx2.BaseTransport:
        is_wrapped = isinstance(inner, RecordingTransport)
        return inner if is_wrapped else RecordingTransport(inner, options=options())

    def wrapped_async(inner: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
        is_wrapped = isinstance(inner, AsyncRecordingTransport)
        return inner if is_wrapped else AsyncRecordingTransport(inner, options=options())

    undone = (
        transports_replaced(httpx2.Client, wrapped),
        transports_replaced(httpx2.AsyncClient, wrapped_async),
    )

    def undo() -> None:
        for each in undone:
            each()

    return undo
