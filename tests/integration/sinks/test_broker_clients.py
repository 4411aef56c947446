"""A broker whose client library is not installed."""

import sys
from pathlib import Path

import pytest

from outbox_relay.networks import Networks
from outbox_relay.sinks.base import SinkRefused
from outbox_relay.sinks.opening import open_sink
from twiceshy_contract.destinations import (
    Destination,
    KafkaDestination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
)

MISSING: dict[str, tuple[str, Destination]] = {
    "redis": ("redis", RedisDestination(url="redis://localhost", stream="orders")),
    "nats": ("nats", NatsDestination(servers=("nats://localhost",), subject="orders")),
    "kafka": ("aiokafka", KafkaDestination(servers=("localhost:9092",), topic="orders")),
    "rabbitmq": ("aio_pika", RabbitMqDestination(url="amqp://localhost", routing_key="orders")),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_library_names_the_extra_that_brings_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library, settings = MISSING[kind]
    monkeypatch.delitem(sys.modules, f"outbox_relay.sinks.{kind}", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SinkRefused, match=rf"pip install 'twiceshy-server\[{kind}\]'"):
        open_sink("orders", settings, lambda name: name, Networks(), Path())
