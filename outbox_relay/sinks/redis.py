"""Append to a stream of Redis or Valkey.

One script marks a message as known and appends it, so that both happen or neither: a message that is known is not
appended again, and one that could not be appended is not known, whatever kept it from being appended.
"""

import asyncio
import hashlib
from collections import deque
from typing import Any, Final, Literal
from urllib.parse import parse_qs, urlsplit

from outbox_relay.networks import Networks
from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, SinkRefused
from outbox_relay.sinks.connected import ConnectedSink, NotSent, kind_of, refused, told, without
from twiceshy_contract.destinations import RedisDestination

try:
    from redis import exceptions as failures
    from redis.asyncio.connection import AbstractConnection, ConnectionPool, SSLConnection, parse_url
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
except ImportError as error:
    raise SinkRefused("Redis needs its client: pip install 'twiceshy-server[redis]'.") from error

_SCRIPT: Final = """
if redis.call('GET', KEYS[1]) == '1' then
  return false
end
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
local ok, added = pcall(function()
  if ARGV[2] == '0' then
    return redis.pcall('XADD', KEYS[2], '*', unpack(ARGV, 3))
  end
  return redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', unpack(ARGV, 3))
end)
if ok and not (type(added) == 'table' and added.err) then
  return added
end
redis.call('SET', KEYS[1], '0', 'PX', 1)
if ok then
  return added
end
return redis.error_reply('ERR ' .. tostring(added))
"""
# The mark is written first, for a user may be refused just that, and what was appended cannot be taken back. It is
# taken back by the one command that has just been allowed; until it ends, a millisecond later, it says so.
_DIGEST: Final = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()
_HOPS: Final = 3
_ANSWERED: Final = (failures.ResponseError, failures.AuthenticationError, failures.BusyLoadingError)
_ELSEWHERE: Final = (failures.AskError, failures.ReadOnlyError, failures.ClusterDownError)
_RESERVED: Final = ("id", "type", "content-type", "body")
_MOST_HEADERS: Final = 1000
"""A script of the server cannot take apart many more."""
_PORT: Final = 6379

Answer = bytes | int | str | list[object] | None
Argument = bytes | str | int


class RedisSink(ConnectedSink["_Pipe"]):
    """One stream; what waits to be sent leaves together, over one connection."""

    def __init__(self, name: str, settings: RedisDestination, read_secret: ReadSecret, networks: Networks) -> None:
        super().__init__(name, settings.timeout_seconds, networks)
        self._settings = settings
        self._read_secret = read_secret
        self._tag = _hash_tag(settings.stream)
        self._options = _options_of(name, settings.url)

    @property
    def capability(self) -> Literal["deduplicates"]:
        """The script knows what is in the stream."""
        return "deduplicates"

    async def _open(self) -> "_Pipe":
        options: dict[str, Any] = {
            **self._options,
            "protocol": 2,
            "socket_timeout": None,
            "socket_connect_timeout": self._settings.timeout_seconds,
            "retry": Retry(NoBackoff(), 0),
        }
        if self._settings.password is not None:
            options["password"] = self._read_secret(self._settings.password)
        host, port = str(options["host"]), int(options.get("port", _PORT))
        for _ in range(_HOPS):
            pipe = _Pipe(await self._logged_in(host, port, options))
            try:
                await pipe.ask("EXISTS", self._settings.stream)
            except failures.MovedError as moved:
                await pipe.end()
                host, port = moved.host or host, moved.port
            except failures.NoPermissionError:
                return pipe
            except _ANSWERED as error:
                await pipe.end()
                raise _unsent(error) from error
            except BaseException:
                await pipe.end()
                raise
            else:
                return pipe
        raise NotSent(Retryable(why=f"no node of the cluster holds {self._settings.stream}"))

    async def _logged_in(self, host: str, port: int, options: dict[str, Any]) -> AbstractConnection:
        """Return a connection to a node, which may be one that another node has named: it is judged like the first."""
        return await self._dial(
            host,
            port,
            lambda place: _dialled({**options, "host": place, "port": port}),
            by_name=options.get("connection_class") is SSLConnection,
        )

    def _is_open(self, connection: "_Pipe") -> bool:
        return connection.is_open

    async def _end(self, connection: "_Pipe") -> None:
        await connection.end()

    async def _publish(self, connection: "_Pipe", outgoing: Outgoing) -> Result:
        if len(outgoing.headers) > _MOST_HEADERS:
            return Permanent(
                why=f"it has {len(outgoing.headers)} headers, and {_MOST_HEADERS} are the most of an entry"
            )
        arguments = self._arguments(outgoing)
        try:
            try:
                entry = await connection.ask("EVALSHA", _DIGEST, *arguments)
            except failures.NoScriptError:
                entry = await connection.ask("EVAL", _SCRIPT, *arguments)
        except _ANSWERED as error:
            if isinstance(error, _ELSEWHERE):
                self._drop(connection)
            return _refused(error)
        if entry is None:
            return Delivered(receipt=f"{self._settings.stream} has it already", is_duplicate=True)
        return Delivered(receipt=entry.decode() if isinstance(entry, bytes) else str(entry))

    def _arguments(self, outgoing: Outgoing) -> list[Argument]:
        fields: list[Argument] = ["id", outgoing.identity]
        if outgoing.type is not None:
            fields += ["type", outgoing.type]
        fields += ["content-type", outgoing.content_type, "body", outgoing.body]
        for name, value in without(outgoing.headers, *_RESERVED).items():
            fields += [name, value]
        keys = [f"{{{self._tag}}}:twiceshy:{outgoing.identity}", self._settings.stream]
        return [2, *keys, self._settings.dedup_seconds * 1000, self._settings.max_length or 0, *fields]

    async def _look(self, connection: "_Pipe") -> str:
        try:
            entries = await connection.ask("XLEN", self._settings.stream)
        except _ANSWERED as error:
            raise _unsent(error) from error
        if not isinstance(entries, int):
            raise NotSent(Retryable(why="what answers is no Redis: the length of a stream is no number"))
        return f"the server answers; the stream {self._settings.stream} holds {entries} entries"


