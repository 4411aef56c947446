"""Mail: frozen to the bytes that every try of a message sends, and told apart by ids that no relay rewrites.

The bytes are those of RFC 5322 without a Message-ID: it names the epoch, and so the sender puts it in front. Headers
that hold ids are never folded inside one, and an id is short: a mail library that re-encodes a long one breaks threads.
"""

import hashlib
import re
from collections.abc import Iterable
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr, unquote
from typing import Final

import idna
import msgspec

from guard.core.effects import Instant, TenantId, moment
from twiceshy_contract.messages import Mail

MAIL_FROM: Final = "mail-from"
"""The header of a row of mail that names the sender of the envelope."""
DOMAIN: Final = "message-id-domain"
"""The header of a row of mail that names what its Message-ID ends in."""
_ID: Final = re.compile(r"<[!-;=?-~]{1,898}>")
"""Printable ASCII alone: an id is copied from a stranger's mail into the headers of the next one from here."""
_ADDRESS: Final = re.compile(r"[^\s<>@,;:\"()\[\]\\]+@[^\s<>@,;:\"()\[\]\\]+")
_WRITTEN: Final = SMTP.clone(cte_type="7bit")
_ENCODED_WORD: Final = "=?"


class RenderedMail(msgspec.Struct, frozen=True, kw_only=True):
    """A mail's bytes, and what its sender must know besides, by the names `mail-from` and `message-id-domain`."""

    body: bytes
    headers: dict[str, str]


def mail_id(identity: str) -> str:
    """Return what stands before the @ of a Message-ID: 32 hex digits of a message's `id.epoch`."""
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def thread_root(tenant: TenantId, destination: str, thread: str) -> str:
    """Return what stands before the @ in the id of a thread's root: 32 hex digits.

    No mail has this id. Every mail of the thread names it, and so clients show them together, whichever came first.
    """
    return hashlib.sha256(msgspec.json.encode(("twiceshy/thread", tenant, destination, thread))).hexdigest()[:32]


def recipients(mail: Mail) -> tuple[str, ...]:
    """Return everybody who is sent a copy, once however the address is written, in the order of `to`, `cc`, `bcc`."""
    firsts: dict[str, str] = {}
    for address in (*mail.to, *mail.cc, *mail.bcc):
        firsts.setdefault(address.casefold(), address)
    return tuple(firsts.values())


def sender_misfit(sender: str) -> str | None:
    """Say why `sender` is nobody that mail can be from."""
    if _ADDRESS.fullmatch(_mailbox(sender)[1]) is None:
        return f"{sender!r} is no sender of mail: write an address, or a name and behind it an address in <>"
    return None


def with_ascii_domain(address: str) -> str:
    """Return an address whose domain is written as names are asked for (IDNA); as it is where that cannot be."""
    local, at, domain = address.rpartition("@")
    return f"{local}{at}{_ascii(domain)}"


def _ascii(domain: str) -> str:
    if domain.isascii():
        return domain
    try:
        return idna.encode(domain, uts46=True).decode()
    except idna.IDNAError:
        return domain


def references(*headers: str) -> list[str]:
    """Return the ids that raw In-Reply-To and References headers name, with their <>, the first of each."""
    return list(dict.fromkeys(found for header in headers for found in _ID.findall(header)))


def render_mail(
    mail: Mail, sender: str, domain: str, *, thread: str | None, answers: str | None, at: Instant
) -> RenderedMail:
    """Freeze a mail, the same for all who are sent a copy; who is in `bcc` is named nowhere.

    `thread` is the root of its thread, `answers` the Message-ID of the newest mail that came in to it.
    """
    name, written = _mailbox(sender)
    address, domain = with_ascii_domain(written), _ascii(domain)
    lines = [
        f"From: {_written(name, address)}",
        _addresses("To", mail.to),
        *([_addresses("Cc", mail.cc)] if mail.cc else []),
        *([f"Reply-To: {with_ascii_domain(mail.reply_to)}"] if mail.reply_to is not None else []),
        f"Subject: {_unstructured(mail.subject, 'Subject')}",
        f"Date: {format_datetime(moment(at).replace(microsecond=0))}",
        *_thread_lines(thread, answers, domain),
        *(f"{name}: {value}" for name, value in mail.headers.items()),
    ]
    head = "".join(f"{line}\r\n" for line in lines).encode()
    return RenderedMail(body=head + _content(mail), headers={MAIL_FROM: address, DOMAIN: domain})


def _mailbox(sender: str) -> tuple[str, str]:
    """Return the name (maybe none) and the address of `Name <address>`; a name may be quoted, and need not be."""
    name, bracket, address = sender.strip().rpartition("<")
    if not bracket:
        return "", address
    return unquote(name.strip()), address.removesuffix(">").strip()


def _written(name: str, address: str) -> str:
    if not name:
        return address
    return f"{_unstructured(name, 'From')} <{address}>" if _needs_words(name) else formataddr((name, address))


def _addresses(name: str, addresses: Iterable[str]) -> str:
    """Write one address a line, so that none is ever folded inside."""
    return f"{name}: " + ",\r\n ".join(map(with_ascii_domain, addresses))


def _unstructured(text: str, header: str) -> str:
    """Write text as it is where mail can carry it, else in encoded words (RFC 2047)."""
    return Header(text, "utf-8", header_name=header).encode(linesep="\r\n") if _needs_words(text) else text


def _needs_words(text: str) -> bool:
    return not text.isascii() or _ENCODED_WORD in text


def _thread_lines(thread: str | None, answers: str | None, domain: str) -> list[str]:
    if thread is None:
        return []
    root = f"<{thread}@{domain}>"
    if answers is None or _ID.fullmatch(answers) is None:
        return [f"In-Reply-To: {root}", f"References: {root}"]
    return [f"In-Reply-To: {answers}", f"References: {root}\r\n {answers}"]


def _content(mail: Mail) -> bytes:
    """Write the MIME headers, an empty line and the body, in seven bits whatever it says."""
    content = EmailMessage(policy=_WRITTEN)
    if mail.text is not None:
        content.set_content(mail.text)
        if mail.html is not None:
            content.add_alternative(mail.html, subtype="html")
            content.set_boundary(f"=_{_boundary(mail.text, mail.html)}")
    else:
        content.set_content(mail.html or "", subtype="html")
    return content.as_bytes()


def _boundary(*parts: str) -> str:
    """Return what no part can hold by chance, the same for the same parts."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:40]
