"""Agents that book a room as a saga, each killed at one moment and started again until nothing is left to do.

The first process only forks: a line `SAGA MOMENT` on its input makes a keeper, which starts an agent that is killed at
that moment and then agents that are not, and prints how each of them ended.
"""

import json
import os
import signal
import sys
import threading
from typing import Final

from examples.booking.agent import TAKEN_BACK
from examples.booking.tools import Booking, book, define
from examples.provider_client import Provider
from twiceshy import Guard, Rejected, SagaOver
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect

_MOST_AGENTS: Final = 10
NEVER: Final = 0


class Life:
    """The moments of an agent: before and after each request that it sends, to the guard and to the provider."""

    def __init__(self, dies_at: int) -> None:
        self.moments = 0
        self._dies_at = dies_at

    def moment(self) -> None:
        """Count a moment of the agent itself, and be killed at one."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.moments += 1
        if self.moments == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)


class MortalTransport:
    """A transport whose agent may be killed around each request."""

    def __init__(self, inner: Transport, life: Life) -> None:
        self._inner = inner
        self._life = life

    def send(self, request: Request) -> Reply | NoReply:
        """Send a request and wait for its reply."""
        self._life.moment()
        reply = self._inner.send(request)
        self._life.moment()
        return reply

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Send a request and await its reply."""
        return await self._inner.send_async(request)

    def close(self) -> None:
        """Let go of all connections."""
        self._inner.close()

    async def close_async(self) -> None:
        """Let go of all connections."""
        await self._inner.close_async()


class MortalProvider(Provider):
    """A provider whose agent may be killed around each request."""

    def __init__(self, url: str, life: Life) -> None:
        super().__init__(url)
        self._life = life

    def do(self, action: str, **arguments: object) -> dict[str, str]:
        """Do something once."""
        self._life.moment()
        answer = super().do(action, **arguments)
        self._life.moment()
        return answer


def work(saga: str, life: Life, guard_url: str, provider_url: str) -> int:
    """Book a room that is named after the saga; return the exit code."""
    guard = Guard(guard_url, transport=MortalTransport(connect(guard_url, None), life))
    tools = define(guard, MortalProvider(provider_url, life))
    booking: Booking = {"room": saga, "night": "2026-10-12", "cents": 9900}
    try:
        book(guard, tools, saga, booking)
    except (Rejected, SagaOver):
        return TAKEN_BACK
    return 0


def agent(saga: str, dies_at: int, urls: list[str]) -> tuple[int, int]:
    """Run an agent as a process of its own; return how it ended and how many moments it had (0: it was killed)."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        life = Life(dies_at)
        code = 1
        try:
            code = work(saga, life, *urls)
            os.write(writer, str(life.moments).encode())
        finally:
            os._exit(code)
    os.close(writer)
    said = os.read(reader, 100)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), int(said or b"0")


def keep(saga: str, dies_at: int, urls: list[str]) -> None:
    """Start agents until one ends by itself, and print how they ended."""
    codes: list[int] = []
    moments = 0
    while len(codes) < _MOST_AGENTS and (not codes or codes[-1] != TAKEN_BACK):
        code, moments = agent(saga, NEVER if codes else dies_at, urls)
        codes.append(code)
    line = json.dumps({"saga": saga, "codes": codes, "moments": moments}) + "\n"
    os.write(sys.stdout.fileno(), line.encode())


def main() -> None:
    """Fork a keeper for every line."""
    urls = sys.argv[1:]
    for line in sys.stdin:
        saga, dies_at = line.split()
        if os.fork() == 0:
            try:
                keep(saga, int(dies_at), urls)
            finally:
                os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
