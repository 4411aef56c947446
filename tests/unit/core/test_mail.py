"""Mail is frozen to bytes that any client reads as they were meant, and its ids survive every relay."""

from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import default

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.core.effects import Instant, TenantId
from guard.core.mail import (
    RenderedMail,
    mail_id,
    recipients,
    references,
    render_mail,
    sender_misfit,
    thread_root,
    with_ascii_domain,
)
from twiceshy_contract.messages import Mail, Message

AT = Instant(1_700_000_000_654_321)
ROOT = "c" * 32


def rendered(
    mail: Mail, sender: str = "agent@acme.example", thread: str | None = None, answers: str | None = None
) -> RenderedMail:
    return render_mail(mail, sender, "acme.example", thread=thread, answers=answers, at=AT)


def read(rendered_mail: RenderedMail) -> EmailMessage:
    message = message_from_bytes(rendered_mail.body, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def test_an_id_is_32_hex_digits_of_the_message_and_its_epoch() -> None:
    assert mail_id("0192f5b0-7c3a-7000-8000-000000000001.1") == "ecef3bdbea68ea69cc368db959c26aac"
    assert mail_id("0192f5b0-7c3a-7000-8000-000000000001.2") != mail_id("0192f5b0-7c3a-7000-8000-000000000001.1")


def test_a_threads_root_is_its_own_by_tenant_destination_and_name() -> None:
    roots = {
        thread_root(TenantId(1), "mail", "booking"),
        thread_root(TenantId(2), "mail", "booking"),
        thread_root(TenantId(1), "mai", "lbooking"),
        thread_root(TenantId(1), "mail", "other"),
    }
    assert len(roots) == 4
    assert all(len(root) == 32 and set(root) <= set("0123456789abcdef") for root in roots)


def test_a_letter_that_ends_lines_begins_no_header() -> None:
    for end in "\u2028\u2029\x85":
        mail = Mail(to=("a@x.example",), subject=f"one{end}Bcc: eve@x.example", text="t")
        message = read(rendered(mail, f"Acme{end}Bcc: eve <agent@acme.example>"))
        assert (message["Bcc"], message["Subject"]) == (None, "one Bcc: eve@x.example")


def test_an_address_in_other_letters_is_the_same() -> None:
    mail = Mail(to=("Ann@X.example",), cc=("ann@x.example",), subject="", text="")
    assert recipients(mail) == ("Ann@X.example",)


def test_everybody_is_sent_one_copy() -> None:
    mail = Mail(
        to=("a@x.example", "b@x.example"),
        cc=("a@x.example", "c@x.example"),
        bcc=("b@x.example", "d@x.example"),
        subject="",
        text="",
    )
    assert recipients(mail) == ("a@x.example", "b@x.example", "c@x.example", "d@x.example")


def test_a_plain_mail_is_frozen_to_these_bytes() -> None:
    mail = Mail(
        to=("ann@x.example", "bob@x.example"), bcc=("eve@x.example",), subject="Room 101", text="Booked.\nSee you."
    )
    frozen = rendered(mail, "Acme bookings <agent@acme.example>")
    assert frozen.body == (
        b"From: Acme bookings <agent@acme.example>\r\n"
        b"To: ann@x.example,\r\n bob@x.example\r\n"
        b"Subject: Room 101\r\n"
        b"Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
        b'Content-Type: text/plain; charset="utf-8"\r\n'
        b"Content-Transfer-Encoding: 7bit\r\n"
        b"MIME-Version: 1.0\r\n\r\n"
        b"Booked.\r\nSee you.\r\n"
    )
    assert frozen.headers == {"mail-from": "agent@acme.example", "message-id-domain": "acme.example"}


def test_text_and_html_are_alternatives_and_the_same_mail_is_the_same_bytes() -> None:
    mail = Mail(
        to=("a@x.example",),
        cc=("c@x.example",),
        reply_to="desk@acme.example",
        subject="s",
        text="Grüße\r\n.\r\nFrom here",
        html="<p>" + "ü" * 2000,
        headers={"X-Booking": "42", "List-Unsubscribe": "<https://acme.example/" + "u" * 200 + ">"},
    )
    frozen = rendered(mail)
    assert frozen == rendered(mail)
    assert frozen.body.isascii()
    assert max(map(len, frozen.body.split(b"\r\n"))) <= 998
    assert b"\n" not in frozen.body.replace(b"\r\n", b"")
    message = read(frozen)
    assert (message["Cc"], message["Reply-To"], message["X-Booking"]) == ("c@x.example", "desk@acme.example", "42")
    assert message["List-Unsubscribe"] == "<https://acme.example/" + "u" * 200 + ">"
    assert message.get_content_type() == "multipart/alternative"
    text, html = message.iter_parts()
    assert isinstance(text, EmailMessage)
    assert isinstance(html, EmailMessage)
    assert (text.get_content(), html.get_content_type()) == ("Grüße\r\n.\r\nFrom here\r\n", "text/html")
    assert html.get_content() == "<p>" + "ü" * 2000 + "\r\n"


def test_html_alone_is_html_alone() -> None:
    message = read(rendered(Mail(to=("a@x.example",), subject="s", html="<p>hi</p>")))
    assert (message.get_content_type(), message.get_content()) == ("text/html", "<p>hi</p>\r\n")


def test_mail_of_a_thread_names_its_root_and_answers_the_newest_that_came_in() -> None:
    mail = Mail(to=("a@x.example",), subject="s", text="t", thread="booking")
    first = read(rendered(mail, thread=ROOT))
    assert (first["In-Reply-To"], first["References"]) == (f"<{ROOT}@acme.example>", f"<{ROOT}@acme.example>")
    long_id = "<" + "r" * 300 + "@mail.x.example>"
    later = rendered(mail, thread=ROOT, answers=long_id)
    assert f"In-Reply-To: {long_id}\r\nReferences: <{ROOT}@acme.example>\r\n {long_id}\r\n".encode() in later.body
    assert b"References" not in rendered(mail).body


@pytest.mark.parametrize("answers", ["<" + "r" * 950 + ">", "<ü@x.example>"])
def test_an_id_that_no_line_can_carry_is_left_out(answers: str) -> None:
    mail = Mail(to=("a@x.example",), subject="s", text="t", thread="booking")
    assert rendered(mail, thread=ROOT, answers=answers) == rendered(mail, thread=ROOT)


@pytest.mark.parametrize("name", ["Acme", "Doe, Jane", 'The "Desk"', "Zoë", "Müller, Jörg", "=?utf-8?q?no?="])
def test_a_senders_name_arrives_as_it_is(name: str) -> None:
    frozen = rendered(Mail(to=("a@x.example",), subject="s", text="t"), f"{name} <agent@acme.example>")
    (address,) = read(frozen)["From"].addresses
    assert (address.display_name, address.addr_spec) == (name, "agent@acme.example")
    assert frozen.headers["mail-from"] == "agent@acme.example"


def test_a_long_name_is_split_into_words_that_readers_join() -> None:
    frozen = rendered(Mail(to=("a@x.example",), subject="s", text="t"), f"{'ü' * 200} <agent@acme.example>")
    written = frozen.body.partition(b"\r\nTo:")[0].decode()
    assert max(map(len, written.split("\r\n"))) <= 76 + len(" <agent@acme.example>")
    assert str(make_header(decode_header(written))) == f"From: {'ü' * 200} <agent@acme.example>"


def test_a_quoted_name_loses_its_quotes() -> None:
    frozen = rendered(Mail(to=("a@x.example",), subject="s", text="t"), '"Doe, Jane" <agent@acme.example>')
    assert frozen.body.startswith(b'From: "Doe, Jane" <agent@acme.example>\r\n')


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=900))
def test_a_subject_arrives_as_it_is(subject: str) -> None:
    frozen = rendered(Mail(to=("a@x.example",), subject=subject, text="t"))
    assert read(frozen)["Subject"].strip() == subject.strip()
    assert frozen.body.isascii()


