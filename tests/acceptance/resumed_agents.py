"""Recorded agents, each killed at one moment and resumed until its work is done.

The first process only forks: a line `RUN MOMENT` on its input makes a keeper, which starts an agent that is killed at
that moment and then agents that are not, and prints how each of them ended and what the last one came to.
"""

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any, Final

from twiceshy import Applied, DoubtfulEffect, Guard, NotFound, Run
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect

_MOST_AGENTS: Final = 10
NEVER: Final = 0


class Life:
    """The moments of an agent: around each request that it sends, and around what it does to the world."""

    def __init__(self, dies_at: int) -> None:
        self.moments = 0
        self._dies_at = dies_at
        self._lock = threading.Lock()

    def moment(self) -> None:
        """Count a moment, and be killed at one, whichever thread it is in."""
        with self._lock:
            self.moments += 1
            if self.moments == self._dies_at:
                os.kill(os.getpid(), signal.SIGKILL)


class MortalTransport:
    """A transport whose agent may be killed around each request, those that bring its log among them."""

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
        self._life.moment()
        reply = await self._inner.send_async(request)
        self._life.moment()
        return reply

    def close(self) -> None:
        """Let go of all connections."""
        self._inner.close()

    async def close_async(self) -> None:
        """Let go of all connections."""
        await self._inner.close_async()


class Work:
    """An agent with blocking and async tools, a model, and a world that is a file."""

    def __init__(self, name: str, life: Life, url: str, world: Path) -> None:
        self.name = name
        self._life = life
        self._world = world
        self.guard = Guard(url, transport=MortalTransport(connect(url, None), life), spool=None)
        options: dict[str, Any] = {"lease_seconds": 1, "wait_seconds": 20}
        self.pay = self.guard.tool(name="pay", **options)(self._pay)
        ask = self.guard.tool(name="ask", **options)(self._ask)
        self.ask = ask.with_key(distinct=True)  # of several in doubt at once, none stands for another
        self.look = self.guard.tool(name="look", effect="read")(self._look)
        self.pay.probe(self._paid)
        ask.probe(self._asked)

    async def agent(self) -> list[object]:
        """Ask three shops at once, let the model choose, pay, and tell two people."""
        async with self.guard.run(self.name, record=True, resume=True) as run:
            run.now()
            token = str(run.uuid4())
            places = self.look(self.name)
            offers = await asyncio.gather(*(self.ask(f"{self.name}-{place}", token) for place in places))
            self._life.moment()
            chosen = await run.llm(self._model, offers=[offer[0] for offer in offers])
            paid = self.pay(f"{self.name}-{chosen}", token)
            self._life.moment()
            await run.sleep(0.001)
            told = sorted([said[0] async for said in run.as_completed(self._telling(run, paid[0], token))])
            return [chosen, paid[0], told, {token, paid[1], *(offer[1] for offer in offers)} == {token}]

    def _telling(self, run: Run, paid: int, token: str) -> list[Any]:
        return [self.ask(f"{self.name}-tell-{person}-{paid}", token) for person in ("ann", "bob")]

    async def _model(self, offers: list[int]) -> int:
        self._life.moment()
        return min(offers)

    def _look(self, name: str) -> list[int]:
        self._life.moment()
        return [3, 1, 2]

    def _pay(self, what: str, token: str) -> list[Any]:
        return self._do(f"pay {what}", token)

    async def _ask(self, what: str, token: str) -> list[Any]:
        self._life.moment()
        await asyncio.sleep(0.001)
        return self._do(f"ask {what}", token)

    def _do(self, what: str, token: str) -> list[Any]:
        """Do something to the world, and be killed before it or after it."""
        self._life.moment()
        with self._world.open("ab", buffering=0) as world:
            world.write(f"{what} {token}\n".encode())
        self._life.moment()
        return [len(what), token]

    def _paid(self, effect: DoubtfulEffect, what: str) -> Applied | NotFound:
        return self._found(f"pay {what}")

    async def _asked(self, effect: DoubtfulEffect, what: str) -> Applied | NotFound:
        return self._found(f"ask {what}")

    def _found(self, what: str) -> Applied | NotFound:
        lines = self._world.read_text().splitlines() if self._world.exists() else []
        token = next((line.rpartition(" ")[2] for line in lines if line.rpartition(" ")[0] == what), None)
        return NotFound() if token is None else Applied([len(what), token])


def agent(name: str, dies_at: int, url: str, world: str) -> tuple[int, dict[str, Any]]:
    """Run an agent as a process of its own; return how it ended and what it came to."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            life = Life(dies_at)
            work = Work(name, life, url, Path(world))
            result = asyncio.run(work.agent())
            work.guard.close()
            os.write(writer, json.dumps({"result": result, "moments": life.moments}).encode())
            code = 0
        except BaseException as error:  # noqa: BLE001 - the keeper tells of it
            os.write(writer, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
        finally:
            os._exit(code)
    os.close(writer)
    said = os.read(reader, 10_000)
    os.close(reader)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), json.loads(said or b"{}")


def keep(name: str, dies_at: int, url: str, world: str) -> None:
    """Start agents until one ends by itself, and print how they ended."""
    codes: list[int] = []
    said: dict[str, Any] = {}
    errors: list[str] = []
    while len(codes) < _MOST_AGENTS and (not codes or codes[-1] != 0):
        code, said = agent(name, NEVER if codes else dies_at, url, world)
        codes.append(code)
        errors += [said["error"]] if "error" in said else []
    line = json.dumps({"run": name, "codes": codes, "errors": errors, **said}) + "\n"
    os.write(sys.stdout.fileno(), line.encode())


def main() -> None:
    """Fork a keeper for every line."""
    url, world = sys.argv[1:]
    for line in sys.stdin:
        name, dies_at = line.split()
        if os.fork() == 0:
            try:
                keep(name, int(dies_at), url, world)
            finally:
                os._exit(0)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
