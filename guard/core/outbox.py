"""The outbox: what is staged, frozen to bytes, and how it is named.

A message's id follows from its effect's key and its place, so that the same staging said twice makes the same rows.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast
from uuid import UUID

import msgspec

from guard.core.effects import AttemptToken, Duration, Instant, Key, RunId, TenantId, seconds
from guard.core.mail import mail_id, recipients, render_mail, thread_root
from guard.core.plain import plain
from twiceshy_contract.canonical import canonical
from twiceshy_contract.destinations import Destination, DestinationState, SmtpDestination
from twiceshy_contract.messages import MAX_MESSAGES, Mail, Message
from twiceshy_contract.outbox import MessageState
from twiceshy_contract.refusals import JsonValue, Refusal

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
RAW: Final = "application/vnd.twiceshy.message+json"
"""The content type of a message that could not be rendered yet: its body is the message as it was staged."""
FIRST_EPOCH: Final = 1
_HASHED: Final = ~(0xF << 76 | 0b11 << 62) & (1 << 128) - 1

Over = Literal["delivered", "cancelled", "withdrawn"]
"""How a message is over."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A destination as whoever stages must know it."""

    id: int
    name: str
    state: DestinationState
    settings: Destination


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the outbox as it is staged; `parked` says why it waits for a person. `headers` is JSON.

    `mail_id` and `thread` are of mail: what ends up in its Message-ID, and the id of its thread's root.
    """

    message: UUID
    destination_id: int | None
    destination: str
    lane: str | None
    type: str | None
    recipient: str | None
    content_type: str
    headers: bytes
    body: bytes
    delay: Duration
    not_after: Duration
    parked: str | None = None
    mail_id: str | None = None
    thread: str | None = None
    thread_name: str | None = None


class Staging(msgspec.Struct, frozen=True, kw_only=True):
    """What an effect stages, once: its first staging stays, whoever brings another later.

    `ended_at` is when the lease had ended of the attempt that brings it (None: as the row of its effect says, or, in
    a replace, no matter): rows that come later than their `not_after` behind it are parked. In a fork all are parked,
    unless the staging itself was `admitted`.
    """

    tenant: TenantId
    rows: tuple[Staged, ...]
    token: AttemptToken | None = None
    ended_at: Instant | None = None
    admitted: bool = False


class Sender(msgspec.Struct, frozen=True, kw_only=True):
    """Who stages: the tenant, the agent of the run, and the newest mail that came in to each thread, by its root."""

    tenant: TenantId
    agent: str | None = None
    answers: Mapping[str, str] = {}
    at: Instant


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A message as it stands, wherever it stands."""

    id: int
    message: UUID
    epoch: int
    effect: Key | None
    run_id: RunId | None
    run: str | None
    destination_id: int | None
    destination: str
    lane: str | None
    type: str | None
    recipient: str | None
    content_type: str
    headers: dict[str, str]
    body: bytes
    staged_at: Instant
    state: MessageState
    attempts: int
    note: str | None
    due_at: Instant | None = None
    settled_at: Instant | None = None
    receipt: str | None = None


def message_id(key: bytes, place: int, copy: int = 0) -> UUID:
    """Name a message by the key of its effect, its place there, and which of its recipients' copies it is.

    A UUIDv8 (RFC 9562, section 5.8): 122 bits of a hash.
    """
    named = b"twiceshy/message" + len(key).to_bytes(4, "big") + key + f"{place}/{copy}".encode()
    bits = int.from_bytes(hashlib.sha256(named).digest()[:16], "big")
    return UUID(int=bits & _HASHED | 8 << 76 | 2 << 62)


def rendered(
    messages: Sequence[Message], key: bytes, places: Mapping[str, Place], sender: Sender, *, strict: bool
) -> tuple[Staged, ...]:
    """Freeze messages into rows: one each, and one for every recipient of mail.

    What cannot be rendered is refused where nothing has happened yet (`strict`), with its place in the request; else
    it is kept as it is, parked, so that no outcome is lost for it. Raises Refusal.
    """
    rows: list[Staged] = []
    for number, message in enumerate(messages):
        misfit = _misfit(message, places.get(message.destination))
        if misfit is not None and strict:
            raise Refusal(misfit, ("messages", number, "destination"))
        if misfit is not None:
            rows.append(_unrendered(message, message_id(key, number), misfit))
        else:
            rows += _rows(message, key, number, places[message.destination], sender)
    if len(rows) > MAX_MESSAGES and strict:
        raise Refusal(
            f"one effect stages {MAX_MESSAGES} messages at the most, copies of mail among them", ("messages",)
        )
    return tuple(rows)


