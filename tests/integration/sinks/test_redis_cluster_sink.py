"""The Redis sink against two nodes of a real Valkey cluster."""

import time
from collections.abc import Iterator

import pytest
from redis import Redis

from outbox_relay.sinks.base import Delivered
from outbox_relay.sinks.redis import RedisSink
from tests.brokers import ValkeyServer
from tests.integration.sinks.conftest import LOOPBACK, MakeOutgoing
from twiceshy_contract.destinations import RedisDestination


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[ValkeyServer, ValkeyServer]]:
    """Two nodes, each of which holds half of the slots and knows the other."""
    first, second = ValkeyServer(is_cluster=True), ValkeyServer(is_cluster=True)
    try:
        first.start()
        second.start()
        with Redis.from_url(first.url) as one, Redis.from_url(second.url) as other:
            one.execute_command("CLUSTER ADDSLOTSRANGE", 0, 8191)
            other.execute_command("CLUSTER ADDSLOTSRANGE", 8192, 16383)
            one.execute_command("CLUSTER MEET", "127.0.0.1", second.port, second.bus_port)
            deadline = time.monotonic() + 30
            while not (_is_whole(one) and _is_whole(other)):
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield first, second
    finally:
        first.remove()
        second.remove()


def _is_whole(node: Redis) -> bool:
    return bool(node.execute_command("CLUSTER INFO")["cluster_state"] == "ok")


@pytest.mark.parametrize("stream", ["orders", "refunds", "{shop}:orders", "od{d"])
async def test_a_stream_is_found_on_its_node(
    nodes: tuple[ValkeyServer, ValkeyServer], stream: str, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    for node in nodes:
        sink = RedisSink("orders", RedisDestination(url=node.url, stream=stream), lambda name: name, LOOPBACK)
        first, again = await sink.send(outgoing), await sink.send(outgoing)
        await sink.close()
        assert isinstance(first, Delivered)
        assert isinstance(again, Delivered)
        assert again.is_duplicate