def test_an_address_beyond_ascii_is_written_in_utf8_and_its_domain_as_names_are_asked_for() -> None:
    frozen = rendered(Mail(to=("jürgen@bücher.example",), cc=("ann@straße.example",), subject="s", text="t"))
    assert "To: jürgen@xn--bcher-kva.example\r\n".encode() in frozen.body
    assert b"Cc: ann@xn--strae-oqa.example\r\n" in frozen.body


def test_a_domain_that_cannot_be_asked_for_stays_as_it_is() -> None:
    assert with_ascii_domain("ann@bücher..example") == "ann@bücher..example"
    assert with_ascii_domain("ann@Bücher.example") == "ann@xn--bcher-kva.example"


@pytest.mark.parametrize(
    "name", ["From", "bcc", "MESSAGE-ID", "Content-Type", "Resent-To", "References", "DKIM-Signature"]
)
def test_a_header_that_the_mail_writes_itself_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"the header {name} is written from the mail's own fields"):
        Mail(to=("a@x.example",), subject="s", text="t", headers={name: "x"})


def test_a_header_that_no_line_can_carry_is_refused() -> None:
    assert Mail(to=("a@x.example",), subject="s", text="t", headers={"X" * 100: "v" * 896}).headers
    with pytest.raises(ValueError, match="is longer than 998 characters"):
        Mail(to=("a@x.example",), subject="s", text="t", headers={"X" * 100: "v" * 897})


def test_headers_of_mail_are_its_own() -> None:
    mail = Mail(to=("a@x.example",), subject="s", text="t")
    with pytest.raises(ValueError, match="put these into `mail`"):
        Message(destination="mail", mail=mail, headers={"X-A": "b"})


@pytest.mark.parametrize("sender", ["agent@acme.example", "Acme <agent@acme.example>", "Doe, Jane <j@acme.example>"])
def test_a_sender_is_an_address_or_a_name_and_an_address(sender: str) -> None:
    assert sender_misfit(sender) is None


@pytest.mark.parametrize(
    "sender", ["Acme", "Acme <>", "agent@", "@acme.example", "a b@acme.example", "Acme <a@x> desk"]
)
def test_what_mail_cannot_be_from_is_refused(sender: str) -> None:
    assert (
        sender_misfit(sender)
        == f"{sender!r} is no sender of mail: write an address, or a name and behind it an address in <>"
    )


def test_the_ids_of_raw_headers_are_found_whatever_is_between_them() -> None:
    assert references("<a@x>", "<b@x>\r\n\t<a@x>(comment) junk <c d@x> <e@x>") == ["<a@x>", "<b@x>", "<e@x>"]
    assert references("", "no id") == []
