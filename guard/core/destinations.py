"""What a destination's settings must say beyond their shape. No secret may stand in them: rows are read by many."""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from guard.core.mail import sender_misfit
from twiceshy_contract.destinations import (
    Destination,
    NatsDestination,
    RabbitMqDestination,
    RedisDestination,
    SmtpDestination,
    WebhookDestination,
)
from twiceshy_contract.refusals import Refusal, Step

_SCHEMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "webhook": ("https", "http"),
        "redis": ("redis", "rediss"),
        "nats": ("nats", "tls"),
        "rabbitmq": ("amqp", "amqps"),
    }
)
_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({"redis": ("db",), "nats": (), "rabbitmq": ()})
"""What may stand behind the question mark of a broker's URL. A client would take files and its own code from there."""
_LONGEST_BYTES: Final = 255
"""AMQP writes a name's length into one byte."""
_WRITTEN_BY_THE_RELAY: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "idempotency-key",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "twiceshy-type",
        "upgrade",
    }
)
_OWN_BEGINNING: Final = "webhook-"
_SPEAKING: Final = (
    "authorization",
    "cookie",
    "token",
    "secret",
    "password",
    "credential",
    "credentials",
    "api-key",
    "apikey",
    "access-key",
    "auth-key",
)
"""How the name of what is a secret ends: of a header, and of a parameter of a URL."""


def is_written_by_the_relay(header: str) -> bool:
    """Say whether only the relay writes a header of a webhook, and no settings or message do."""
    name = header.lower()
    return name in _WRITTEN_BY_THE_RELAY or name.startswith(_OWN_BEGINNING)


def is_a_secret(name: str) -> bool:
    """Say whether the value of a header, or of a parameter of a URL, is a secret by its name."""
    return name.lower().replace("_", "-").endswith(_SPEAKING)


def check_destination(settings: Destination) -> None:
    """Refuse settings that nothing could be delivered by. Raises Refusal with the place."""
    match settings:
        case WebhookDestination():
            _check_url(settings.url, "webhook", "url")
            _check_headers(settings)
        case SmtpDestination():
            _check_mail(settings)
        case RedisDestination():
            _check_url(settings.url, "redis", "url")
        case NatsDestination():
            for number, server in enumerate(settings.servers):
                _check_url(server, "nats", "servers", number)
            if settings.subject.startswith("$"):
                raise Refusal("a subject that begins with `$` commands the server: name one of your own", ("subject",))
        case RabbitMqDestination():
            _check_url(settings.url, "rabbitmq", "url")
            _check_bytes(settings.exchange, "exchange")
            _check_bytes(settings.routing_key, "routing_key")
        case _:  # Kafka's servers are no URLs, and a log is a file
            return


def _check_url(url: str, kind: str, *place: Step) -> None:
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise Refusal(f"this is no URL: {error}", place) from error
    schemes = _SCHEMES[kind]
    if parts.scheme not in schemes:
        raise Refusal(f"the URL of a {kind} begins with {_listed(schemes)}", place)
    if not host:
        raise Refusal("the URL names no host", place)
    options = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)} if kind in _OPTIONS else set()
    if any(_secrets_in(parts, kind, options)):
        own = "a field of its own" + (", such as `secret_headers`" if kind == "webhook" else "")
        raise Refusal(f"a secret does not stand in a URL: name it in {own}", place)
    unknown = sorted(options.difference(_OPTIONS.get(kind, ())))
    if unknown:
        raise Refusal(f"the URL of a {kind} takes no option {unknown[0]!r}: leave it out", place)


def _secrets_in(parts: SplitResult, kind: str, options: Collection[str]) -> Iterator[bool]:
    yield parts.password is not None
    yield kind in ("webhook", "nats") and parts.username is not None  # to NATS, a name alone is a token
    yield "password" in options
    yield kind == "webhook" and any(is_a_secret(name) for name, _ in parse_qsl(parts.query))


def _check_bytes(text: str, field: str) -> None:
    if len(text.encode()) > _LONGEST_BYTES:
        raise Refusal(f"this is longer than {_LONGEST_BYTES} bytes of UTF-8: shorten it", (field,))


def _listed(schemes: tuple[str, ...]) -> str:
    return " or ".join(f"`{scheme}:`" for scheme in schemes)


def _check_headers(settings: WebhookDestination) -> None:
    for field, headers in (("headers", settings.headers), ("secret_headers", settings.secret_headers)):
        for name in headers:
            if is_written_by_the_relay(name):
                raise Refusal("the relay writes this header itself", (field, name))
    for name in filter(is_a_secret, settings.headers):
        remedy = "name it in `secret_headers`, as env:TWICESHY_SECRET_… or file:/path"
        raise Refusal(f"this header is a secret: {remedy}", ("headers", name))
    twice = {name.lower() for name in settings.headers} & {name.lower() for name in settings.secret_headers}
    if twice:
        raise Refusal(f"the header {min(twice)!r} stands in `headers` too", ("secret_headers",))


def _check_mail(settings: SmtpDestination) -> None:
    misfit = sender_misfit(settings.sender)
    if misfit is not None:
        raise Refusal(misfit, ("sender",))
    for agent, sender in settings.senders.items():
        misfit = sender_misfit(sender)
        if misfit is not None:
            raise Refusal(misfit, ("senders", agent))
    if (settings.username is None) != (settings.password is None):
        missing = "password" if settings.password is None else "username"
        raise Refusal("give both `username` and `password`, or none of them", (missing,))
    if settings.events:
        raise Refusal("the service's own events are no mail: ask for them at another kind of destination", ("events",))
