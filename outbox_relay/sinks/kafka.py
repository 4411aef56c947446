"""Produce to a topic of Kafka.

The producer is idempotent: within one connection a broker keeps a record once, however often it was sent. A record
whose outcome stayed unknown may come again over another connection, and consumers tell it by its header `id`.

The servers that settings name are judged before each connection. The brokers that these advertise are dialled by the
client itself, out of reach of any judgement here.
"""

import asyncio
import logging
import re
import ssl
from typing import Final, Literal

from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, SinkRefused, Unknown
from outbox_relay.sinks.connected import ConnectedSink, NotSent, refused, told, without
from twiceshy_contract.destinations import KafkaDestination

try:
    from aiokafka import AIOKafkaProducer
    from aiokafka import errors as failures
    from aiokafka.conn import create_conn
    from aiokafka.structs import RecordMetadata
except ImportError as error:
    raise SinkRefused("Kafka needs its client: pip install 'twiceshy-server[kafka]'.") from error

# The library logs each failure, which is a result here; without a handler Python would print it.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

_SERVER: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):(\d{1,5})")
_RESERVED: Final = ("id", "type", "content-type")
_LARGEST_BYTES: Final = 16 * 1024 * 1024
_LARGEST_PORT: Final = 65_535
_TOPIC_WAITS: Final = (0.0, 0.1, 0.3, 0.6)
_NEVER: Final = (
    failures.MessageSizeTooLargeError,
    failures.RecordListTooLargeError,
    failures.InvalidTopicError,
    failures.InvalidTimestampError,
    failures.UnsupportedForMessageFormatError,
    failures.PolicyViolationError,
)
_LOGIN: Final = (
    failures.AuthenticationFailedError,
    failures.AuthenticationMethodNotSupported,
    failures.IllegalSaslStateError,
    failures.SaslAuthenticationFailed,
    failures.UnsupportedSaslMechanismError,
)
_NOT_ALLOWED: Final = (failures.TopicAuthorizationFailedError, failures.ClusterAuthorizationFailedError)