class _Pipe:
    """A connection on which commands leave without waiting for the answers to those before them.

    Answers come in the order of the commands. Once the connection breaks, all who wait are told.
    """

    def __init__(self, connection: AbstractConnection) -> None:
        self._connection = connection
        self._unsent: list[bytes] = []
        self._waiting: deque[asyncio.Future[Answer]] = deque()
        self._has_unsent = asyncio.Event()
        self._tasks = [asyncio.create_task(self._write()), asyncio.create_task(self._read())]
        self.is_open = True

    async def ask(self, *command: Argument) -> Answer:
        """Send a command and return its answer. Raises what the server answers as an error, ConnectionError too."""
        if not self.is_open:
            raise NotSent(Retryable(why="the connection is closed", is_unreachable=True))
        self._unsent += self._connection.pack_command(*command)
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._has_unsent.set()
        return await answer

    async def end(self) -> None:
        """Close the connection and tell all who wait."""
        self._break(failures.ConnectionError("the connection was closed"))
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        await self._connection.disconnect(nowait=True)

    async def _write(self) -> None:
        try:
            while await self._has_unsent.wait():
                self._has_unsent.clear()
                leaving, self._unsent = self._unsent, []
                await self._connection.send_packed_command(leaving, check_health=False)
        except Exception as error:  # noqa: BLE001  the client may raise anything at what a server says
            self._break(error)

    async def _read(self) -> None:
        try:
            while True:
                self._hand_out(await self._next_answer())
        except Exception as error:  # noqa: BLE001  the client may raise anything at what a server says
            self._break(error)

    async def _next_answer(self) -> Answer | failures.RedisError:
        try:
            answer: Answer = await self._connection.read_response(disconnect_on_error=False)
        except _ANSWERED as error:
            return error
        return answer

    def _hand_out(self, answer: Answer | failures.RedisError) -> None:
        if not self._waiting:
            raise failures.InvalidResponse("the server answers what nobody asked")
        asked = self._waiting.popleft()
        if asked.done():
            return
        if isinstance(answer, failures.RedisError):
            asked.set_exception(answer)
        else:
            asked.set_result(answer)

    def _break(self, error: Exception) -> None:
        self.is_open = False
        for asked in self._waiting:
            if not asked.done():
                broken = failures.ConnectionError(told(error))
                broken.__cause__ = error
                asked.set_exception(broken)
        self._waiting.clear()


async def _dialled(options: dict[str, Any]) -> AbstractConnection:
    """Return a connection that has logged in. Raises NotSent."""
    pool = ConnectionPool(**options)
    connection = pool.connection_class(**pool.connection_kwargs)
    try:
        await connection.connect()
    except failures.AuthenticationError as error:
        raise refused("the server refuses the login", error) from error
    except failures.RedisError as error:
        raise refused("no connection", error, is_unreachable=True) from error
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return connection


def _unsent(error: failures.RedisError) -> NotSent:
    return NotSent(_refused(error), seen=f"the server answers with an error ({kind_of(error)})")


def _refused(error: failures.RedisError) -> Retryable | Permanent:
    """Return what an error answer proves: the script has changed nothing."""
    why = f"the server answers: {told(error)}"
    if isinstance(error, failures.ClusterCrossSlotError) or str(error).startswith("WRONGTYPE"):
        return Permanent(why=why)
    return Retryable(why=why, is_throttled=isinstance(error, failures.OutOfMemoryError))


def _options_of(name: str, url: str) -> dict[str, Any]:
    """Return what a URL says, in the client's own words. Raises SinkRefused.

    The client takes any of its own arguments from a URL, and breaks at many.
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_url(url))
    except ValueError as error:
        raise SinkRefused(f"The url of {name} is none of Redis: {told(error)}") from error
    if parts.scheme not in ("redis", "rediss") or not options.get("host"):
        raise SinkRefused(f"The url of {name} is none of Redis: write redis://user@host:6379/0 or rediss://…")
    unknown = sorted(set(parse_qs(parts.query, keep_blank_values=True)) - {"db"})
    if unknown:
        raise SinkRefused(f"The url of {name} has the option {unknown[0]}, and takes none but db: leave it out.")
    return options


def _hash_tag(stream: str) -> str:
    """Return what a cluster places a stream by: what stands in its first braces, else all of it."""
    _, brace, rest = stream.partition("{")
    tag, closing, _ = rest.partition("}")
    return tag if brace and closing and tag else stream
