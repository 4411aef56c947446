"""The two libraries whose clients have the transports of httpx, blocking and on an event loop."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import httpx
import httpx2

from tests.unit.sdk.adapters.loopback import PATIENCE
from twiceshy.adapters import httpx as httpx_adapter
from twiceshy.adapters import httpx2 as httpx2_adapter

LIBRARIES = {"httpx": (httpx, httpx_adapter), "httpx2": (httpx2, httpx2_adapter)}


class Library:
    """One of the two, blocking or on an event loop."""

    def __init__(self, name: str, *, is_async: bool) -> None:
        self.module: ModuleType = LIBRARIES[name][0]
        self.adapter: ModuleType = LIBRARIES[name][1]
        self.is_async = is_async

    def agent(self, act: Callable[[Any], Any], act_async: Callable[[Any], Any]) -> Callable[[], Any]:
        """Return an agent that acts with a client."""

        def blocking() -> Any:
            with self.module.Client(transport=self.adapter.RecordingTransport(), timeout=PATIENCE) as client:
                return act(client)

        async def on_loop() -> Any:
            transport = self.adapter.AsyncRecordingTransport()
            async with self.module.AsyncClient(transport=transport, timeout=PATIENCE) as client:
                return await act_async(client)

        return on_loop if self.is_async else blocking

    def asks(self, method: str, url: str, **how: Any) -> Callable[[], Any]:
        """Return an agent that sends one request."""
        return self.agent(lambda client: client.request(method, url, **how), lambda c: c.request(method, url, **how))

    def reads(self, url: str, most: int | None = None) -> Callable[[], Any]:
        """Return an agent that reads an answer part by part, and no more than `most` of them; it tells how it ended."""

        def act(client: Any) -> Any:
            parts: list[bytes] = []
            try:
                with client.stream("POST", url) as response:
                    for part in response.iter_raw():
                        parts.append(part)
                        if len(parts) == most:
                            break
            except self.module.TransportError as error:
                return parts, type(error), str(error), error.request.method
            return parts

        async def act_async(client: Any) -> Any:
            parts: list[bytes] = []
            try:
                async with client.stream("POST", url) as response:
                    async for part in response.aiter_raw():
                        parts.append(part)
                        if len(parts) == most:
                            break
            except self.module.TransportError as error:
                return parts, type(error), str(error), error.request.method
            return parts

        return self.agent(act, act_async)
