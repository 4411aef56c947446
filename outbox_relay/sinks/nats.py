"""Publish to a subject of NATS that a JetStream stream takes.

The stream drops a message whose `Nats-Msg-Id` it has seen within its window for duplicates, and says so. Whoever
subscribes to the subject can answer too: only what a stream alone says is taken for its answer.
"""

import asyncio
import re
from contextlib import suppress
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec

from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Outgoing, Permanent, Result, Retryable, SinkRefused
from outbox_relay.sinks.connected import ConnectedSink, NotSent, kind_of, refused, told
from outbox_relay.sinks.nats_answers import judged
from twiceshy_contract.destinations import NatsDestination

try:
    from nats import errors
    from nats.aio.client import Client, RawCredentials
    from nats.aio.msg import Msg
    from nats.js import errors as stream_errors
except ImportError as error:
    raise SinkRefused("NATS needs its client: pip install 'twiceshy-server[nats]'.") from error

_SUBJECT: Final = re.compile(r"[^\s.*>]+(?:\.[^\s.*>]+)*")
_SERVER: Final = re.compile(r"(?:(?:nats|tls)://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+)(?::\d{1,5})?/?")
_PORT: Final = 4222
_STREAM: Final = re.compile(r"[A-Za-z0-9_-]{1,255}")
_NOBODY: Final = "503"


class NatsSink(ConnectedSink["_Session"]):
    """One subject, over one connection of its own making: the client's own reconnecting would resend."""

    def __init__(self, name: str, settings: NatsDestination, read_secret: ReadSecret, networks: Networks) -> None:
        super().__init__(name, settings.timeout_seconds, networks)
        self._settings = _checked(name, settings)
        self._servers = [_server(name, server) for server in settings.servers]
        self._read_secret = read_secret

    @property
    def capability(self) -> Literal["deduplicates"]:
        """The stream knows what it took within its window."""
        return "deduplicates"

    async def _open(self) -> "_Session":
        settings = self._settings
        token = None if settings.token is None else self._read_secret(settings.token)
        credentials = None
        if settings.credentials is not None:
            credentials = _checked_credentials(self._read_secret(settings.credentials))
        failed: NotSent | Exception | None = None
        for server in self._servers:
            try:
                return await self._connect(server, token, credentials)
            except NotSent as error:
                if isinstance(error.result, Permanent) or not error.result.is_unreachable:
                    raise
                failed = error
            except (OSError, TimeoutError, errors.Error) as error:
                failed = error
        raise failed or errors.NoServersError

    async def _connect(self, server: "_Server", token: str | None, credentials: RawCredentials | None) -> "_Session":
        """Connect to one server by its judged address; its certificate must still be that of its name."""

        async def connect(address: str) -> _Session:
            session = _Session(self._seconds)
            try:
                await session.connect(server, address, token, credentials)
            except BaseException as error:
                has_greeted = session.client.client_id is not None  # a server says it before it asks for the login
                with suppress(Exception):  # what the client says of closing hides what went wrong
                    await session.end()
                if isinstance(error, errors.NoServersError):
                    raise (session.heard or error) from error
                if isinstance(error, errors.Error):
                    if not has_greeted:
                        raise refused("no server of NATS answers", error, is_unreachable=True) from error
                    raise refused("the server refuses the connection", error) from error
                raise
            return session

        return await self._dial(server.host, server.port, connect, by_name=False, among=len(self._servers))

    def _is_open(self, connection: "_Session") -> bool:
        return connection.client.is_connected

    async def _end(self, connection: "_Session") -> None:
        await connection.end()

    async def _publish(self, connection: "_Session", outgoing: Outgoing) -> Result:
        headers = _headers(outgoing, self._settings.stream)
        size = len(outgoing.body) + sum(len(name) + len(value) + 4 for name, value in headers.items()) + 100
        if size > connection.client.max_payload:
            return Permanent(why=f"it is larger than the {connection.client.max_payload} bytes that the server takes")
        try:
            answer = await connection.publish(self._settings.subject, outgoing.body, headers)
        except _Denied as error:
            return Retryable(why=f"the server refuses: {told(error)}")
        except _Lost:
            raise
        except errors.ConnectionClosedError:
            return Retryable(why="the connection is closed", is_unreachable=True)
        if (answer.headers or {}).get("Status") == _NOBODY:
            return await self._why_nobody_takes_it(connection)
        return judged(answer.data, self._settings)

    async def _why_nobody_takes_it(self, connection: "_Session") -> Retryable | Permanent:
        """Tell a subject that no stream takes from a stream that has no leader just now."""
        subject = self._settings.subject
        try:
            stream = await connection.stream_of(subject)
        except stream_errors.NotFoundError:
            return Permanent(why=f"no stream takes the subject {subject}: create one, or correct the subject")
        except (errors.NoRespondersError, stream_errors.APIError) as error:
            return Retryable(why=f"JetStream does not answer: is it enabled for this account? ({told(error)})")
        return Retryable(why=f"the stream {stream} does not answer: it has no leader just now")

    async def _look(self, connection: "_Session") -> str:
        try:
            stream = await connection.stream_of(self._settings.subject)
        except stream_errors.NotFoundError as error:
            why = f"no stream takes the subject {self._settings.subject}: create one, or correct the subject"
            raise NotSent(Permanent(why=why)) from error
        except (errors.NoRespondersError, stream_errors.APIError) as error:
            why = "JetStream does not answer: is it enabled for this account?"
            raise NotSent(Retryable(why=why), seen=f"{why} ({kind_of(error)})") from error
        named = f"the stream {stream}" if _STREAM.fullmatch(stream) else "a stream"
        if self._settings.stream not in (None, stream):
            raise NotSent(Permanent(why=f"{named} takes the subject, not {self._settings.stream}"))
        return f"the server answers; {named} takes {self._settings.subject}"


