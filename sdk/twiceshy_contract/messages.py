"""Wire structs of a message: what an agent stages, and where it is to be delivered."""

from typing import Annotated, Final

import msgspec

from twiceshy_contract.destinations import DestinationName, EmailAddress
from twiceshy_contract.names import NO_CONTROL
from twiceshy_contract.policies import Part

MAX_MESSAGES: Final = 100
"""Messages that one effect stages at the most, and rows that they make: one for every recipient of mail."""
MAX_HEADERS: Final = 50
"""Headers of a message, or of mail, at the most."""
Lane = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)]
"""Messages of one lane of a destination are delivered in the order in which they were staged."""
_Subject = Annotated[str, msgspec.Meta(max_length=900, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)")]
_HeaderName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]{1,100}$(?!\n)")]
_HeaderValue = Annotated[str, msgspec.Meta(max_length=900, pattern=r"^[\x20-\x7e]*$(?!\n)")]
_Headers = Annotated[dict[_HeaderName, _HeaderValue], msgspec.Meta(max_length=MAX_HEADERS)]
_Body = Annotated[str, msgspec.Meta(max_length=900_000, pattern=r"^[^\x00]*$(?!\n)")]
_Addresses = Annotated[tuple[EmailAddress, ...], msgspec.Meta(max_length=MAX_MESSAGES)]


_WRITTEN_BY_MAIL: Final = frozenset(
    {
        "bcc",
        "cc",
        "date",
        "dkim-signature",
        "from",
        "in-reply-to",
        "message-id",
        "mime-version",
        "received",
        "references",
        "reply-to",
        "return-path",
        "sender",
        "subject",
        "to",
    }
)
_ITS_BEGINNINGS: Final = ("content-", "resent-", "arc-")
_LONGEST_LINE: Final = 998
"""RFC 5322, 2.1.1, without the line's end."""


class Mail(Part, frozen=True, kw_only=True, omit_defaults=True):
    """An e-mail. Everybody in `to`, `cc` and `bcc` is sent a copy of their own, which is delivered alone.

    Mail of one `thread` is one conversation: a reply is matched to it, and mail clients show it together. `sender`
    names one of the destination's `senders`; without it, it is that of the run's agent, else the destination's.
    """

    to: Annotated[tuple[EmailAddress, ...], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]
    subject: _Subject
    text: _Body | None = None
    html: _Body | None = None
    cc: _Addresses = ()
    bcc: _Addresses = ()
    reply_to: EmailAddress | None = None
    thread: Lane | None = None
    sender: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)] | None = None
    headers: _Headers = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.text is None and self.html is None:
            raise ValueError("mail has a `text`, an `html`, or both")
        for name, value in self.headers.items():
            if name.lower() in _WRITTEN_BY_MAIL or name.lower().startswith(_ITS_BEGINNINGS):
                raise ValueError(f"the header {name} is written from the mail's own fields: leave it out of `headers`")
            if len(name) + len(": ") + len(value) > _LONGEST_LINE:
                raise ValueError(f"the header {name} is longer than {_LONGEST_LINE} characters, the most of a line")


class Message(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What is to be delivered, and where to: exactly one of `payload` (JSON), `text` and `mail`.

    `type` names what it is about, such as `order.created`. `delay_seconds` holds it back. Where the proof that its
    effect was applied comes late, more than `not_after_seconds` after the lease had ended, it waits for a person.
    """

    destination: DestinationName
    payload: object = msgspec.UNSET
    text: _Body | msgspec.UnsetType = msgspec.UNSET
    mail: Mail | msgspec.UnsetType = msgspec.UNSET
    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9._-]+$(?!\n)")] | None = None
    lane: Lane | None = None
    headers: _Headers = msgspec.field(default_factory=dict)
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 0
    not_after_seconds: Annotated[float, msgspec.Meta(ge=0, le=31_536_000)] = 3600

    def __post_init__(self) -> None:
        given = [name for name in ("payload", "text", "mail") if getattr(self, name) is not msgspec.UNSET]
        if len(given) != 1:
            raise ValueError("a message holds exactly one of `payload`, `text` and `mail`")
        if self.headers and self.mail is not msgspec.UNSET:
            raise ValueError("mail has headers of its own: put these into `mail`")


Messages = Annotated[tuple[Message, ...], msgspec.Meta(max_length=MAX_MESSAGES)]
SomeMessages = Annotated[tuple[Message, ...], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]