class KafkaSink(ConnectedSink[AIOKafkaProducer]):
    """One topic; records of one lane have its name for their key, and so one partition."""

    def __init__(self, name: str, settings: KafkaDestination, read_secret: ReadSecret, networks: Networks) -> None:
        super().__init__(name, settings.timeout_seconds, networks)
        for server in settings.servers:
            found = _SERVER.fullmatch(server)
            if found is None or not 0 < int(found[1]) <= _LARGEST_PORT:
                raise SinkRefused(f"The server {server} of {name} is none of Kafka: write host:9092.")
        self._settings = settings
        self._read_secret = read_secret

    @property
    def capability(self) -> Literal["deduplicates"]:
        """A record sent again has the header `id` that it had; consumers tell it by that."""
        return "deduplicates"

    async def _open(self) -> AIOKafkaProducer:
        login = self._login()
        servers = await self._judged_servers()
        producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            client_id="twiceshy-relay",
            enable_idempotence=True,
            max_request_size=_LARGEST_BYTES,
            request_timeout_ms=int(self._settings.timeout_seconds * 1000),
            **login,
        )
        try:
            await producer.start()
            await self._find_topic(producer)
        except failures.KafkaConnectionError as error:
            await _abandon(producer)
            raise (await self._why_unreachable(servers[0], error)) from error
        except BaseException:
            await _abandon(producer)
            raise
        return producer

    async def _judged_servers(self) -> list[str]:
        """Return the servers by their judged addresses; over TLS by their names. Raises NotSent."""
        is_by_name = self._settings.security in ("ssl", "sasl_ssl")
        found: list[str] = []
        failed: NotSent | None = None
        for server in self._settings.servers:
            host, _, port = server.rpartition(":")
            try:
                addresses = await self._judged(host.strip("[]"), int(port))
            except NotSent as error:
                if isinstance(error.result, Permanent):
                    raise
                failed = error  # the others may be known
                continue
            found += [server] if is_by_name else [_place(address, port) for address in addresses]
        if not found and failed is not None:
            raise failed
        return found

    def _login(self) -> dict[str, object]:
        settings = self._settings
        login: dict[str, object] = {"security_protocol": settings.security.upper()}
        if settings.security in ("ssl", "sasl_ssl"):
            login["ssl_context"] = ssl.create_default_context()
        if settings.security in ("sasl_plaintext", "sasl_ssl"):
            login["sasl_mechanism"] = settings.mechanism
            login["sasl_plain_username"] = settings.username or ""
            login["sasl_plain_password"] = "" if settings.password is None else self._read_secret(settings.password)
        return login

    async def _find_topic(self, producer: AIOKafkaProducer) -> None:
        """Wait until the cluster tells of the topic; one that it creates on demand comes with the second answer."""
        client = producer.client
        is_answered = await client.add_topic(self._settings.topic)
        for pause in _TOPIC_WAITS:
            await asyncio.sleep(pause)
            if client.cluster.partitions_for_topic(self._settings.topic):
                return
            is_answered = await client.force_metadata_update()
        if self._settings.topic in client.cluster.unauthorized_topics:
            raise NotSent(Retryable(why=f"the cluster lets this user not see the topic {self._settings.topic}"))
        if not is_answered:
            raise NotSent(Retryable(why="the cluster does not tell of its topics", is_unreachable=True))
        raise NotSent(Permanent(why=f"the cluster has no topic {self._settings.topic}: create it"))

    async def _why_unreachable(self, server: str, error: failures.KafkaError) -> NotSent:
        """Ask one server again, for the client keeps the reason to itself."""
        host, _, port = server.rpartition(":")
        try:
            connection = await create_conn(
                host.strip("[]"), int(port), request_timeout_ms=int(self._seconds * 1000), **self._login()
            )
        except _LOGIN as seen:
            return refused("the server refuses the login", seen)
        except failures.IncompatibleBrokerVersion as seen:
            return refused(f"the server does not know what {self._settings.security} needs", seen)
        except OSError as seen:
            return refused("no connection", seen, is_unreachable=True)
        except Exception as seen:  # noqa: BLE001  the client asserts what a stranger does not keep
            return refused(_why_it_hung_up(self._settings.security), seen, is_unreachable=True)
        await connection.close()
        return refused("no connection", error, is_unreachable=True)

    def _is_open(self, connection: AIOKafkaProducer) -> bool:
        """Say whether it still sends. The client connects to each broker by itself, as partitions move."""
        sender = _sending_task(connection)
        return sender is not None and not sender.done()

    async def _end(self, connection: AIOKafkaProducer) -> None:
        await _abandon(connection)

    async def _publish(self, connection: AIOKafkaProducer, outgoing: Outgoing) -> Result:
        key = None if outgoing.lane is None else outgoing.lane.encode()
        headers = [(name, value.encode()) for name, value in _headers(outgoing).items()]
        answer: asyncio.Future[RecordMetadata] | None = None
        try:
            answer = await connection.send(self._settings.topic, value=outgoing.body, key=key, headers=headers)
            record = await answer
        except failures.KafkaError as error:
            # Records after one that was refused would leave a gap in the numbers of this producer.
            self._drop(connection)
            return _refused(error, has_left=answer is not None)
        return Delivered(receipt=f"{record.topic}-{record.partition}@{record.offset}")

    async def _look(self, connection: AIOKafkaProducer) -> str:
        await connection.client.force_metadata_update()
        await self._find_topic(connection)
        partitions = connection.client.cluster.partitions_for_topic(self._settings.topic)
        return f"the cluster answers; the topic {self._settings.topic} has {len(partitions)} partitions"


async def _abandon(producer: AIOKafkaProducer) -> None:
    """Stop a producer at once. Its own `stop` goes on sending what is left, for as long as no broker answers."""
    sender = _sending_task(producer)
    if sender is not None:
        sender.cancel()
    await producer.stop()


def _sending_task(producer: AIOKafkaProducer) -> asyncio.Task[None] | None:
    task: asyncio.Task[None] | None = producer._sender.sender_task  # noqa: SLF001  there is no public way to it
    return task


def _place(address: str, port: str) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _why_it_hung_up(security: str) -> str:
    guess = "is the login right, and is it a port of Kafka with SASL" if "sasl" in security else "is it a port of Kafka"
    return f"the server takes the connection and does not answer as Kafka does ({guess}?)"


def _headers(outgoing: Outgoing) -> dict[str, str]:
    own = {"id": outgoing.identity, "content-type": outgoing.content_type}
    if outgoing.type is not None:
        own["type"] = outgoing.type
    return {**without(outgoing.headers, *_RESERVED), **own}


def _refused(error: failures.KafkaError, *, has_left: bool) -> Result:
    """Return what an error proves. One that the client cannot place may have come after the record was written."""
    if isinstance(error, _NEVER):
        return Permanent(why=f"the broker refuses the record: {told(error)}")
    if isinstance(error, _NOT_ALLOWED):
        return Retryable(why=f"the broker lets this user not write: {told(error)}")
    if not has_left:
        return Retryable(why=told(error), is_unreachable=True)
    return Unknown(why=f"the broker answers: {told(error)}")
