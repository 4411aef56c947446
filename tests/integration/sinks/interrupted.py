"""Messages sent while their broker is interrupted, each until it is delivered, as the relay would."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from outbox_relay.sinks.base import Delivered, Outgoing, Permanent, Result, Retryable, Sink, Unknown

_AT_ONCE: Final = 8
_PACE_SECONDS: Final = 0.02


class Account(msgspec.Struct):
    """What was answered: how often each message was called delivered, and how many sends stayed unknown."""

    delivered: list[str] = []
    permanent: list[Permanent] = []
    unknown: int = 0
    refused: int = 0

    def book(self, outgoing: Outgoing, result: Result) -> bool:
        """Count a result, and say whether the message is done."""
        match result:
            case Delivered():
                self.delivered.append(outgoing.identity)
            case Permanent():
                self.permanent.append(result)
            case Retryable():
                self.refused += 1
                return False
            case Unknown():
                self.unknown += 1
                return False
        return True


async def send_through(sink: Sink, messages: Sequence[Outgoing], interrupt: Callable[[Account], object]) -> Account:
    """Send all, several at once; once a quarter is delivered, interrupt the broker while the others are sent.

    `interrupt` runs in a thread, and is given the account to see what was noticed.
    """
    account = Account()
    left = iter(messages)
    begun = asyncio.Event()

    async def send_one(outgoing: Outgoing) -> None:
        while True:
            if account.book(outgoing, await sink.send(outgoing)):
                return
            await asyncio.sleep(_PACE_SECONDS)

    async def send_some() -> None:
        for outgoing in left:
            await send_one(outgoing)
            if len(account.delivered) >= len(messages) // 4:
                begun.set()

    async def break_in() -> None:
        await begun.wait()
        await asyncio.to_thread(interrupt, account)

    await asyncio.gather(break_in(), *(send_some() for _ in range(_AT_ONCE)))
    return account
