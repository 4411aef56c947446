"""Clients of httpx at the boundary of a run: what they send is recorded, and served from the record in a replay.

client = httpx.Client(transport=RecordingTransport())
client = httpx.AsyncClient(transport=AsyncRecordingTransport())
"""

from collections.abc import Callable
from typing import Self

try:
    import httpx
except ImportError as missing:
    raise ImportError('twiceshy.adapters.httpx needs httpx: pip install "twiceshy[httpx]"') from missing

from twiceshy._exchanges.httpx_family import Family, handle, handle_async, transports_replaced
from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy._exchanges.streams import AsyncPlayed, AsyncTee, Played, Tee

__all__ = ["AsyncRecordingTransport", "HttpOptions", "RecordingTransport", "instrumented"]


class _Tee(Tee, httpx.SyncByteStream):
    """The body of a response that is recorded."""


class _AsyncTee(AsyncTee, httpx.AsyncByteStream):
    """The body of a response that is recorded."""


class _Played(Played, httpx.SyncByteStream):
    """The body of a response out of the record."""


class _AsyncPlayed(AsyncPlayed, httpx.AsyncByteStream):
    """The body of a response out of the record."""


_FAMILY = Family(response=httpx.Response, tee=_Tee, async_tee=_AsyncTee, played=_Played, async_played=_AsyncPlayed)


class RecordingTransport(httpx.BaseTransport):
    """Sends through another transport, and records that where a run is recorded. A replay opens no connection."""

    def __init__(self, inner: httpx.BaseTransport | None = None, *, options: HttpOptions = DEFAULT) -> None:
        """Wrap a transport; without one, that of httpx."""
        self._inner = httpx.HTTPTransport() if inner is None else inner
        self._options = options

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, or serve its answer from the record."""
        response: httpx.Response = handle(_FAMILY, self._inner, request, self._options)
        return response

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def close(self) -> None:
        """Close the transport that is wrapped."""
        self._inner.close()


class AsyncRecordingTransport(httpx.AsyncBaseTransport):
    """Does the same on an event loop."""

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None, *, options: HttpOptions = DEFAULT) -> None:
        """Wrap a transport; without one, that of httpx."""
        self._inner = httpx.AsyncHTTPTransport() if inner is None else inner
        self._options = options

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, or serve its answer from the record."""
        response: httpx.Response = await handle_async(_FAMILY, self._inner, request, self._options)
        return response

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def aclose(self) -> None:
        """Close the transport that is wrapped."""
        await self._inner.aclose()


def instrumented(options: Callable[[], HttpOptions]) -> Callable[[], None]:
    """Let every client of httpx record, those that are there already too; return what undoes that."""

    def wrapped(inner: httpx.BaseTransport) -> httpx.BaseTransport:
        is_wrapped = isinstance(inner, RecordingTransport)
        return inner if is_wrapped else RecordingTransport(inner, options=options())

    def wrapped_async(inner: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
        is_wrapped = isinstance(inner, AsyncRecordingTransport)
        return inner if is_wrapped else AsyncRecordingTransport(inner, options=options())

    undone = (
        transports_replaced(httpx.Client, wrapped),
        transports_replaced(httpx.AsyncClient, wrapped_async),
    )

    def undo() -> None:
        for each in undone:
            each()

    return undo
