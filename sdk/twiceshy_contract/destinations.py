"""Wire structs of a destination: where the relay delivers messages to, over which sink, and how carefully.

A secret is never part of one: it is named, and read by the process that sends, from its environment (`env:NAME`,
where NAME begins with `TWICESHY_SECRET_`) or from a file (`file:/path`).
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from twiceshy_contract.names import NO_CONTROL, Person, Reason
from twiceshy_contract.policies import Part

DestinationName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$(?!\n)")]
"""1 to 100 letters, digits, dots, dashes and underscores."""
SecretName = Annotated[
    str, msgspec.Meta(pattern=r"^(?:env:TWICESHY_SECRET_[A-Z0-9_]{1,100}|file:/[^\x00-\x1f\x7f]{1,500})$(?!\n)")
]
"""Where the sender reads a secret: `env:TWICESHY_SECRET_…` or `file:/path`."""
SinkKind = Literal["webhook", "smtp", "redis", "nats", "kafka", "rabbitmq", "log"]
LanePolicy = Literal["block", "skip"]
"""What a message that cannot be delivered does to those behind it in its lane."""
DestinationState = Literal["active", "paused", "disabled", "removed"]
"""A person pauses; an answer of 410 (gone) disables."""
BreakerState = Literal["closed", "open", "half_open"]
OwnEvent = Literal["approval.requested", "approval.decided"]
"""What the service itself stages to a destination that asks for it."""

_Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2000, pattern=NO_CONTROL)]
_Text = Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern=NO_CONTROL)]
_Header = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{1,100}$(?!\n)")]
_HeaderValue = Annotated[str, msgspec.Meta(max_length=2000, pattern=r"^[\x20-\x7e]*$(?!\n)")]
Host = Annotated[str, msgspec.Meta(pattern=r"^[^\s/@\x00-\x1f\x7f]{1,255}$(?!\n)")]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
_WORD: Final = r"[^\s\x00-\x1f\x7f@<>,;:\"()\[\]\\]+"
EmailAddress = Annotated[str, msgspec.Meta(max_length=254, pattern=rf"^{_WORD}@{_WORD}$(?!\n)")]


class _Destination(Part, frozen=True, kw_only=True, tag_field="kind"):
    """What all kinds share.

    `concurrency` bounds what is in flight at once, `rate_per_second` what is sent in a second, by all relays together;
    what was not used is kept for one second. `attempts` bounds the tries of a message, each of which ends after
    `timeout_seconds`. `lanes` says what a message that cannot be delivered does to those behind it in its lane; once
    it says `skip`, what has blocked a lane does no more. `at_least_once` sends again what may have arrived, even
    where the receiver cannot tell: without it such a message waits for a person. `events` are the service's own that
    are staged here.
    """

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    rate_per_second: Annotated[float, msgspec.Meta(ge=0.001, le=1_000_000)] | None = None
    attempts: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 8
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 15
    lanes: LanePolicy = "block"
    at_least_once: bool = False
    events: Annotated[tuple[OwnEvent, ...], msgspec.Meta(max_length=10)] = ()


class WebhookDestination(_Destination, frozen=True, kw_only=True, tag="webhook"):
    """POST the body to a URL, signed as Standard Webhooks say with every one of `secrets`.

    A receiver of signed webhooks drops a `webhook-id` that it knows, and so what may have arrived is sent again;
    `deduplicates` says whether this one does.
    """

    url: _Url
    secrets: Annotated[tuple[SecretName, ...], msgspec.Meta(max_length=10)] = ()
    headers: dict[_Header, _HeaderValue] = msgspec.field(default_factory=dict)
    secret_headers: dict[_Header, SecretName] = msgspec.field(default_factory=dict)
    deduplicates: bool | None = None
    lanes: LanePolicy = "skip"


class SmtpDestination(_Destination, frozen=True, kw_only=True, tag="smtp"):
    """Hand mail to an SMTP server.

    `sender` is who mail is from, `senders` who it is from by the name of the agent (a run's `agent`). `domain` ends
    the Message-ID; without one it is that of the sender. A server that looks into the mail answers late, and before it
    answers nobody knows whether it took it: `timeout_seconds` is a minute.
    """

    host: Host
    port: Port = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: _Text | None = None
    password: SecretName | None = None
    sender: Annotated[str, msgspec.Meta(min_length=3, max_length=500, pattern=NO_CONTROL)]
    senders: dict[_Text, Annotated[str, msgspec.Meta(min_length=3, max_length=500, pattern=NO_CONTROL)]] = (
        msgspec.field(default_factory=dict)
    )
    domain: Host | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=300)] = 60


class RedisDestination(_Destination, frozen=True, kw_only=True, tag="redis"):
    """Append to a stream of Redis or Valkey; one that has the message already is left as it is for `dedup_seconds`."""

    url: _Url
    password: SecretName | None = None
    stream: _Text
    max_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dedup_seconds: Annotated[int, msgspec.Meta(ge=1, le=31_536_000)] = 86_400


class NatsDestination(_Destination, frozen=True, kw_only=True, tag="nats"):
    """Publish to a subject that a JetStream stream takes; the stream drops a message that it has, in its window."""

    servers: Annotated[tuple[_Url, ...], msgspec.Meta(min_length=1, max_length=20)]
    subject: _Text
    stream: _Text | None = None
    token: SecretName | None = None
    credentials: SecretName | None = None


class KafkaDestination(_Destination, frozen=True, kw_only=True, tag="kafka"):
    """Produce to a topic, idempotently within a connection, keyed by the lane."""

    servers: Annotated[tuple[_Text, ...], msgspec.Meta(min_length=1, max_length=20)]
    topic: _Text
    security: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = "plaintext"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: _Text | None = None
    password: SecretName | None = None


class RabbitMqDestination(_Destination, frozen=True, kw_only=True, tag="rabbitmq"):
    """Publish to an exchange with confirms; a message that no queue takes is an error."""

    url: _Url
    password: SecretName | None = None
    exchange: Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)")] = ""
    routing_key: Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)")]


class LogDestination(_Destination, frozen=True, kw_only=True, tag="log"):
    """Write one JSON line a message: into a file, or to the relay's standard output."""

    path: _Url | None = None


Destination: TypeAlias = (
    WebhookDestination
    | SmtpDestination
    | RedisDestination
    | NatsDestination
    | KafkaDestination
    | RabbitMqDestination
    | LogDestination
)


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a destination is asked at all; while it is open, nothing is claimed and no attempt is spent."""

    state: BreakerState
    open_until: str | None
    held_until: str | None
    allowance: int | None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for a destination: counts by state, and how long the oldest message that is due has waited."""

    pending: int
    in_flight: int
    dead: int
    unknown: int
    parked: int
    oldest_pending_seconds: float


class DestinationView(msgspec.Struct, frozen=True, kw_only=True):
    """A destination as it is declared, and how it stands."""

    name: DestinationName
    version: int
    state: DestinationState
    note: str | None
    declared_at: str
    settings: Destination
    breaker: BreakerView
    queue: QueueView


class DestinationList(msgspec.Struct, frozen=True, kw_only=True):
    """All destinations, by name. `undeclared` is what waits for a person under names that are not among them."""

    items: tuple[DestinationView, ...]
    undeclared: dict[str, QueueView] = msgspec.field(default_factory=dict)


class DestinationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that would be taken for a destination. Nothing was declared."""

    name: DestinationName
    settings: Destination


class DeclareQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a declaration. With `dry_run` the settings are checked, and nothing is declared."""

    dry_run: bool = False


class DestinationAct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a destination is paused, resumed or removed, and by whom."""

    reason: Reason
    by: Person | None = None


class ConnectivityView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a destination can be reached from the service, and what was seen. Nothing is delivered to find out."""

    ok: bool
    detail: str
    milliseconds: float
