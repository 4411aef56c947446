"""Whatever comes in is read as well as can be, and nothing that comes in breaks the reader."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.core.inbound_mail import LONGEST_TEXT, Attachment, Inbound, mail_of, mail_of_json, our_ids
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.replies import InboundMail

OURS = "0123456789abcdef" * 2
ROOT = "fedcba9876543210" * 2

REPLY = f"""\
Message-ID: <r1@mail.x.example>
From: =?utf-8?q?J=C3=B6rg?= <joerg@x.example>
To: Acme <agent@acme.example>, bob@x.example
Cc: "Doe, Jane" <jane@x.example>
Subject: Re: =?utf-8?b?R3LDvMOfZQ==?= from
 afar
Date: Tue, 14 Nov 2023 22:13:20 +0000
In-Reply-To: <{OURS}@acme.example>
References: <{ROOT}@acme.example>
 <other@x.example> <{OURS}@acme.example>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b"

--b
Content-Type: multipart/alternative; boundary="c"

--c
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe
--c
Content-Type: text/html

<p>hi
--c--
--b
Content-Type: text/plain
Content-Disposition: attachment; filename="note.txt"

kept elsewhere
--b
Content-Type: message/rfc822

Message-ID: <inner@x.example>

inner
--b
Content-Type: image/png
Content-Disposition: attachment
Content-Transfer-Encoding: base64

