"""An answer's head and body reach the system in one piece, and nothing is held back for long."""

import asyncio
from typing import cast

from guard.cli.protocol import OnePiece


class Recorded:
    """A transport that remembers what was done to it."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done


def one_piece() -> tuple[OnePiece, Recorded]:
    under = Recorded()
    return OnePiece(cast("asyncio.Transport", under)), under


async def test_a_head_and_a_body_are_written_as_one() -> None:
    transport, under = one_piece()
    transport.write(b"head")
    transport.write(b"body")
    assert under.done == [b"headbody"]
    await asyncio.sleep(0)
    assert under.done == [b"headbody"]


async def test_a_write_without_a_second_goes_out_at_the_end_of_the_turn() -> None:
    transport, under = one_piece()
    transport.write(b"head")
    assert under.done == []
    await asyncio.sleep(0)
    assert under.done == [b"head"]


async def test_closing_writes_what_was_held_back_first() -> None:
    transport, under = one_piece()
    transport.write(b"last")
    transport.close()
    assert under.done == [b"last", "closed"]
    assert transport.is_closing()
    await asyncio.sleep(0)
    assert under.done == [b"last", "closed"]


async def test_many_writes_keep_their_order() -> None:
    transport, under = one_piece()
    for number in range(7):
        transport.write(str(number).encode())
    await asyncio.sleep(0)
    assert b"".join(cast("list[bytes]", under.done)) == b"0123456"