class _Session:
    """A connection, and the answers that are waited for on it.

    The client's own way to publish without waiting loses an answer that is an error; and it lets all wait for their
    whole time where the connection is closed. Here they are told at once.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self.client = Client()
        self._seconds = timeout_seconds
        self._inbox = ""
        self._asked = 0
        self._waiting: dict[str, asyncio.Future[Msg]] = {}
        self.heard: Exception | None = None

    async def connect(
        self, server: "_Server", address: str, token: str | None, credentials: RawCredentials | None
    ) -> None:
        """Connect to one address of a server, log in, and listen for answers."""
        place = f"[{address}]" if ":" in address else address
        await self.client.connect(
            [f"{server.scheme}://{place}:{server.port}"],
            tls_hostname=server.host,
            name="twiceshy-relay",
            token=token,
            user_credentials=credentials,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=max(1, int(self._seconds)),
            error_cb=self._hear,
            closed_cb=self._tell_lost,
        )
        self._inbox = self.client.new_inbox()
        await self.client.subscribe(f"{self._inbox}.*", cb=self._take)

    async def publish(self, subject: str, body: bytes, headers: dict[str, str]) -> Msg:
        """Publish, and return the answer."""
        self._asked += 1
        reply = f"{self._inbox}.{self._asked}"
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._waiting[reply] = answer
        try:
            await self.client.publish(subject, body, reply=reply, headers=headers)
            return await answer
        finally:
            del self._waiting[reply]

    async def stream_of(self, subject: str) -> str:
        """Return the stream that takes a subject. Raises NotFoundError where none does."""
        return await self.client.jetstream(timeout=self._seconds).find_stream_name_by_subject(subject)

    async def end(self) -> None:
        """Close the connection and tell all who wait."""
        try:
            await self.client.close()
        finally:
            self._tell_all(_Lost())

    async def _take(self, answer: Msg) -> None:
        waiting = self._waiting.get(answer.subject)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def _tell_lost(self) -> None:
        self._tell_all(_Lost())

    async def _hear(self, error: Exception) -> None:
        """Tell all who wait where the server lets nobody publish; it names the subject, which all share."""
        self.heard = error
        if "permissions violation for publish" in str(error).lower():
            self._tell_all(_Denied(told(error)))

    def _tell_all(self, error: errors.Error) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(error)


class _Lost(errors.ConnectionClosedError):
    """The connection was closed after the message had left."""


class _Denied(errors.Error):
    """The server lets this user not publish to the subject."""


class _Server(msgspec.Struct, frozen=True):
    scheme: str
    host: str
    port: int


def _checked(name: str, settings: NatsDestination) -> NatsDestination:
    """Return settings whose subject can be published to. Raises SinkRefused."""
    if not _SUBJECT.fullmatch(settings.subject):
        raise SinkRefused(f"The subject of {name} must name one subject: words joined by dots, no * and no >.")
    if settings.subject.startswith("$"):
        raise SinkRefused(f"The subject of {name} commands the server ({settings.subject}): name one of your own.")
    return settings


def _server(name: str, url: str) -> _Server:
    """Return what a server's URL says. Raises SinkRefused."""
    refusal = SinkRefused(f"The server {url} of {name} is none of NATS: write nats://host:4222 or tls://host:4222.")
    if not _SERVER.fullmatch(url):
        raise refusal
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        port = parts.port
    except ValueError as error:
        raise refusal from error
    return _Server(parts.scheme, parts.hostname or "", _PORT if port is None else port)


def _checked_credentials(text: str) -> RawCredentials:
    """Return the contents of a credentials file. The client would read on for ever where a part is missing."""
    if "BEGIN NATS USER JWT" not in text or "BEGIN USER NKEY SEED" not in text:
        raise SinkRefused("The credentials are not those of NATS: give the contents of a .creds file.")
    return RawCredentials(text)


def _headers(outgoing: Outgoing, stream: str | None) -> dict[str, str]:
    """Return the headers; those that command the server (`Nats-…`) are never a message's own."""
    own = {"Nats-Msg-Id": outgoing.identity, "Content-Type": outgoing.content_type}
    if outgoing.type is not None:
        own["Type"] = outgoing.type
    if stream is not None:
        own["Nats-Expected-Stream"] = stream
    taken = {name.lower() for name in own} | {"type"}
    given = {
        name: value
        for name, value in outgoing.headers.items()
        if name.lower() not in taken and not name.lower().startswith("nats-")
    }
    return {**given, **own}
