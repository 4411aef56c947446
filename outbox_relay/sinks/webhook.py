"""Webhooks: one POST for each try, signed as Standard Webhooks say, to addresses that an operator lets be dialled.

Nothing is followed, no proxy and no credentials are taken from the environment, no cookie is kept.
"""

import ssl
import time
from importlib.metadata import version
from typing import Final, Literal

import msgspec
from aiohttp import hdrs
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from multidict import CIMultiDict, istr
from yarl import URL

from guard.core.destinations import is_written_by_the_relay
from outbox_relay.dialling import Attempt, DialGuard
from outbox_relay.networks import Networks
from outbox_relay.posting import Poster
from outbox_relay.secrets import ReadSecret
from outbox_relay.signatures import signatures, signing_key
from outbox_relay.sinks.base import Outgoing, Permanent, Reached, Result, Retryable, SinkRefused
from outbox_relay.sinks.webhook_answers import Answer, result_of
from outbox_relay.sinks.webhook_failures import unanswered
from twiceshy_contract.destinations import WebhookDestination

_AGENT: Final = f"twiceshy/{version('twiceshy-server')}"
_ID: Final = istr("webhook-id")
_TIMESTAMP: Final = istr("webhook-timestamp")
_SIGNATURE: Final = istr("webhook-signature")
_IDEMPOTENCY_KEY: Final = istr("Idempotency-Key")
_TYPE: Final = istr("Twiceshy-Type")
SECRETS_SECONDS: Final = 1.0
"""How long secrets that were read are taken for live: a file that is rotated is read within a second."""


class _Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """The secrets of a destination as they were read. They are taken for live `until` (of the monotonic clock)."""

    keys: tuple[bytes, ...]
    headers: dict[str, str]
    until: float