AAAA
--b--
""".replace("\n", "\r\n").encode()


def test_a_reply_is_taken_apart() -> None:
    assert mail_of(REPLY) == Inbound(
        message_id="<r1@mail.x.example>",
        from_="Jörg <joerg@x.example>",
        to=("Acme <agent@acme.example>", "bob@x.example"),
        cc=("Doe, Jane <jane@x.example>",),
        subject="Re: Grüße from afar",
        date="Tue, 14 Nov 2023 22:13:20 +0000",
        text="Grüße",
        html="<p>hi",
        answers=(f"<{OURS}@acme.example>", "<other@x.example>", f"<{ROOT}@acme.example>"),
        attachments=(
            Attachment(name="note.txt", content_type="text/plain", size=14),
            Attachment(name=None, content_type="message/rfc822", size=66),
            Attachment(name="", content_type="image/png", size=3),
        ),
    )


def test_our_ids_are_found_whatever_domain_and_case_they_have() -> None:
    mail = Inbound(
        message_id="<a@x>", from_="", answers=(f"<{OURS.upper()}@y>", f"<{ROOT}@x>", "<short@x>", f"<{OURS}@x>")
    )
    assert our_ids(mail) == (OURS, ROOT)


def test_a_mail_is_known_by_its_id() -> None:
    again = mail_of(REPLY.replace(b"inner", b"other"))
    assert again.digest == mail_of(REPLY).digest
    assert mail_of(REPLY.replace(b"<r1@", b"<r2@")).digest != again.digest


def test_a_mail_without_an_id_has_one_by_its_bytes() -> None:
    one, same, other = mail_of(b"Subject: a\n\nb"), mail_of(b"Subject: a\n\nb"), mail_of(b"Subject: a\n\nc")
    assert one.message_id == same.message_id != other.message_id
    assert one.message_id.endswith("@unnamed.invalid>")
    assert (one.subject, one.text, one.date) == ("a", "b", None)


def test_texts_are_decoded_as_well_as_can_be() -> None:
    assert mail_of(b"Content-Type: text/plain; charset=no-such\n\n\xc3\xbc").text == "ü"
    assert mail_of(b"Content-Type: text/plain; charset=utf-8\n\n\xfc").text == "ü"
    assert mail_of("Subject: Grüße\n\nx".encode()).subject == "Grüße"
    assert mail_of(b"Subject: =?utf-8?b?a?= \xff\n\nx").subject == "=?utf-8?b?a?= \ufffd"
    assert mail_of(b"Content-Type: text/plain; charset*=a\x00b''c\n\nx").text == "x"
    named = mail_of(b"Content-Disposition: attachment; filename*=a\x00b''c\n\nx")
    assert named.attachments == (Attachment(name="", content_type="text/plain", size=1),)
    assert mail_of(b"Subject: =?utf-8?q?a=00b?= plain =?no-such?q?=FC?=\n\nx").subject == "ab plain ü"
    assert mail_of(b"Content-Type: text/plain\n\na\x00b").text == "ab"


def test_what_a_machine_wrote_is_told() -> None:
    assert mail_of(b"Auto-Submitted: auto-replied; x\n\nI am away.").automatic
    assert mail_of(b"Precedence: Bulk\n\nx").automatic
    assert mail_of(b"Content-Type: multipart/report; boundary=b\n\n--b\n\nx\n--b--").automatic
    assert not mail_of(b"Auto-Submitted: no\n\nx").automatic


def test_a_long_text_is_cut_and_says_so() -> None:
    mail = mail_of(b"Subject: s\n\n" + b"x" * (LONGEST_TEXT + 1))
    assert (len(mail.text or ""), mail.cut) == (LONGEST_TEXT, True)
    sent = InboundMail(message_id="a@x", from_="", html="y" * (LONGEST_TEXT + 1))
    assert (len(mail_of_json(sent).html or ""), mail_of_json(sent).cut) == (LONGEST_TEXT, True)


def test_more_parts_than_anybody_sends_are_not_read() -> None:
    parts = b"".join(b"--b\nContent-Type: a/b\n\nx\n" for _ in range(600))
    assert len(mail_of(b"Content-Type: multipart/mixed; boundary=b\n\n" + parts + b"--b--").attachments) == 500


def test_a_multipart_without_parts_is_a_text_like_any_other() -> None:
    mail = mail_of(b"Content-Type: multipart/mixed; boundary=b\n\nno parts")
    assert mail.attachments == (Attachment(name=None, content_type="multipart/mixed", size=8),)


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(raw: bytes) -> None:
    assert mail_of(raw).message_id.startswith("<")


HEADS = st.sampled_from(
    [b"Content-Type: ", b"Content-Disposition: ", b"Subject: ", b"From: ", b"To: ", b"Content-Transfer-Encoding: "]
)
PIECES = st.sampled_from(  # what parsers have stumbled over
    [b"text/plain", b"multipart/mixed", b"message/rfc822", b"; charset=", b"; boundary=", b"b", b'"', b"=?utf-8?b?",
     b"?=", b"; filename*=", b"utf-8''%ff", b"; filename*0*=", b"x", b"base64", b"attachment", b"\xff", b"<a@b>", b"(",
     b",", b"\n "]
)  # fmt: skip


@given(st.lists(st.tuples(HEADS, st.lists(PIECES, max_size=6)), max_size=5), st.binary(max_size=40))
def test_no_headers_break_the_reader(headers: list[tuple[bytes, list[bytes]]], body: bytes) -> None:
    raw = b"".join(name + b"".join(pieces) + b"\n" for name, pieces in headers) + b"\n--b\n\n" + body
    assert mail_of(raw).message_id.startswith("<")


def test_mail_as_json_says_the_same() -> None:
    sent = InboundMail(
        message_id="r1@mail.x.example",
        from_="joerg@x.example",
        to="Acme <agent@acme.example>, bob@x.example",
        cc=("jane@x.example",),
        subject="Re",
        date="today",
        text="t",
        in_reply_to=f"<{OURS}@acme.example>",
        references=f"{ROOT}@acme.example <{OURS}@acme.example>",
    )
    assert mail_of_json(sent) == Inbound(
        message_id="<r1@mail.x.example>",
        from_="joerg@x.example",
        to=("Acme <agent@acme.example>", "bob@x.example"),
        cc=("jane@x.example",),
        subject="Re",
        date="today",
        text="t",
        answers=(f"<{OURS}@acme.example>", f"<{ROOT}@acme.example>"),
    )


@pytest.mark.parametrize("name", ["<>", "", "  ", "<a b@x>", "<a\x08@x>", "<\xfc@x>", "<a@x> <b@x>", "a" * 899])
def test_an_id_of_json_that_no_header_can_carry_is_refused(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        mail_of_json(InboundMail(message_id=name, from_=""))
    assert refused.value.path == "/message_id"


def test_ids_that_no_header_can_carry_are_dropped() -> None:
    sent = InboundMail(message_id="r@x", from_="", in_reply_to="<> <a\x1b[31m@x>", references=("<\xfc@x>", "<b@x>"))
    assert mail_of_json(sent).answers == ("<b@x>",)
    assert mail_of(b"Message-ID: <a\x08b@x>\nReferences: <a\x7f@x> <c@x>\n\nx").answers == ("<c@x>",)
    assert mail_of(b"Message-ID: <a\x08b@x>\n\nx").message_id.endswith("@unnamed.invalid>")


def test_lists_of_json_are_taken_as_they_are() -> None:
    sent = InboundMail(
        message_id="<r@x>", from_="", to=("a@x.example", "b@x.example"), cc="c@x.example", references=("<b@x>", "<c@x>")
    )
    mail = mail_of_json(sent)
    assert (mail.to, mail.cc, mail.answers) == (("a@x.example", "b@x.example"), ("c@x.example",), ("<c@x>", "<b@x>"))
