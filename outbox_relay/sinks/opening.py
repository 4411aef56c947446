"""Which sink sends to which kind of destination."""

from pathlib import Path
from typing import assert_never

from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Sink
from outbox_relay.sinks.discreet import DiscreetSink
from twiceshy_contract.destinations import (
    Destination,
    KafkaDestination,
    LogDestination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
    SmtpDestination,
    WebhookDestination,
)


def open_sink(name: str, settings: Destination, read_secret: ReadSecret, networks: Networks, folder: Path) -> Sink:
    """Open a destination; it connects later. What is said of it holds no secret. Logs are written below the folder.

    Raises SinkRefused where a secret or a library is missing.
    """
    return DiscreetSink(lambda read: _opened(name, settings, read, networks, folder), read_secret)


def _opened(  # noqa: PLR0911  one for each kind
    name: str, settings: Destination, read_secret: ReadSecret, networks: Networks, folder: Path
) -> Sink:
    """Open a destination; each kind's library is loaded here, when it is needed."""
    match settings:
        case WebhookDestination():
            from outbox_relay.sinks.webhook import WebhookSink

            return WebhookSink(name, settings, read_secret, networks)
        case SmtpDestination():
            from outbox_relay.sinks.smtp import SmtpSink

            return SmtpSink(name, settings, read_secret, networks)
        case RedisDestination():
            from outbox_relay.sinks.redis import RedisSink

            return RedisSink(name, settings, read_secret, networks)
        case NatsDestination():
            from outbox_relay.sinks.nats import NatsSink

            return NatsSink(name, settings, read_secret, networks)
        case KafkaDestination():
            from outbox_relay.sinks.kafka import KafkaSink

            return KafkaSink(name, settings, read_secret, networks)
        case RabbitMqDestination():
            from outbox_relay.sinks.rabbitmq import RabbitMqSink

            return RabbitMqSink(name, settings, read_secret, networks)
        case LogDestination():
            from outbox_relay.sinks.log import LogSink

            return LogSink(name, settings, folder)
    assert_never(settings)
