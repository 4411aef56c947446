"""Speak ASGI to an application in the same process: its life, and one request at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeAlias
from urllib.parse import unquote

from twiceshy._transports.base import Reply, Request
from twiceshy_contract.wire import CONTRACT_HEADER

App: TypeAlias = Callable[..., Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
_VERSIONS: Final = {"version": "3.0", "spec_version": "2.4"}
_GONE: Final = {"type": "http.disconnect"}
_CONTRACT: Final = CONTRACT_HEADER.lower().encode()


class NotStarted(Exception):
    """The application refused to start."""


class Life:
    """The application's life: entered, it has started; left, it has shut down."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._orders: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._reports: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._living: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._living = asyncio.create_task(self._live())
        said = await self._ordered("startup")
        if said["type"] != "lifespan.startup.complete":
            await self._living
            raise NotStarted(str(said.get("message", "")).strip().rpartition("\n")[2])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._ordered("shutdown")
        if self._living is not None:
            await self._living

    async def _ordered(self, what: str) -> dict[str, Any]:
        self._orders.put_nowait({"type": f"lifespan.{what}"})
        return await self._reports.get()

    async def _live(self) -> None:
        scope = {"type": "lifespan", "asgi": _VERSIONS, "state": {}}
        try:
            await self._app(scope, self._orders.get, self._reports.put)
        except Exception as error:  # noqa: BLE001 - said to whoever waits for the start or the end
            self._reports.put_nowait({"type": "lifespan.failed", "message": f"{type(error).__name__}: {error}"})


async def respond(app: App, request: Request, headers: Headers) -> Reply:
    """Let the application answer one request. Raises what the application raises."""
    return await _Exchange(request).answered(app, headers)


class _Exchange:
    """One request and the reply to it, as the application reads and writes them."""

    __slots__ = ("_has_read", "_is_over", "_received", "_request", "_started")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._has_read = False
        self._started: dict[str, Any] = {}
        self._received: list[bytes] = []
        self._is_over: asyncio.Future[None] | None = None

    async def answered(self, app: App, headers: Headers) -> Reply:
        await app(self._scope(headers), self.receive, self.send)
        if self._is_over is not None and not self._is_over.done():
            self._is_over.set_result(None)
        said = {name.lower(): value.decode("latin-1") for name, value in self._started["headers"]}
        return Reply(
            status=self._started["status"],
            content_type=said.get(b"content-type", ""),
            body=b"".join(self._received),
            retry_after=said.get(b"retry-after"),
            contract=said.get(_CONTRACT),
        )

    async def receive(self) -> dict[str, Any]:
        if not self._has_read:
            self._has_read = True
            return {"type": "http.request", "body": self._request.body or b"", "more_body": False}
        if self._is_over is None:
            self._is_over = asyncio.get_running_loop().create_future()
        await self._is_over
        return _GONE

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started = message
        elif message["type"] == "http.response.body":
            self._received.append(message.get("body", b""))

    def _scope(self, headers: Headers) -> dict[str, Any]:
        path, _, query = self._request.path.partition("?")
        sent = [*headers]
        if self._request.body is not None:
            sent += [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(self._request.body)).encode("ascii")),
            ]
        return {
            "type": "http",
            "asgi": _VERSIONS,
            "http_version": "1.1",
            "method": self._request.method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "query_string": query.encode("ascii"),
            "root_path": "",
            "headers": sent,
            "client": None,
            "server": None,
            "state": {},
        }
