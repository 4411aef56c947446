"""A service that answers every request with its own body, for tests of who gets which answer."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from twiceshy._transports.base import NoReply, Reply, Request

PATIENCE: Final = 10.0


def request(number: int, size: int = 0, *, joins: bool = True) -> Request:
    body = msgspec.json.encode({"number": number, "filling": "x" * size})
    return Request(method="POST", path=f"/v1/effects/{number}/commit", body=body, joins=joins, timeout_seconds=PATIENCE)


def number_of(reply: Reply | NoReply) -> int:
    assert isinstance(reply, Reply), reply
    number = msgspec.json.decode(reply.body)["number"]
    assert isinstance(number, int)
    return number


class Echo:
    """A service that answers every request with its own body, and holds the first until it is told to go on."""

    def __init__(self, answer: Callable[[Request], Reply | NoReply] | None = None) -> None:
        self.sent: list[Request] = []
        self.senders: list[int] = []
        self.arrived = threading.Event()
        self.go_on = threading.Event()
        self._answer = answer or echoed
        self._lock = threading.Lock()

    def send(self, request: Request) -> Reply | NoReply:
        if self._note(request):
            assert self.go_on.wait(PATIENCE)
        return self._answer(request)

    async def send_async(self, request: Request) -> Reply | NoReply:
        if self._note(request):
            await asyncio.to_thread(self.go_on.wait, PATIENCE)
        else:
            await asyncio.sleep(0)
        return self._answer(request)

    def close(self) -> None: ...

    async def close_async(self) -> None: ...

    def _note(self, request: Request) -> bool:
        with self._lock:
            self.sent.append(request)
            self.senders.append(threading.get_ident())
            self.arrived.set()
            return len(self.sent) == 1

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.sent]

    @property
    def batches(self) -> list[list[int]]:
        """The numbers of the requests of each batch."""
        return [
            [item["body"]["number"] for item in msgspec.json.decode(request.body or b"")["requests"]]
            for request in self.sent
            if request.path == "/v1/batch"
        ]


def echoed(request: Request) -> Reply:
    body = request.body or b""
    if request.path == "/v1/batch":
        items = msgspec.json.decode(body)["requests"]
        body = msgspec.json.encode({"answers": [{"status": 200, "body": item["body"]} for item in items]})
    return Reply(status=200, content_type="application/json", body=body)
