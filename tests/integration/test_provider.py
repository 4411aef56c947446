"""A provider that takes an idempotency key, and loses its answers after it has acted."""

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.service import ServiceProcess
from twiceshy import Guard, RunSuspended, Tool, current_effect


class Provider:
    """It charges once a key, and answers a repeated key from its record; the first answers are never sent."""

    def __init__(self, lost: int) -> None:
        self.charged: dict[str, int] = {}
        self.heard: list[str] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                key = self.headers["Payment-Key"]
                provider.heard.append(key)
                receipt = provider.charged.setdefault(key, len(provider.charged) + 1)
                if len(provider.heard) <= lost:
                    self.close_connection = True
                    return
                text = str(receipt).encode()
                self.send_response_only(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def charge(self, cents: int) -> int:
        """Ask for a charge, under the key of the effect that is executing."""
        connection = http.client.HTTPConnection("127.0.0.1", self._server.server_address[1], timeout=10)
        try:
            connection.request("POST", "/", str(cents), dict([current_effect().provider_header]))
            return int(connection.getresponse().read())
        finally:
            connection.close()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with Guard(service.url, spool=None) as guard:
        yield guard


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Start a provider whose first two answers are lost."""
    made = Provider(lost=2)
    yield made
    made.close()


def charging(guard: Guard, provider: Provider, run: str, window_seconds: float | None) -> Tool[[int], int]:
    @guard.tool(
        name=f"charge-{run}",
        provider_window_seconds=window_seconds,
        provider_key_header="Payment-Key",
        backoff_seconds=0.1,
    )
    def charge(cents: int) -> int:
        return provider.charge(cents)

    return charge


def test_a_dropped_connection_is_asked_again_under_the_same_key_until_it_is_answered(
    guard: Guard, provider: Provider, run: str
) -> None:
    with guard.run(run):
        assert charging(guard, provider, run, 86_400)(500) == 1
    assert len(provider.heard) == 3
    assert list(provider.charged) == [provider.heard[0]]


def test_a_process_that_died_in_doubt_is_followed_by_one_that_asks_again_under_the_same_key(
    guard: Guard, provider: Provider, service: ServiceProcess, run: str
) -> None:
    charge = charging(guard, provider, run, 86_400)
    with guard.run(run), Guard(service.url, spool=None) as other, other.run(run):

        @other.tool(name=f"charge-{run}", provider_window_seconds=86_400, provider_key_header="Payment-Key",
                    deadline_seconds=0)  # fmt: skip
        def impatient(cents: int) -> int:
            return provider.charge(cents)

        with pytest.raises(RunSuspended):
            impatient(500)
        assert charge(500) == 1
    assert list(provider.charged.values()) == [1]


def test_a_provider_that_forgets_before_lease_and_settling_are_over_is_not_asked_again(
    guard: Guard, provider: Provider, run: str
) -> None:
    with guard.run(run), pytest.raises(RunSuspended):
        charging(guard, provider, run, 39)(500)
    assert len(provider.heard) == 1


def test_a_provider_that_promises_nothing_is_not_asked_again(guard: Guard, provider: Provider, run: str) -> None:
    with guard.run(run), pytest.raises(RunSuspended):
        charging(guard, provider, run, None)(500)
    assert len(provider.heard) == 1