def check_fit(messages: Sequence[Message], places: Mapping[str, Place]) -> None:
    """Refuse the first message that cannot go where it is meant to. Raises Refusal with its place in the request."""
    for number, message in enumerate(messages):
        misfit = _misfit(message, places.get(message.destination))
        if misfit is not None:
            raise Refusal(misfit, ("messages", number, "destination"))


def render_anew(row: Standing, place: Place, key: bytes, sender: Sender) -> tuple[Staged, ...]:
    """Render a message that could not be rendered when it was staged. Raises Refusal where it still cannot."""
    message = msgspec.json.decode(row.body, type=Message)
    misfit = _misfit(message, place)
    if misfit is not None:
        raise Refusal(misfit, ("destination",))
    number = next(number for number in range(MAX_MESSAGES) if message_id(key, number) == row.message)
    return tuple(_rows(message, key, number, place, sender))


def _misfit(message: Message, place: Place | None) -> str | None:
    """Say why a message cannot go to a destination."""
    if place is None or place.state == "removed":
        return f"no destination is named {message.destination!r}: declare it, or send to one that is there"
    mail = message.mail
    match place.settings, mail:
        case SmtpDestination(senders=senders), Mail(sender=named):
            known = named is None or named in senders
            return None if known else f"{place.name} has no sender {named!r}: name one of its `senders`, or none"
        case SmtpDestination(), _:
            return f"{place.name} sends mail: give the message a `mail`"
        case settings, Mail():
            return f"{place.name} is a {kind_of(settings)}, which takes no `mail`: give it a `payload` or a `text`"
        case _:
            return None


def kind_of(settings: Destination) -> str:
    """Return the word for the kind of a destination."""
    return str(settings.__struct_config__.tag)


def _unrendered(message: Message, id_: UUID, why: str) -> Staged:
    return Staged(
        message=id_,
        destination_id=None,
        destination=message.destination,
        lane=message.lane,
        type=message.type,
        recipient=None,
        content_type=RAW,
        headers=b"{}",
        body=msgspec.json.encode(message),
        delay=Duration(0),
        not_after=seconds(message.not_after_seconds),
        parked=why,
    )


def _rows(message: Message, key: bytes, number: int, place: Place, sender: Sender) -> list[Staged]:
    if isinstance(message.mail, Mail) and isinstance(place.settings, SmtpDestination):
        return _copies(message, message.mail, key, number, (place, place.settings, sender))
    if message.payload is not msgspec.UNSET:
        content_type, body = JSON, msgspec.json.encode(plain(_checked(message.payload, number)))
    else:
        content_type, body = TEXT, str(message.text).encode()
    return [_row(message, message_id(key, number), place, content_type, message.headers, body)]


def _checked(payload: object, number: int) -> JsonValue:
    """Return a payload as it was spelled. Raises Refusal with the place of what is not tagged JSON."""
    try:
        canonical(payload)
    except Refusal as refusal:
        raise refusal.under("messages", number, "payload") from refusal
    return cast("JsonValue", payload)


def _copies(
    message: Message, mail: Mail, key: bytes, number: int, way: tuple[Place, SmtpDestination, Sender]
) -> list[Staged]:
    """Return one row for every recipient, so that each is delivered, refused or in doubt alone."""
    place, settings, sender = way
    named = mail.sender or sender.agent
    address = settings.sender if named is None else settings.senders.get(named, settings.sender)
    domain = settings.domain or address.rpartition("@")[2].rstrip("> ")
    thread = None if mail.thread is None else thread_root(sender.tenant, place.name, mail.thread)
    answers = None if thread is None else sender.answers.get(thread)
    frozen = render_mail(mail, address, domain, thread=thread, answers=answers, at=sender.at)
    copies = []
    for copy, recipient in enumerate(recipients(mail)):
        id_ = message_id(key, number, copy)
        row = _row(message, id_, place, "message/rfc822", frozen.headers, frozen.body)
        named_by = mail_id(f"{id_}.{FIRST_EPOCH}")
        copies.append(
            msgspec.structs.replace(row, recipient=recipient, mail_id=named_by, thread=thread, thread_name=mail.thread)
        )
    return copies


def _row(
    message: Message, id_: UUID, place: Place, content_type: str, headers: Mapping[str, str], body: bytes
) -> Staged:
    return Staged(
        message=id_,
        destination_id=place.id,
        destination=place.name,
        lane=message.lane,
        type=message.type,
        recipient=None,
        content_type=content_type,
        headers=msgspec.json.encode(headers),
        body=body,
        delay=seconds(message.delay_seconds),
        not_after=seconds(message.not_after_seconds),
    )
