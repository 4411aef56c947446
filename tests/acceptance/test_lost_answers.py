"""Answers get lost between a service that has acted and an agent that has not heard."""

import asyncio
import http.client
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.service import ServiceProcess
from twiceshy import Guard, GuardUnavailable, LeaseLost, RunSuspended, current_effect


class Wire:
    """A proxy before a service: it forwards every request, and loses the answers that it is told to lose."""

    def __init__(self, service: ServiceProcess) -> None:
        self.lost: list[str] = []
        self.to_lose: Callable[[str], bool] = lambda _path: False
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                onward = http.client.HTTPConnection("127.0.0.1", service.port, timeout=40)
                onward.request(self.command, self.path, body, {"Content-Type": "application/json"})
                reply = onward.getresponse()
                text = reply.read()
                onward.close()
                if wire.to_lose(self.path):
                    wire.lost.append(self.path)
                    self.close_connection = True
                    return
                self.send_response_only(reply.status)
                self.send_header("Content-Type", reply.headers["Content-Type"])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """Stop forwarding."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def wire(service: ServiceProcess) -> Iterator[Wire]:
    proxy = Wire(service)
    yield proxy
    proxy.close()


def once(ending: str, times: int = 1) -> Callable[[str], bool]:
    """Lose the first answers to a path with this ending."""
    left = [times]

    def is_lost(path: str) -> bool:
        if not path.endswith(ending) or not left[0]:
            return False
        left[0] -= 1
        return True

    return is_lost


def test_a_begin_whose_answer_is_lost_gets_the_lease_of_its_own_attempt(service: ServiceProcess, wire: Wire) -> None:
    world: list[int] = []
    with Guard(wire.url) as guard:

        @guard.tool
        def charge(number: int) -> int:
            world.append(number)
            return number

        wire.to_lose = once("/v1/effects")
        with guard.run("lost-begin"):
            assert charge(1) == 1
    assert (wire.lost, world) == (["/v1/effects"], [1])
    items = service.ask("GET", "/v1/effects?run=lost-begin").body["items"]
    assert [(item["state"], item["fence"]) for item in items] == [("succeeded", 1)]


def test_a_commit_whose_answer_is_lost_is_repeated_and_counts_once(service: ServiceProcess, wire: Wire) -> None:
    world: list[int] = []
    with Guard(wire.url) as guard:

        @guard.tool
        def charge(number: int) -> int:
            world.append(number)
            return number

        wire.to_lose = once("/commit", times=2)
        with guard.run("lost-commit"):
            assert charge(1) == 1
            assert charge(1) == 1
    assert (len(wire.lost), world) == (2, [1])
    items = service.ask("GET", "/v1/effects?run=lost-commit").body["items"]
    assert [(item["state"], item["fence"]) for item in items] == [("succeeded", 1)]


def test_a_begin_that_is_never_answered_does_not_run_the_tool_and_is_released(
    service: ServiceProcess, wire: Wire
) -> None:
    world: list[int] = []
    with Guard(wire.url, unavailable_seconds=1) as guard:

        @guard.tool
        def charge(number: int) -> int:
            world.append(number)
            return number

        wire.to_lose = once("/v1/effects", times=10_000)
        with guard.run("no-answer"), pytest.raises(GuardUnavailable):
            charge(1)
        assert world == []
        items = service.ask("GET", "/v1/effects?run=no-answer").body["items"]
        assert [item["state"] for item in items] == ["pending"]
        wire.to_lose = once("")
        with guard.run("no-answer"):
            assert charge(1) == 1
    assert world == [1]


def test_renewals_that_get_lost_are_sent_again_and_the_lease_goes_on(service: ServiceProcess, wire: Wire) -> None:
    """Veil#591, cozy-stack#4911, blade-agent-sdk#41: a heartbeat's first error is neither fatal nor swallowed."""
    with Guard(wire.url) as guard:

        @guard.tool(lease_seconds=1)
        def slow() -> bool:
            effect = current_effect()
            until = time.monotonic() + 1.5
            while time.monotonic() < until:
                time.sleep(0.02)
            return effect.lease_lost

        wire.to_lose = once("/renew", times=2)
        with guard.run("lost-renewals"):
            assert slow() is False
    assert len(wire.lost) == 2
    items = service.ask("GET", "/v1/effects?run=lost-renewals").body["items"]
    assert [(item["state"], item["fence"]) for item in items] == [("succeeded", 1)]


@pytest.mark.anyio
async def test_a_lease_that_cannot_be_renewed_until_its_end_is_said_to_be_lost(
    service: ServiceProcess, wire: Wire
) -> None:
    """Veil#591, cozy-stack#4911, blade-agent-sdk#41: and at the deadline the tool is stopped, its outcome not known."""
    async with Guard(wire.url) as guard:

        @guard.tool(lease_seconds=1)
        async def endless() -> None:
            await asyncio.Event().wait()

        wire.to_lose = once("/renew", times=10_000)
        async with guard.run("no-renewals"):
            with pytest.raises(RunSuspended) as caught:
                await endless()
    assert isinstance(caught.value.__cause__, LeaseLost)
    items = service.ask("GET", "/v1/effects?run=no-renewals").body["items"]
    assert [item["state"] for item in items] == ["in_doubt"]
