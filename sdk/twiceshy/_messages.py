"""Messages as code says them, and frozen as they are sent: what is changed afterwards changes nothing.

A message is checked where it is made, so that the line that is wrong is the line that the error shows.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias, TypedDict, TypeVar

import msgspec

from twiceshy._encode import encode_result
from twiceshy._said import said
from twiceshy._wording import in_words
from twiceshy.exceptions import MessageRefused
from twiceshy_contract import messages as wire
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.refusals import JsonValue, Refusal

T = TypeVar("T")
Addresses: TypeAlias = str | Sequence[str]
MAX_STAGED_BYTES: Final = MAX_BYTES - 64 * 1024
"""Bytes of messages that one effect stages at the most: its outcome goes in the same body."""
_EVERYBODY: Final = ("to", "cc", "bcc")
_CHECKED_ALONE: Final = "checked-alone"
_PLAIN: Final = ("type", "lane", "delay_seconds", "not_after_seconds")
_DEFAULTS: Final = {field.name: field.default for field in msgspec.structs.fields(wire.Message)}
_MAIL_FIELDS: Final = frozenset(wire.Mail.__struct_fields__)


class Mail(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail, for a destination of the kind `smtp`.

        Mail(to="ann@example.com", subject="Your room", text="Room 1 is yours at ten.")

    It has a `text`, an `html`, or both. Everybody in `to`, `cc` and `bcc`, one address or several, is sent a copy that
    is delivered alone. Mail of one `thread` is one conversation: a reply is matched to it. `sender` names one of the
    destination's senders; without it, it is that of the run's agent. Raises MessageRefused.
    """

    to: Addresses
    subject: str
    text: str | None = None
    html: str | None = None
    cc: Addresses = ()
    bcc: Addresses = ()
    reply_to: str | None = None
    thread: str | None = None
    sender: str | None = None
    headers: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        _converted(_mail(self), wire.Mail, "mail")


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be delivered: exactly one of `payload` (JSON), `text` and `mail`, and how.

        Message(payload={"order": 7, "total": total}, type="order.created", lane="order-7")

    `type` names what it is about. Messages of one `lane` are delivered in the order in which they were staged.
    `delay_seconds` holds it back. Where the proof that its effect was applied comes later than `not_after_seconds`
    after the lease had ended, it waits for a person. Raises MessageRefused.
    """

    payload: object = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET
    mail: Mail | msgspec.UnsetType = msgspec.UNSET
    type: str | None = None
    lane: str | None = None
    headers: Mapping[str, str] = {}
    delay_seconds: float = 0
    not_after_seconds: float = 3600

    def __post_init__(self) -> None:
        frozen(_CHECKED_ALONE, self)


Content: TypeAlias = Message | Mail | Mapping[str, object] | str
"""What stands for a message: a dict is its payload."""


class StagedOptions(TypedDict, total=False):
    """The keywords of `effect.stage`: those of a Message; a content only where none stands before them."""

    payload: object
    text: str
    type: str | None
    lane: str | None
    headers: Mapping[str, str]
    delay_seconds: float
    not_after_seconds: float


def message_of(value: object) -> Message | None:
    """Return what stands for a message as one: a Mail, a dict (the payload) or a text. None for all else."""
    match value:
        case Message():
            return value
        case Mail():
            return Message(mail=value)
        case str():
            return Message(text=value)
        case dict():
            return Message(payload=value)
        case Mapping():
            return Message(payload=dict(value))
        case _:
            return None


def frozen(destination: str, message: Message) -> wire.Message:
    """Return a message as it is sent, with nothing left that the caller could still change. Raises MessageRefused."""
    given: dict[str, object] = {"destination": destination, "headers": _copied(message.headers)}
    said = {name: getattr(message, name) for name in _PLAIN}
    given |= {name: value for name, value in said.items() if value != _DEFAULTS[name]}
    if message.payload is not msgspec.UNSET:
        given["payload"] = _written(message.payload)
    if message.text is not msgspec.UNSET:
        given["text"] = message.text
    if isinstance(message.mail, Mail):
        given["mail"] = _mail(message.mail)
    elif message.mail is not msgspec.UNSET:
        given["mail"] = message.mail  # what is none is refused with all else
    return _converted(given, wire.Message, "message")


def rows_of(messages: Collection[wire.Message]) -> int:
    """Return how many rows messages make: one each, and one for every recipient of mail."""
    return sum(len(_recipients(it.mail)) if isinstance(it.mail, wire.Mail) else 1 for it in messages)


def require_room(messages: Collection[wire.Message], who: str) -> None:
    """Check what one effect stages in all. Raises MessageRefused."""
    rows = rows_of(messages)
    if rows > wire.MAX_MESSAGES:
        raise MessageRefused(
            f"{who} stages {rows} messages, a copy for every recipient of mail among them, and {wire.MAX_MESSAGES} "
            "are the most of one effect. Stage the rest in calls of their own."
        )
    size = sum(len(msgspec.json.encode(it)) for it in messages)
    if size > MAX_STAGED_BYTES:
        raise MessageRefused(
            f"{who} stages {size} bytes, and {MAX_STAGED_BYTES} are the most of one effect. Keep large contents "
            "elsewhere and send a reference to them."
        )


def is_of_mail(parameters: Collection[str]) -> bool:
    """Tell whether a function's arguments are those of a Mail: `to`, `subject`, and `text` or `html`, and no others."""
    names = set(parameters)
    return names <= _MAIL_FIELDS and {"to", "subject"} <= names and not names.isdisjoint({"text", "html"})


def _recipients(mail: wire.Mail) -> set[str]:
    return {*mail.to, *mail.cc, *mail.bcc}


def _mail(mail: Mail) -> dict[str, object]:
    given: dict[str, object] = {name: getattr(mail, name) for name in mail.__struct_fields__}
    return given | {"headers": _copied(mail.headers)} | {name: _several(given[name]) for name in _EVERYBODY}


def _several(addresses: object) -> object:
    if isinstance(addresses, str):
        return (addresses,)
    return tuple(addresses) if isinstance(addresses, Sequence | set | frozenset) else addresses


def _copied(headers: object) -> object:
    return dict(headers) if isinstance(headers, Mapping) else headers


def _written(payload: object) -> JsonValue:
    try:
        return encode_result(payload)
    except Refusal as refusal:
        raise MessageRefused(
            f"The payload{f' at {refusal.path}' if refusal.path else ''} cannot be written as JSON: {refusal.reason}. "
            "Nothing was staged.",
            path=refusal.under("payload").path,
        ) from refusal
    except Exception as error:
        raise MessageRefused(
            f"The payload, a {type(payload).__name__}, cannot be written as JSON: {said(error)} Nothing was staged.",
            path="/payload",
        ) from error


def _converted(given: dict[str, object], kind: type[T], noun: str) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        what = in_words(error, noun).removeprefix(f"{noun}: ")
        raise MessageRefused(
            f"The {noun} cannot be staged: {what}. Nothing was staged; correct it.",
            path=_path(error),
        ) from error


def _path(error: msgspec.ValidationError) -> str:
    """Return the JSON Pointer of what is wrong in a message."""
    _, _, place = str(error).partition(" - at `")
    steps = place.rstrip("`").rpartition("$")[2].replace("[...]", "").replace("[", ".").replace("]", "").split(".")
    return "".join(f"/{step}" for step in steps if step)
