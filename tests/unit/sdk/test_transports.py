"""Both transports over real sockets: what goes out, what comes back, and what is only silence."""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

from tests.unit.sdk.real_server import serving
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect
from twiceshy._transports.http import HttpTransport
from twiceshy._transports.plain import PlainTransport

KINDS = [HttpTransport, PlainTransport]
Kind = Callable[[str, str | None], Transport]
OK = Reply(status=200, content_type="application/json", body=b"{}", retry_after="7")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_carries_contract_token_and_body(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    seen: list[tuple[str, str, dict[str, str], bytes]] = []

    def handler(method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        seen.append((method, path, {name.lower(): value for name, value in headers.items()}, body))
        return OK

    with serving(handler) as url:
        transport = kind(url + "/prefix", "secret")
        request = Request(method="POST", path="/v1/effects?a=b%2F", body=b'{"a":1}')
        assert transport.send(request) == OK
        assert await transport.send_async(request) == OK
        await transport.close_async()
    for method, path, headers, body in seen:
        assert (method, path, body) == ("POST", "/prefix/v1/effects?a=b%2F", b'{"a":1}')
        assert headers["twiceshy-contract"] == "5"
        assert headers["authorization"] == "Bearer secret"
        assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refused_connection_is_only_silence(kind: Kind) -> None:
    with serving(lambda *_: OK) as url:
        pass
    transport = kind(url, None)
    assert isinstance(transport.send(Request(method="GET", path="/")), NoReply)
    assert isinstance(await transport.send_async(Request(method="GET", path="/")), NoReply)
    await transport.close_async()


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_takes_too_long_is_only_silence(kind: Kind) -> None:
    go_on = threading.Event()

    def hang(*_: object) -> Reply:
        go_on.wait(10)
        return OK

    with serving(hang) as url:
        transport = kind(url, None)
        assert isinstance(transport.send(Request(method="GET", path="/", timeout_seconds=0.1)), NoReply)
        go_on.set()
        transport.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancellation_that_comes_with_the_reply_is_not_swallowed(kind: Kind) -> None:
    request = Request(method="GET", path="/")
    with serving(lambda *_: OK) as url:
        transport = kind(url, None)
        for _ in range(30):
            asking = asyncio.ensure_future(transport.send_async(request))
            await asyncio.sleep(0)
            for _ in range(2):
                transport.send(request)  # the loop stands still while all are answered
            is_under_way = asking.cancel()
            await asyncio.wait({asking})
            assert asking.cancelled() is is_under_way
        await transport.close_async()


@pytest.mark.parametrize("kind", KINDS)
def test_a_redirect_is_not_followed(kind: Kind) -> None:
    with serving(lambda *_: Reply(status=307, content_type="", body=b"")) as url:
        transport = kind(url, None)
        reply = transport.send(Request(method="POST", path="/", body=b"{}"))
        assert isinstance(reply, Reply)
        assert reply.status == 307
        transport.close()


def test_a_closed_transport_opens_again() -> None:
    with serving(lambda *_: OK) as url:
        transport = HttpTransport(url)
        for _ in range(2):
            assert transport.send(Request(method="GET", path="/")) == OK
            transport.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is a thing of POSIX")
def test_a_forked_child_speaks_through_the_standard_library() -> None:
    script = """
        import asyncio, os, sys
        from twiceshy._transports.base import Request
        from twiceshy._transports.http import HttpTransport
        transport = HttpTransport(sys.argv[1])
        request = Request(method="GET", path="/", timeout_seconds=5)
        assert transport.send(request).status == 200
        child = os.fork()
        if child == 0:
            both = transport.send(request), asyncio.run(transport.send_async(request))
            os._exit(0 if [reply.status for reply in both] == [200, 200] else 1)
        _, status = os.waitpid(child, 0)
        assert transport.send(request).status == 200
        sys.exit(os.waitstatus_to_exitcode(status))
    """
    with serving(lambda *_: OK) as url:
        code = [sys.executable, "-c", textwrap.dedent(script), url]
        assert subprocess.run(code, timeout=20, check=False).returncode == 0


def test_where_pyreqwest_does_not_load_the_standard_library_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "twiceshy._transports.http", None)
    assert isinstance(connect("http://127.0.0.1:1", None), PlainTransport)
