"""Sessions of requests at the boundary of a run: what they send is recorded, and served from the record in a replay.

session = requests.Session()
session.mount("https://", RecordingAdapter())
"""

import http.client
from collections.abc import Callable, Iterator
from typing import Any, Final

try:
    import requests
    from requests.adapters import BaseAdapter, HTTPAdapter
    from requests.structures import CaseInsensitiveDict
    from requests.utils import get_encoding_from_headers
except ImportError as missing:
    raise ImportError('twiceshy.adapters.requests needs requests: pip install "twiceshy[requests]"') from missing

from twiceshy._exchanges.answers import Answer
from twiceshy._exchanges.asked import Asked
from twiceshy._exchanges.exchange import Exchange, enter, session_here
from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy._exchanges.request_bodies import body_of
from twiceshy._exchanges.seen import one_request
from twiceshy._exchanges.streams import Played, Tee, restated

__all__ = ["HttpOptions", "RecordingAdapter", "instrumented"]


class RecordingAdapter(BaseAdapter):
    """Sends through another adapter, and records that where a run is recorded. A replay opens no connection."""

    def __init__(self, inner: BaseAdapter | None = None, *, options: HttpOptions = DEFAULT) -> None:
        """Wrap an adapter; without one, that of requests."""
        super().__init__()
        self._inner = HTTPAdapter() if inner is None else inner
        self._options = options

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002 - the signature of requests
        *args: Any,
        **kwargs: Any,
    ) -> requests.Response:
        """Send a request, or serve its answer from the record."""
        session = session_here(request.method or "GET", request.url or "")
        if session is None:
            return self._sent(request, stream, *args, **kwargs)
        headers = [(_text(name), _text(value)) for name, value in (request.headers or {}).items()]
        asked = Asked.of(request.method or "GET", request.url or "", headers, body_of(request))
        exchange = enter(session, asked, self._options)
        if exchange.served is not None:
            if exchange.served.error is not None:
                exchange.give(exchange.of_record)
                raise _own(exchange.served.error, request)
            return _response(exchange, request, self)
        try:
            with session.inside():
                response = self._sent(request, stream, *args, **kwargs)
        except Exception as error:
            exchange.give(exchange.failed(error))
            raise
        exchange.answered(response.status_code, response.headers.items())
        response.raw = _TeedRaw(exchange, response.raw)
        return response

    def close(self) -> None:
        """Close the adapter that is wrapped."""
        self._inner.close()

    def _sent(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        tries = getattr(self._inner, "max_retries", None)
        may_be_several = bool(getattr(tries, "total", 0))
        with one_request(request.method or "GET", may_be_several=may_be_several) as seen:
            response = self._inner.send(request, *args, **kwargs)
            seen.status = response.status_code
            return response


def instrumented(options: Callable[[], HttpOptions]) -> Callable[[], None]:
    """Let every session of requests record, those that are there already too; return what undoes that."""
    before = requests.Session.get_adapter

    def get_adapter(self: requests.Session, *args: Any, **kwargs: Any) -> BaseAdapter:
        inner = before(self, *args, **kwargs)
        return inner if isinstance(inner, RecordingAdapter) else RecordingAdapter(inner, options=options())

    def undo() -> None:
        setattr(requests.Session, "get_adapter", before)  # noqa: B010 - a method is no assignment for mypy

    setattr(requests.Session, "get_adapter", get_adapter)  # noqa: B010
    return undo


class _TeedRaw:
    """What urllib3 answered, recorded as it is read. All else is its own."""

    def __init__(self, exchange: Exchange, raw: Any) -> None:
        self._exchange: Final = exchange
        self._raw: Final = raw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:  # noqa: FBT001
        """Read the body part by part."""
        yield from Tee(self._exchange, self._raw.stream(amt, decode_content=decode_content), self._raw.release_conn)

    def read(self, amt: int | None = None, *args: Any, **kwargs: Any) -> Any:
        """Read the body, or so much of it."""
        try:
            data = self._raw.read(amt, *args, **kwargs)
        except Exception as error:
            self._exchange.give(self._exchange.cut(error))
            raise
        self._exchange.chunk(data)
        if amt is None or amt < 0 or not data:
            self._exchange.give(self._exchange.complete)
        return data

    def __iter__(self) -> Iterator[bytes]:
        yield from self.stream()

    def close(self) -> None:
        """Close the body: what was not read yet is not recorded."""
        self._raw.close()
        self._exchange.give(self._exchange.stopped)


class _PlayedRaw:
    """What stands in the place of urllib3's answer in a replay."""

    def __init__(self, exchange: Exchange, answer: Answer) -> None:
        self.status: Final = answer.status
        self.reason: Final = http.client.responses.get(answer.status, "")
        self.headers: Final = answer.headers
        self._played = Played(exchange, answer, lambda error: error)
        self._parts: Iterator[bytes] | None = None
        self._kept = b""

    def stream(self, amt: int | None = 2**16, decode_content: bool | None = None) -> Iterator[bytes]:  # noqa: FBT001, ARG002
        """Read the body part by part, none longer than asked for."""
        for chunk in self._played:
            size = amt or len(chunk)
            yield from (chunk[at : at + size] for at in range(0, len(chunk), size))

    def read(self, amt: int | None = None, *args: Any, **kwargs: Any) -> bytes:  # noqa: ARG002 - urllib3's signature
        """Read the body, or so much of it."""
        if self._parts is None:
            self._parts = iter(self._played)
        if amt is None or amt < 0:
            data, self._kept = self._kept + b"".join(self._parts), b""
            return data
        if not self._kept:
            self._kept = next(self._parts, b"")
        data, self._kept = self._kept[:amt], self._kept[amt:]
        return data

    def __iter__(self) -> Iterator[bytes]:
        yield from self._played

    def close(self) -> None:
        """Close the body as the recorded code did."""
        self._played.close()

    def release_conn(self) -> None:
        """Do nothing: there is no connection."""


def _response(exchange: Exchange, request: requests.PreparedRequest, adapter: BaseAdapter) -> requests.Response:
    answer = exchange.answer()
    response = requests.Response()
    response.status_code = answer.status
    response.headers = CaseInsensitiveDict(answer.headers)
    response.encoding = get_encoding_from_headers(response.headers)
    response.raw = _PlayedRaw(exchange, answer)
    response.reason = response.raw.reason
    response.url = request.url or ""
    response.request = request
    setattr(response, "connection", adapter)  # noqa: B010 - an attribute that the class sets without a declaration
    return response


def _own(error: BaseException, request: requests.PreparedRequest) -> BaseException:
    vars(error).setdefault("response", None)
    return restated(error, request)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