class WebhookSink:
    """Sends to one URL from one event loop. `resolver` and `certificates` are other ones than the system's."""

    def __init__(
        self,
        name: str,
        settings: WebhookDestination,
        read_secret: ReadSecret,
        networks: Networks,
        *,
        resolver: AbstractResolver | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        """Raise SinkRefused where the URL, a header or a secret cannot be used."""
        self._name = name
        self._settings = settings
        self._read_secret = read_secret
        self._guard = DialGuard(networks)
        self._resolver = resolver
        self._certificates = certificates
        self._url = _url(name, settings.url)
        self._poster: Poster | None = None
        self._fixed = _fixed_headers(name, settings)
        self._secrets = self._read()

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        """Whether the receiver drops a `webhook-id` that it knows: as declared, else whether it is sent signatures."""
        declared = self._settings.deduplicates
        drops = bool(self._settings.secrets) if declared is None else declared
        return "deduplicates" if drops else "sends_blindly"

    async def send(self, outgoing: Outgoing) -> Result:
        """POST the message once, and say what the answer means."""
        now = _now(outgoing)
        try:
            headers = self._headers(outgoing, now)
        except SinkRefused as refused:
            return Retryable(why=str(refused))
        except ValueError as error:
            return Permanent(why=str(error))
        attempt, seconds = Attempt(), self._settings.timeout_seconds
        try:
            message, beginning = await self._opened().post(attempt, headers, outgoing.body)
        except Exception as error:  # noqa: BLE001 - every end but cancellation is a result
            heard = attempt.heard_status()
            return unanswered(attempt, error, seconds) if heard is None else self._result(Answer(status=heard), now)
        return self._result(Answer(status=message.code, headers=message.headers, beginning=beginning), now)

    async def check(self) -> Reached:
        """Dial the receiver as a message would be, with its TLS handshake, and send nothing."""
        attempt, seconds = Attempt(), self._settings.timeout_seconds
        try:
            self._secrets = self._read()
            poster = self._made()
            try:
                connection = await poster.connect()
                detail = self._seen(attempt, connection)
                connection.close()
            finally:
                await poster.close()
        except SinkRefused as refused:
            return Reached(ok=False, detail=str(refused))
        except Exception as error:  # noqa: BLE001 - every end but cancellation is told
            return Reached(ok=False, detail=unanswered(attempt, error, seconds).why)
        return Reached(ok=True, detail=detail)

    async def close(self) -> None:
        """Close all connections."""
        poster, self._poster = self._poster, None
        if poster is not None:
            await poster.close()

    def _result(self, answer: Answer, now: int) -> Result:
        return result_of(answer, now, deduplicates=self.capability == "deduplicates")

    def _seen(self, attempt: Attempt, connection: Connection) -> str:
        transport = connection.transport
        tls = transport.get_extra_info("ssl_object") if transport is not None else None
        over = f"with {tls.version()}" if tls is not None else "without TLS"
        count = len(self._settings.secrets)
        signs = f"is signed with {count} secret{'s' if count > 1 else ''}" if count else "is not signed"
        port = self._url.port
        return f"{self._url.raw_host} answers at {attempt.dialled[-1]}, port {port}, {over}; a message {signs}."

    def _opened(self) -> Poster:
        if self._poster is None:
            self._poster = self._made()
        return self._poster

    def _made(self) -> Poster:
        return Poster(
            self._url,
            self._guard,
            self._settings.concurrency,
            seconds=self._settings.timeout_seconds,
            resolver=self._resolver,
            certificates=self._certificates,
        )

    def _headers(self, outgoing: Outgoing, now: int) -> CIMultiDict[str]:
        """Return the headers of a try: the destination's, over them the message's, the secret ones, and ours.

        Raises SinkRefused for a secret that cannot be read, and ValueError for a header that cannot be sent.
        """
        if time.monotonic() >= self._secrets.until:
            self._secrets = self._read()
        secrets = self._secrets
        identity, timestamp = outgoing.identity, str(now)
        headers = self._fixed.copy()
        for name, value in outgoing.headers.items():
            if not is_written_by_the_relay(name):
                headers[name] = _line(value, name)
        headers.setdefault(hdrs.CONTENT_TYPE, outgoing.content_type)
        if secrets.headers:
            headers.update(secrets.headers)
        headers[_ID] = headers[_IDEMPOTENCY_KEY] = identity
        headers[_TIMESTAMP] = timestamp
        if secrets.keys:
            headers[_SIGNATURE] = signatures(secrets.keys, identity, timestamp, outgoing.body)
        if outgoing.type is not None:
            headers[_TYPE] = outgoing.type
        return headers

    def _read(self) -> _Secrets:
        """Read all secrets anew. Raises SinkRefused."""
        read = self._read_secret
        return _Secrets(
            keys=tuple(signing_key(read(name), name) for name in self._settings.secrets),
            headers={header: _value(read(name), name) for header, name in self._settings.secret_headers.items()},
            until=time.monotonic() + SECRETS_SECONDS,
        )


def _now(outgoing: Outgoing) -> int:
    """Return the time of the try, which receivers compare with theirs: the database's, else this host's."""
    return int(time.time()) if outgoing.at is None else outgoing.at // 1_000_000


def _url(name: str, text: str) -> URL:
    """Return the URL of a destination. Raises SinkRefused."""
    try:
        url = URL(text)
    except ValueError as error:
        raise SinkRefused(f"The URL of {name} cannot be read ({error}): declare one that can.") from error
    if url.scheme not in {"http", "https"} or not url.raw_host:
        raise SinkRefused(f"The URL of {name} begins with neither http://host nor https://host: declare one that does.")
    if url.raw_user or url.raw_password:
        raise SinkRefused(f"The URL of {name} holds a user or a password: name it in `secret_headers` (Authorization).")
    return url


def _fixed_headers(name: str, settings: WebhookDestination) -> CIMultiDict[str]:
    """Return the headers that all messages of a destination have. Raises SinkRefused."""
    for header in (*settings.headers, *settings.secret_headers):
        if is_written_by_the_relay(header):
            raise SinkRefused(f"The header {header} of {name} is set by the relay alone: take it out of the settings.")
    fixed = CIMultiDict({"User-Agent": _AGENT, "Accept": "*/*", "Accept-Encoding": "identity"})
    fixed.update(settings.headers)
    return fixed


def _value(secret: str, name: str) -> str:
    """Return a secret that a header can carry. Raises SinkRefused, without the secret."""
    if not secret.isascii() or not secret.isprintable():
        raise SinkRefused(f"The secret {name} holds what a header cannot carry: only printable ASCII, on one line.")
    return secret


def _line(value: str, name: str) -> str:
    """Return a value that a header can carry. Raises ValueError."""
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"The header {name!r} of the message cannot be sent: only printable ASCII, on one line.")
    return value
