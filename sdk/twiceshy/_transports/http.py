"""The transport over HTTP. Clients belong to the process that made them.

A pyreqwest client of the parent hangs in a forked child, and once a process has used pyreqwest none of its
children by fork can: there the standard library takes over.
"""

import asyncio
import atexit
import ipaddress
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlsplit

from pyreqwest.client import Client, ClientBuilder, SyncClient, SyncClientBuilder
from pyreqwest.exceptions import PyreqwestError
from pyreqwest.request import RequestBuilder, SyncRequestBuilder

from twiceshy._transports.base import NoReply, Reply, Request, authorization, headers, new_request_id, no_reply
from twiceshy._transports.plain import PlainTransport
from twiceshy_contract.wire import CONTRACT_HEADER, REQUEST_ID_HEADER

_CONNECT_TIMEOUT = timedelta(seconds=5)
_EXIT_SECONDS = 0.02
_BuilderT = TypeVar("_BuilderT", ClientBuilder, SyncClientBuilder)
_ClientT = TypeVar("_ClientT", Client, SyncClient)
_RequestT = TypeVar("_RequestT", RequestBuilder, SyncRequestBuilder)


class HttpTransport:
    """Send requests to the service at `url`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._headers = headers(token)
        self._lock = threading.Lock()
        self._forget()

    def send(self, request: Request) -> Reply | NoReply:
        """Send a request and wait for its reply."""
        client = self._blocking_client()
        if isinstance(client, PlainTransport):
            return client.send(request)
        request_id = new_request_id()
        try:
            building = self._filled(client.request(request.method, self._url + request.path), request, request_id)
            response = building.build().send()
            return Reply(
                status=response.status,
                content_type=response.get_header("Content-Type") or "",
                body=bytes(response.bytes()),
                retry_after=response.get_header("Retry-After"),
                contract=response.get_header(CONTRACT_HEADER),
            )
        except PyreqwestError as error:
            return no_reply(_reason(error), request_id)

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Send a request and await its reply.

        Where a reply and a cancellation come together, pyreqwest may return the one and swallow the other, and a call
        that timed out would go on. So the task is asked whether it was cancelled meanwhile.
        """
        client = self._loop_client()
        if isinstance(client, PlainTransport):
            return await client.send_async(request)
        task = asyncio.current_task()
        cancels = task.cancelling() if task is not None else 0
        reply = await self._awaited(client, request)
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError
        return reply

    def close(self) -> None:
        """Close the blocking client; one made for event loops is let go."""
        with self._lock:
            client = self._blocking if self._process == os.getpid() else None
            self._forget()
        if client is not None:
            client.close()

    async def close_async(self) -> None:
        """Close both clients."""
        client = self._on_loop if self._process == os.getpid() else None
        self.close()
        if isinstance(client, Client):
            await client.close()
        elif client is not None:
            await client.close_async()

    async def _awaited(self, client: Client, request: Request) -> Reply | NoReply:
        request_id = new_request_id()
        try:
            building = self._filled(client.request(request.method, self._url + request.path), request, request_id)
            response = await building.build().send()
            return Reply(
                status=response.status,
                content_type=response.get_header("Content-Type") or "",
                body=bytes(await response.bytes()),
                retry_after=response.get_header("Retry-After"),
                contract=response.get_header(CONTRACT_HEADER),
            )
        except PyreqwestError as error:
            return no_reply(_reason(error), request_id)

    def _forget(self) -> None:
        self._process = os.getpid()
        self._blocking: SyncClient | PlainTransport | None = None
        self._on_loop: Client | PlainTransport | None = None

    def _own(self) -> None:
        """Leave a parent's clients and its lock alone: both may be unusable after a fork."""
        if self._process != os.getpid():
            self._lock = threading.Lock()
            self._forget()

    def _blocking_client(self) -> SyncClient | PlainTransport:
        self._own()
        if self._blocking is None:
            with self._lock:
                if self._blocking is None:
                    self._blocking = self._made(lambda: self._outfitted(SyncClientBuilder()).build())
        return self._blocking

    def _loop_client(self) -> Client | PlainTransport:
        self._own()
        if self._on_loop is None:
            with self._lock:
                if self._on_loop is None:
                    atexit.unregister(_let_its_threads_rest)
                    atexit.register(_let_its_threads_rest)
                    self._on_loop = self._made(lambda: self._outfitted(ClientBuilder()).build())
        return self._on_loop

    def _made(self, make: Callable[[], _ClientT]) -> _ClientT | PlainTransport:
        try:
            return make()
        except RuntimeError:  # pyreqwest was used before this process was forked
            return PlainTransport(self._url, self._token)

    def _outfitted(self, builder: _BuilderT) -> _BuilderT:
        outfitted = builder.follow_redirects(False).connect_timeout(_CONNECT_TIMEOUT)  # noqa: FBT003 - their API
        outfitted = outfitted.default_headers(self._headers)
        return outfitted.no_proxy() if _is_loopback(self._url) else outfitted

    def _filled(self, building: _RequestT, request: Request, request_id: str) -> _RequestT:
        building = building.timeout(timedelta(seconds=request.timeout_seconds)).header(REQUEST_ID_HEADER, request_id)
        for name, value in authorization(request.token).items():
            building = building.header(name, value)
        if request.body is not None:
            building = building.header("Content-Type", "application/json").body_bytes(request.body)
        return building


def _let_its_threads_rest() -> None:
    """Give pyreqwest's threads a moment to let go of the interpreter before it ends.

    A thread that has just handed over the last reply may still hold on to it, and would abort the process.
    """
    time.sleep(_EXIT_SECONDS)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _reason(error: PyreqwestError) -> str:
    details = getattr(error, "details", None)
    causes = (details or {}).get("causes") or []
    return "; ".join([error.message, *(cause["message"] for cause in causes[-1:])])
