"""Publish to an exchange of RabbitMQ.

Every message is persistent, confirmed by the broker, and mandatory: one that no queue takes comes back as an error. A
message whose outcome stayed unknown may come again; consumers tell it by its `message_id`.
"""

from typing import Final, Literal

from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, SinkRefused
from outbox_relay.sinks.connected import ConnectedSink, NotSent, refused, told
from twiceshy_contract.destinations import RabbitMqDestination

try:
    import aio_pika
    from aio_pika import exceptions as failures
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange
    from yarl import URL
except ImportError as error:
    raise SinkRefused("RabbitMQ needs its client: pip install 'twiceshy-server[rabbitmq]'.") from error

_PORTS: Final = {"amqp": 5672, "amqps": 5671}
_LONGEST_BYTES: Final = 255
_LOGIN: Final = (failures.AuthenticationError, failures.ProbableAuthenticationError)


class RabbitMqSink(ConnectedSink["_Session"]):
    """One exchange and routing key, over one channel with confirms."""

    def __init__(self, name: str, settings: RabbitMqDestination, read_secret: ReadSecret, networks: Networks) -> None:
        super().__init__(name, settings.timeout_seconds, networks)
        self._url, self._host, self._port = _read(name, settings.url)
        for field in ("exchange", "routing_key"):
            if len(getattr(settings, field).encode()) > _LONGEST_BYTES:
                raise SinkRefused(f"The {field} of {name} is longer than {_LONGEST_BYTES} bytes of UTF-8: shorten it.")
        self._settings = settings
        self._read_secret = read_secret

    @property
    def capability(self) -> Literal["deduplicates"]:
        """A message sent again has the `message_id` that it had; consumers tell it by that."""
        return "deduplicates"

    async def _open(self) -> "_Session":
        url = self._url
        if self._settings.password is not None:
            url = url.with_password(self._read_secret(self._settings.password))
        connection = await self._dial(
            self._host, self._port, lambda place: _connected(url.with_host(place)), by_name=url.scheme == "amqps"
        )
        try:
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            return _Session(connection, channel, await self._exchange(channel))
        except BaseException:
            await connection.close()
            raise

    async def _exchange(self, channel: AbstractChannel) -> AbstractExchange:
        """Return the exchange, once the server has said that it has it."""
        name = self._settings.exchange
        if not name:
            return channel.default_exchange
        try:
            return await channel.get_exchange(name, ensure=True)
        except failures.ChannelNotFoundEntity as error:
            raise NotSent(Permanent(why=f"the server has no exchange {name}: declare it")) from error
        except failures.ChannelClosed as error:
            raise refused(f"the server refuses the exchange {name}", error) from error

    def _is_open(self, connection: "_Session") -> bool:
        return not connection.connection.is_closed and not connection.channel.is_closed

    async def _end(self, connection: "_Session") -> None:
        await connection.connection.close()

    async def _publish(self, connection: "_Session", outgoing: Outgoing) -> Result:
        message = aio_pika.Message(
            outgoing.body,
            headers=dict(outgoing.headers),
            content_type=outgoing.content_type,
            message_id=outgoing.identity,
            type=outgoing.type,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        key = self._settings.routing_key
        try:
            await connection.exchange.publish(message, key, mandatory=True)
        except failures.PublishError:
            return Permanent(why=f"no queue takes it from {self._place} by the routing key {key}: bind one")
        except failures.DeliveryError as error:
            return Retryable(why=f"the broker did not take it: {told(error)}", is_throttled=True)
        return Delivered(receipt="confirmed")

    async def _look(self, connection: "_Session") -> str:
        async with await connection.connection.channel() as channel:
            # A channel of its own: the server closes the one on which it is asked for what it has not.
            await self._exchange(channel)
        return f"the server answers and has {self._place}"

    @property
    def _place(self) -> str:
        return f"the exchange {self._settings.exchange}" if self._settings.exchange else "the default exchange"


async def _connected(url: URL) -> AbstractConnection:
    try:
        return await aio_pika.connect(url, client_properties={"connection_name": "twiceshy-relay"})
    except _LOGIN as error:
        raise refused("the server refuses the login", error) from error


def _read(name: str, text: str) -> tuple[URL, str, int]:
    """Return a URL with its host and port. Raises SinkRefused.

    The client takes options from a URL, files of this host among them, and breaks at some.
    """
    try:
        url = URL(text)
    except ValueError as error:
        raise SinkRefused(f"The url of {name} is none of RabbitMQ: {told(error)}") from error
    if url.scheme not in _PORTS or not url.host:
        raise SinkRefused(f"The url of {name} is none of RabbitMQ: write amqp://user@host:5672/virtual-host.")
    if url.query_string:
        raise SinkRefused(f"The url of {name} has options behind a question mark, and takes none: leave them out.")
    return url, url.host, url.port or _PORTS[url.scheme]


class _Session:
    """A connection, its channel, and the exchange."""

    def __init__(self, connection: AbstractConnection, channel: AbstractChannel, exchange: AbstractExchange) -> None:
        self.connection = connection
        self.channel = channel
        self.exchange = exchange
