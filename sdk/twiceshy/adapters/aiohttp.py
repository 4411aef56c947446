"""Sessions of aiohttp at the boundary of a run: what they send is recorded, and served from the record in a replay.

    session = aiohttp.ClientSession(middlewares=(RecordingMiddleware(),))

Give it as the last one. A web socket is no exchange and passes as it is.
"""

import asyncio
import http.client
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

try:
    import aiohttp
    from aiohttp.client_exceptions import UnixClientConnectorError
    from aiohttp.client_middlewares import ClientHandlerType
    from aiohttp.helpers import TimerNoop
    from multidict import CIMultiDict, CIMultiDictProxy
except ImportError as missing:
    raise ImportError('twiceshy.adapters.aiohttp needs aiohttp 3.14: pip install "twiceshy[aiohttp]"') from missing

from twiceshy._exchanges.aiohttp_contents import PlayedContent, TeedContent
from twiceshy._exchanges.answers import Answer
from twiceshy._exchanges.asked import Asked
from twiceshy._exchanges.exchange import Exchange, enter_async, session_here
from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy._exchanges.seen import one_request
from twiceshy._type_names import qualified
from twiceshy.exceptions import RecordedError

__all__ = ["HttpOptions", "RecordingMiddleware", "instrumented"]


class RecordingMiddleware:
    """Records what a session sends where a run is recorded. A replay opens no connection."""

    def __init__(self, *, options: HttpOptions = DEFAULT) -> None:
        """Say how exchanges are recorded."""
        self._options = options

    async def __call__(self, request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
        """Send a request, or serve its answer from the record."""
        session = session_here(request.method, str(request.url))
        if session is None or "upgrade" in request.headers:
            return await _sent(request, handler)
        exchange = await enter_async(session, await _asked(request), self._options)
        if exchange.served is not None:
            if exchange.served.error is not None:
                await exchange.give_async(exchange.of_record)
                raise _own(exchange.served.error, request)
            return _response(exchange, exchange.answer(), request)
        try:
            with session.inside():
                response = await _sent(request, handler)
        except (Exception, asyncio.CancelledError) as error:
            await exchange.give_async(exchange.failed(_recordable(error)))
            raise
        exchange.answered(response.status, response.headers.items())
        if response.content.at_eof():
            await exchange.give_async(exchange.complete)
        response.content = cast("aiohttp.StreamReader", TeedContent(exchange, response.content))
        return response


def instrumented(options: Callable[[], HttpOptions]) -> Callable[[], None]:
    """Let every session of aiohttp record, those that are there already too; return what undoes that."""
    before = aiohttp.ClientSession.__dict__["_request"]

    async def request(self: Any, *args: Any, middlewares: Any = None, **kwargs: Any) -> aiohttp.ClientResponse:
        given = self._middlewares if middlewares is None else middlewares
        if not any(isinstance(each, RecordingMiddleware) for each in given):
            given = (*given, RecordingMiddleware(options=options()))
        response: aiohttp.ClientResponse = await before(self, *args, middlewares=given, **kwargs)
        return response

    def undo() -> None:
        setattr(aiohttp.ClientSession, "_request", before)  # noqa: B010 - a method is no assignment for mypy

    setattr(aiohttp.ClientSession, "_request", request)  # noqa: B010 - the one place that all its requests pass
    return undo


async def _sent(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
    with one_request(request.method) as seen:
        response = await handler(request)
        seen.status = response.status
        return response


async def _asked(request: aiohttp.ClientRequest) -> Asked:
    body = await request.body.as_bytes() if request.body else b""
    return Asked.of(request.method, str(request.url), request.headers.items(), body)


def _response(exchange: Exchange, answer: Answer, request: Any) -> aiohttp.ClientResponse:
    """Build a response that no connection stands behind."""
    response: Any = request.response_class(
        request.method,
        request.original_url,
        writer=None,
        continue100=None,
        timer=TimerNoop(),
        request_info=request.request_info,
        traces=[],
        loop=asyncio.get_running_loop(),
        session=None,
        stream_writer=SimpleNamespace(output_size=0),
    )
    headers = CIMultiDict(answer.headers)
    response.version = aiohttp.HttpVersion11
    response.status = answer.status
    response.reason = http.client.responses.get(answer.status, "")
    response._headers = CIMultiDictProxy(headers)  # noqa: SLF001 - what its start() reads off a connection
    response._raw_headers = tuple((name.encode(), value.encode()) for name, value in headers.items())  # noqa: SLF001
    response.content = PlayedContent(exchange, answer, lambda error: _own(error, request))
    built: aiohttp.ClientResponse = response
    return built


def _recordable(error: BaseException) -> BaseException:
    """Return what is kept of an error whose own arguments cannot be written: an address, or a request."""
    if not isinstance(error, aiohttp.ClientConnectorError) or isinstance(error, UnixClientConnectorError):
        return error
    kept = RecordedError(str(error), type=qualified(type(error)))
    vars(kept).update(os_error=[error.errno, error.strerror])
    return kept


def _own(error: BaseException, request: aiohttp.ClientRequest) -> BaseException:
    """Return an error of the record as aiohttp's own: one that it builds from a request is built from this one."""
    if not isinstance(error, RecordedError) or not error.type.startswith("aiohttp."):
        return error
    kind: Any = getattr(aiohttp, error.type.rpartition(".")[2], None)
    if not isinstance(kind, type):
        return error
    said = vars(error)
    if issubclass(kind, aiohttp.ClientResponseError):
        return kind(request.request_info, (), status=said.get("status", 0), message=said.get("message", str(error)))
    if issubclass(kind, aiohttp.ClientConnectorError) and isinstance(said.get("os_error"), list):
        return kind(request.connection_key, OSError(*said["os_error"]))
    return error
