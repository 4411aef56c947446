"""The token of a request: it goes in the place of the guard's own, and with no other request."""

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from tests.unit.sdk.echo import PATIENCE, Echo, number_of, request
from tests.unit.sdk.real_server import serving
from tests.unit.sdk.test_transports import KINDS, OK, Kind
from twiceshy._transports.base import Reply, Request
from twiceshy._transports.coalescing import CoalescingTransport

FORK = "fork.1.2"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("own", [None, "secret"])
async def test_a_requests_token_is_the_only_one_that_is_sent(kind: Kind, own: str | None) -> None:
    seen: list[list[str]] = []

    def handler(_method: str, _path: str, headers: dict[str, str], _body: bytes) -> Reply:
        seen.append([value for name, value in headers.items() if name.lower() == "authorization"])
        return OK

    with serving(handler) as url:
        transport = kind(url, own)
        sent = Request(method="POST", path="/v1/effects", body=b"{}", token=FORK)
        assert transport.send(sent) == OK
        assert await transport.send_async(sent) == OK
        assert transport.send(msgspec.structs.replace(sent, token=None)) == OK
        await transport.close_async()
    assert seen == [[f"Bearer {FORK}"], [f"Bearer {FORK}"], [] if own is None else ["Bearer secret"]]


def test_a_request_that_has_a_token_goes_in_no_batch_and_waits_for_none() -> None:
    service = Echo()
    transport = CoalescingTransport(service)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(transport.send, request(0))
        assert service.arrived.wait(PATIENCE)
        forked = msgspec.structs.replace(request(1), token=FORK)
        assert number_of(threads.submit(transport.send, forked).result(PATIENCE)) == 1
        assert not first.done()
        service.go_on.set()
        assert number_of(first.result(PATIENCE)) == 0
    assert [one.token for one in service.sent] == [None, FORK]


async def test_a_request_of_a_loop_that_has_a_token_goes_alone_too() -> None:
    service = Echo()
    service.go_on.set()
    transport = CoalescingTransport(service)
    forked = msgspec.structs.replace(request(1), token=FORK)
    assert number_of(await transport.send_async(forked)) == 1
    assert [one.token for one in service.sent] == [FORK]
