"""Mail that comes in, read as it is: whatever its bytes are, something is made of them, and nothing is believed.

The parser is the tolerant one of the standard library. Texts are decoded by what they say they are written in, and
where that is no such thing, as well as can be.
"""

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses
from typing import Final, cast

import msgspec

from guard.core.inbound_parts import TooMuch, head_of, parts_of
from guard.core.mail import references
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.replies import InboundMail

LONGEST_TEXT: Final = 256 * 2**10
"""How many characters of a text are kept."""
_LONGEST_HEADER: Final = 20_000
_LONGEST_NAME: Final = 1000
_MOST_ENCODED_WORDS: Final = 300
_READ: Final = frozenset(
    {"message-id", "from", "to", "cc", "subject", "date", "in-reply-to", "references", "auto-submitted", "precedence",
     "content-type"}
)  # fmt: skip
_SLOW_CODECS: Final = frozenset({"punycode", "idna"})
"""What the standard library decodes in a time that grows with the square of the text. No mail is written in them."""
_MOST_PARTS: Final = 500
_MOST_IDS: Final = 100
_UNNAMED: Final = "unnamed.invalid"
_OURS: Final = re.compile(r"<([0-9a-f]{32})@", re.IGNORECASE)
_UNREADABLE: Final = (MessageError, ValueError, LookupError, TypeError, AttributeError)
"""What the standard library raises for headers and parts that are not what they say."""
_AUTOMATIC: Final = frozenset({"auto-generated", "auto-replied", "auto-notified"})
_BULK: Final = frozenset({"auto_reply", "bulk", "junk"})


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """What was attached: its size is that of the decoded bytes, which are not kept."""

    name: str | None
    content_type: str
    size: int


class Inbound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """A mail that came in. `answers` are the ids that it names, the nearest first: In-Reply-To, then References."""

    message_id: str
    from_: str
    to: tuple[str, ...] = ()
    cc: tuple[str, ...] = ()
    subject: str = ""
    date: str | None = None
    text: str | None = None
    html: str | None = None
    answers: tuple[str, ...] = ()
    automatic: bool = False
    cut: bool = False
    attachments: tuple[Attachment, ...] = ()

    @property
    def digest(self) -> bytes:
        """What the mail is known by: the digest of its Message-ID."""
        return hashlib.sha256(self.message_id.encode()).digest()


def mail_of(raw: bytes) -> Inbound:
    """Read a mail as it was sent; where nothing can be made of it, it is a text that answers nothing.

    One that is too much to be taken apart has its headers, and its body is the text as it came.
    """
    try:
        try:
            message = parts_of(raw)
        except TooMuch:
            message, body = head_of(raw)
            return _read(message, raw, {"text/plain": _raw_text(body)}, [], is_cut=True)
        return _read(message, raw, *_contents(message))
    except (*_UNREADABLE, TooMuch, RecursionError):
        text = _raw_text(raw)
        return Inbound(message_id=_made_id(raw), from_="", text=_shortened(text), cut=_is_long(text))


def _read(
    message: Message, raw: bytes, texts: dict[str, str], attachments: list[Attachment], *, is_cut: bool = False
) -> Inbound:
    headers = _headers(message)
    text, html = texts.get("text/plain"), texts.get("text/html")
    return Inbound(
        message_id=next(iter(references(*headers["message-id"])), None) or _made_id(raw),
        from_=_first(headers, "from"),
        to=_each(headers["to"]),
        cc=_each(headers["cc"]),
        subject=_first(headers, "subject"),
        date=_first(headers, "date") or None,
        text=_shortened(text),
        html=_shortened(html),
        answers=_answers(headers["in-reply-to"], headers["references"]),
        automatic=_is_automatic(headers),
        cut=is_cut or _is_long(text) or _is_long(html),
        attachments=tuple(attachments),
    )


def _raw_text(body: bytes) -> str:
    """Return the beginning of bytes that nothing better can be made of."""
    return _text(body[: 4 * LONGEST_TEXT], None).replace("\x00", "")


def _made_id(raw: bytes) -> str:
    """Return an id for a mail that has none: the same for the same bytes."""
    return f"<{hashlib.sha256(raw).hexdigest()[:32]}@{_UNNAMED}>"


def mail_of_json(sent: InboundMail) -> Inbound:
    """Read a mail that was taken apart already. Raises Refusal where its id is none."""
    references_ = [sent.references] if isinstance(sent.references, str) else sent.references
    named = _bracketed(sent.message_id)
    if references(named) != [named]:
        raise Refusal(
            "an id of mail is printable ASCII without spaces and <>, which may stand around it", ("message_id",)
        )
    return Inbound(
        message_id=named,
        from_=sent.from_,
        to=_each([sent.to] if isinstance(sent.to, str) else sent.to),
        cc=_each([sent.cc] if isinstance(sent.cc, str) else sent.cc),
        subject=sent.subject,
        date=sent.date,
        text=_shortened(sent.text),
        html=_shortened(sent.html),
        answers=_answers(
            [_bracketed(word) for word in (sent.in_reply_to or "").split()],
            [_bracketed(word) for text in references_ for word in text.split()],
        ),
        cut=_is_long(sent.text) or _is_long(sent.html),
    )


