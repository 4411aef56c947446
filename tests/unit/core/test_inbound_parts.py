"""Whatever a stranger writes is read in a bounded time: what is too much is kept as it came, under its headers."""

import time
from collections.abc import Iterator

import pytest

from guard.core.inbound_mail import LONGEST_TEXT, mail_of
from guard.core.inbound_parts import TooMuch, head_of, parts_of

HEAD = b"Message-ID: <m@x>\nSubject: hello\nIn-Reply-To: <ours@x>\n"
MEGABYTES = 2**20
SECONDS = 6
"""What a reading takes at the most on a machine that is busy; those here took minutes, or grew with the square."""


def nested(depth: int) -> Iterator[bytes]:
    for level in range(depth):
        yield b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (level, level)


def test_parts_within_parts_are_read_to_a_depth() -> None:
    message = mail_of(HEAD + b"".join(nested(19)) + b"Content-Type: text/plain\n\ninnermost")
    assert (message.text, message.cut) == ("innermost", False)


def test_what_is_deeper_is_a_text_under_its_headers() -> None:
    mail = mail_of(HEAD + b"".join(nested(20)) + b"Content-Type: text/plain\n\ninner\x00most")
    assert (mail.message_id, mail.subject, mail.answers, mail.cut) == ("<m@x>", "hello", ("<ours@x>",), True)
    assert (mail.text or "").startswith("--b0\nContent-Type: multipart/mixed; boundary=b1")
    assert (mail.text or "").endswith("innermost")


@pytest.mark.parametrize(
    "body",
    [
        b"".join(nested(200)) + b"x\n" * 100_000,
        b"".join(nested(19)) + b"x\n" * 100_000,
        b"".join(nested(5000)),
        b"\n" + b"\n" * (12 * MEGABYTES),
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\n" * 100_000,
        b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n" + b"a: b\n" * 30_000,
    ],
    ids=["deep and long", "long", "deep", "lines", "parts", "headers"],
)
def test_what_is_too_much_is_a_text_under_its_headers(body: bytes) -> None:
    began = time.process_time()
    mail = mail_of(HEAD + body)
    assert time.process_time() - began < SECONDS
    assert (mail.message_id, mail.answers, mail.cut) == ("<m@x>", ("<ours@x>",), True)
    assert len(mail.text or "") <= LONGEST_TEXT


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + b"Content-Type: text/plain" + b";" * MEGABYTES + b"\n\nx",
        HEAD + b"Content-Type: text/plain; charset=punycode\n\n" + b"a" * MEGABYTES,
        HEAD + b"To: " + b"=?a?q?x" * 3000 + b"\n\nx",
        HEAD + b"To: a@x.example\n" * 5000 + b"\nx",
        HEAD + b"To: " + b"(" * 20_000 + b"\n\nx",
        HEAD + b"\n" + b"A" * 76 * 50_000,
    ],
    ids=["parameters", "codec", "encoded words", "receivers", "comments", "one long line"],
)
def test_what_the_standard_library_is_slow_at_is_read_in_time(raw: bytes) -> None:
    began = time.process_time()
    mail = mail_of(raw)
    assert time.process_time() - began < SECONDS
    assert (mail.message_id, mail.subject, mail.answers) == ("<m@x>", "hello", ("<ours@x>",))


def test_of_one_header_no_more_is_read_than_anybody_writes() -> None:
    assert len(mail_of(b"To: a@x.example\n" * 5000 + b"\nx").to) == 1667


def test_headers_without_end_are_a_text() -> None:
    raw = b"a: b\n" * 60_000
    mail = mail_of(raw)
    assert (mail.subject, mail.cut, (mail.text or "")[:5]) == ("", True, "a: b\n")
    assert mail_of(b"a: b\n" * 20_000 + b"\nbody").message_id.endswith("@unnamed.invalid>")
    with pytest.raises(TooMuch):
        parts_of(raw)


def test_a_head_ends_at_the_first_empty_line() -> None:
    for line in (b"\n", b"\r\n", b"\r"):
        message, body = head_of(line.join([b"Subject: s", b"", b"one", b"", b"two"]))
        assert (message["Subject"], body) == ("s", line.join([b"one", b"", b"two"]))
