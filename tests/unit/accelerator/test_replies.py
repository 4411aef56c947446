"""Replies: whatever the pieces, they are read as they were written; what is beyond all bounds is no reply."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.accelerator.replies import LARGEST_BULK, Refusal, Replies, Unreadable

PLAIN = st.one_of(st.none(), st.integers(-(2**63) + 1, 2**63 - 1), st.binary(max_size=300))
REPLY = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=5), max_leaves=10)


def wire(value: object) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, bytes):
        return b"$%d\r\n%b\r\n" % (len(value), value)
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(wire, value))
    return b":%d\r\n" % int(str(value))


def depth(value: object) -> int:
    return 1 + max(map(depth, value), default=0) if isinstance(value, list) else 0


@given(replies=st.lists(REPLY.filter(lambda value: depth(value) <= 4), max_size=5), size=st.integers(1, 50))
def test_replies_are_read_as_they_were_written_whatever_the_pieces(replies: list[object], size: int) -> None:
    text = b"".join(map(wire, replies))
    reader = Replies()
    read: list[object] = []
    for place in range(0, len(text), size):
        read += reader.feed(text[place : place + size])
    assert read == replies


def test_words_refusals_and_lists_that_are_none_are_read() -> None:
    word, refusal, nothing = Replies().feed(b"+OK\r\n-ERR no\r\n*-1\r\n")
    assert (word, str(refusal), nothing) == (b"OK", "ERR no", None)
    assert isinstance(refusal, Refusal)


@pytest.mark.parametrize(
    "junk",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"$500000000\r\n",
        b"*1000000000\r\n",
        b"*1\r\n" * 5,
        b"$1\r\nabc",
        b"$x\r\n",
        b":one\r\n",
        b":" + b"9" * 30 + b"\r\n",
        b":" + b"9" * 10_000 + b"\r\n",
        b"+" + b"x" * 70_000,
        b"%1\r\n+a\r\n+b\r\n",
        b"\r\n",
    ],
)
def test_what_is_no_reply_is_refused_before_any_room_is_made_for_it(junk: bytes) -> None:
    tracemalloc.start()
    with pytest.raises(Unreadable):
        Replies().feed(junk)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@given(junk=st.binary(max_size=60))
def test_no_junk_is_anything_but_replies_or_refused(junk: bytes) -> None:
    reader = Replies()
    try:
        reader.feed(junk)
    except Unreadable:
        return
    assert len(reader.feed(b"")) == 0


def test_a_text_may_be_as_large_as_an_entry_that_is_too_large() -> None:
    text = bytes(LARGEST_BULK)
    reader = Replies()
    sent = wire(text)
    read = [reply for place in range(0, len(sent), 2**16) for reply in reader.feed(sent[place : place + 2**16])]
    assert read == [text]