def our_ids(mail: Inbound) -> tuple[str, ...]:
    """Return what may be ids of mail that was sent from here, without their domains, the nearest first."""
    return tuple(dict.fromkeys(found.lower() for name in mail.answers for found in _OURS.findall(name)))


def _answers(in_reply_to: Iterable[str], references_: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*references(*in_reply_to), *reversed(references(*references_))]))[:_MOST_IDS]


def _bracketed(text: str) -> str:
    return f"<{text.strip().removeprefix('<').removesuffix('>')}>"


def _headers(message: Message) -> dict[str, list[str]]:
    """Return the headers that are read by their names in lower case, unfolded and decoded; of each not too much."""
    headers: dict[str, list[str]] = {name: [] for name in _READ}
    left = dict.fromkeys(_READ, _LONGEST_HEADER)
    for spelled, value in message.raw_items():
        name = spelled.lower()
        if left.get(name, 0) > 0:
            text = str(value)[: left[name]]
            left[name] -= len(text) + 1
            headers[name].append(_decoded(text))
    return headers


def _first(headers: dict[str, list[str]], name: str) -> str:
    return next(iter(headers[name]), "")


def _decoded(raw: str) -> str:
    """Read encoded words, and bytes beyond ASCII as UTF-8."""
    line = " ".join(raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace").split())
    if line.count("=?") > _MOST_ENCODED_WORDS:
        return line.replace("\x00", "")
    try:
        pieces = decode_header(line)
    except _UNREADABLE:
        return line
    return "".join(_piece(piece, charset) for piece, charset in pieces).replace("\x00", "")


def _piece(piece: bytes | str, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece
    return _text(piece, charset) if charset else piece.decode("raw-unicode-escape", "replace")


def _text(raw: bytes, charset: str | None) -> str:
    """Decode by what the text says it is written in, else as UTF-8, else byte by byte."""
    for name in (charset, "utf-8"):
        try:
            if name and codecs.lookup(name).name not in _SLOW_CODECS:
                return raw.decode(name)
        except _UNREADABLE:
            continue
    return raw.decode("latin-1")


def _each(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses of header lines, each with its name where it has one."""
    try:
        found = [(name, address) for name, address in getaddresses(list(lines)) if address]
    except RecursionError:  # comments within comments
        return ()
    return tuple(f"{name} <{address}>" if name else address for name, address in found)


def _contents(message: Message) -> tuple[dict[str, str], list[Attachment]]:
    """Return the first text of each kind, and what else the mail holds."""
    texts: dict[str, str] = {}
    attachments: list[Attachment] = []
    for count, part in enumerate(_parts(message)):
        if count >= _MOST_PARTS:
            break
        kind, name, content = part.get_content_type(), _name(part), _content(part)
        is_text = kind in ("text/plain", "text/html") and name is None
        if is_text and kind not in texts:
            texts[kind] = _text(content, _charset(part)).replace("\r\n", "\n").replace("\x00", "")
        else:
            attachments.append(Attachment(name=name, content_type=kind, size=len(content)))
    return texts, attachments


def _parts(message: Message) -> Iterator[Message]:
    """Walk the parts that hold something. A mail within the mail is one of them, and not looked into."""
    payload = message.get_payload()
    if message.get_content_maintype() == "multipart" and isinstance(payload, list):
        for part in cast("list[Message]", payload):
            yield from _parts(part)
    else:
        yield message


def _content(part: Message) -> bytes:
    if part.is_multipart():
        return part.as_bytes()
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except _UNREADABLE:
        return None


def _name(part: Message) -> str | None:
    """Return the name of a part that is attached; an attachment without one has an empty name."""
    try:
        name, how = part.get_filename(), part.get_content_disposition()
    except _UNREADABLE:
        return ""
    if name is None and how != "attachment":
        return None
    return _decoded((name or "")[:_LONGEST_NAME])[:500]


def _is_automatic(headers: dict[str, list[str]]) -> bool:
    said = _first(headers, "auto-submitted").partition(";")[0].strip().lower()
    kind = _first(headers, "content-type").lower()
    is_bulk = _first(headers, "precedence").strip().lower() in _BULK
    return said in _AUTOMATIC or is_bulk or kind.startswith("multipart/report")


def _is_long(text: str | None) -> bool:
    return text is not None and len(text) > LONGEST_TEXT


def _shortened(text: str | None) -> str | None:
    return None if text is None else text[:LONGEST_TEXT]
