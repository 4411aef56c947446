"""Requests through the transports of httpx, and of httpx2, which has the same ones."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from twiceshy._exchanges.answers import Answer
from twiceshy._exchanges.asked import Asked
from twiceshy._exchanges.exchange import Decode, enter, enter_async, session_here
from twiceshy._exchanges.options import HttpOptions
from twiceshy._exchanges.seen import one_request
from twiceshy._exchanges.streams import AsyncPlayed, AsyncTee, Played, Tee, restated

_BROKEN: Final = (Exception, asyncio.CancelledError)


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """What a library of the family calls its own. The streams are its stream classes over ours."""

    response: Callable[..., Any]
    tee: Callable[..., Tee]
    async_tee: Callable[..., AsyncTee]
    played: Callable[..., Played]
    async_played: Callable[..., AsyncPlayed]


def handle(family: Family, inner: Any, request: Any, options: HttpOptions) -> Any:
    """Send a request, recorded or replayed where a run is; return the library's response."""
    session = session_here(request.method, str(request.url))
    if session is None:
        return _sent(inner, request)
    exchange = enter(session, _asked(request, request.read()), options, _decode(family))
    if exchange.served is not None:
        if exchange.served.error is not None:
            exchange.give(exchange.of_record)
            raise restated(exchange.served.error, request)
        answer = exchange.answer()
        return _response(family, answer, family.played(exchange, answer, lambda error: restated(error, request)))
    try:
        with session.inside():
            response = _sent(inner, request)
    except _BROKEN as error:
        exchange.give(exchange.failed(error))
        raise
    exchange.answered(response.status_code, response.headers.multi_items())
    if response.is_stream_consumed:  # a transport without a connection may give an answer that is read already
        exchange.chunk(b"".join(response.stream))
        exchange.give(exchange.complete)
        return response
    response.stream = family.tee(exchange, response.stream, response.stream.close)
    return response


async def handle_async(family: Family, inner: Any, request: Any, options: HttpOptions) -> Any:
    """Do the same on an event loop."""
    session = session_here(request.method, str(request.url))
    if session is None:
        return await _sent_async(inner, request)
    exchange = await enter_async(session, _asked(request, await request.aread()), options, _decode(family))
    if exchange.served is not None:
        if exchange.served.error is not None:
            await exchange.give_async(exchange.of_record)
            raise restated(exchange.served.error, request)
        answer = exchange.answer()
        return _response(family, answer, family.async_played(exchange, answer, lambda error: restated(error, request)))
    try:
        with session.inside():
            response = await _sent_async(inner, request)
    except _BROKEN as error:
        await exchange.give_async(exchange.failed(error))
        raise
    exchange.answered(response.status_code, response.headers.multi_items())
    if response.is_stream_consumed:
        exchange.chunk(b"".join([part async for part in response.stream]))
        await exchange.give_async(exchange.complete)
        return response
    response.stream = family.async_tee(exchange, response.stream, response.stream.aclose)
    return response


def _sent(inner: Any, request: Any) -> Any:
    with one_request(request.method) as seen:
        response = inner.handle_request(request)
        seen.status = response.status_code
        return response


async def _sent_async(inner: Any, request: Any) -> Any:
    with one_request(request.method) as seen:
        response = await inner.handle_async_request(request)
        seen.status = response.status_code
        return response


def _asked(request: Any, body: bytes) -> Asked:
    return Asked.of(request.method, str(request.url), request.headers.multi_items(), body)


def _response(family: Family, answer: Answer, stream: Played) -> Any:
    return family.response(answer.status, headers=answer.headers, stream=stream)


def _decode(family: Family) -> Decode:
    def decode(headers: dict[str, str], body: bytes, /) -> bytes | None:
        encoding = {name: value for name, value in headers.items() if name == "content-encoding"}
        try:
            plain: bytes = family.response(200, headers=encoding, content=body).content
        except Exception:  # noqa: BLE001 - what cannot be decoded is kept as it came
            return None
        return plain

    return decode


def transports_replaced(client: Any, wrapped: Callable[[Any], Any]) -> Callable[[], None]:
    """Let a client class send through what `wrapped` returns for each transport; return what undoes that."""
    before = client.__dict__["_transport_for_url"]

    def transport_for_url(self: Any, url: Any) -> Any:
        return wrapped(before(self, url))

    client._transport_for_url = transport_for_url  # noqa: SLF001 - the one place that all its requests pass

    def undo() -> None:
        client._transport_for_url = before  # noqa: SLF001

    return undo
