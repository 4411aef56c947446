"""What recording and replaying costs: time in the caller, bytes in the database, and events served a second."""

import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec

from bench.failure import BadAnswer
from bench.load import Side
from bench.peers.install import Say
from bench.rows import percentiles
from bench.servers import durability, service, sqlite
from bench.sides import Sides
from bench.turns import Turn
from guard.store.sql.address import FileAddress, parse
from twiceshy import Guard, Recording, replay

EVENTS_A_CALL: Final = 2
"""An intent and a delivery."""
_AT_ONCE: Final = 500
_CALLS_OF_CONVERSATION: Final = 100
_MESSAGES_BEFORE: Final = 100
_MESSAGE_BYTES: Final = 4_000
_TOOL_OUTPUT_BYTES: Final = 5_000
_REPLAYED_CALLS: Final = 5_000
_numbers: Final = count()


@contextmanager
def recording(_: Say) -> Iterator[Sides]:
    """Record events of a run against the service; no peer does that in the caller."""
    with sqlite() as url, service(url) as ours, _guard(ours) as guard:
        yield Sides(ours=lambda seconds: _record(guard, seconds), facts=(durability(url),))


@contextmanager
def conversation(_: Say) -> Iterator[Sides]:
    """Record a conversation that re-sends all of itself with every call."""
    with sqlite() as url, service(url) as ours, _guard(ours) as guard:
        yield Sides(ours=lambda _seconds: _converse(guard, url), facts=(durability(url),))


@contextmanager
def replaying(_: Say) -> Iterator[Sides]:
    """Record a long run once, and replay it from there."""
    with sqlite() as url, service(url) as ours, _guard(ours) as guard:
        name = f"bench-{uuid4().hex[:12]}"
        _work(guard, name)
        with Recording.of(guard, name) as recorded:
            yield Sides(ours=lambda _seconds: _replay(guard, name, recorded), facts=(durability(url),))


def microseconds_an_event(turn: Turn) -> float:
    """Return what half of the events took at most in the caller, while a thread of the same process sends them."""
    return percentiles(turn.milliseconds).p50 / EVENTS_A_CALL * 1_000


def events_per_second(turn: Turn) -> float:
    """Return what a turn of replayed calls found, in events."""
    return turn.per_second * EVENTS_A_CALL


def times_smaller(turn: Turn) -> float:
    """Return how often the stored bytes go into those of the plain JSON: a turn of bytes, see `_converse`."""
    return turn.per_second


@contextmanager
def _guard(side: Side) -> Iterator[Guard]:
    with Guard(f"http://127.0.0.1:{side.port}", record=True, spool=None) as guard:
        yield guard


def _record(guard: Guard, seconds: float) -> Turn:
    """Pass boundaries of a run for some seconds, as fast as they are recorded; sending them is not waited for."""
    spent: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        with guard.run(f"bench-{uuid4().hex[:12]}") as run:
            for number in range(_AT_ONCE):
                before = time.perf_counter()
                run.custom("lookup", _look_up, number, place="GB-SCT")
                spent.append((time.perf_counter() - before) * 1000)
    return Turn(calls=len(spent), seconds=sum(spent) / 1000, milliseconds=tuple(spent))


def _look_up(number: int, place: str) -> dict[str, Any]:
    return {"number": number, "place": place, "rules": []}


def _converse(guard: Guard, url: str) -> Turn:
    """Record one conversation. The turn's `calls` are bytes of plain JSON, its `seconds` bytes in the database."""
    before = _stored(url)
    drawn = random.Random(next(_numbers))  # noqa: S311 - texts, no secrets
    messages = [{"role": "user", "content": _text(drawn, _MESSAGE_BYTES)} for _ in range(_MESSAGES_BEFORE)]
    plain = 0
    began = time.perf_counter()
    with guard.run(f"bench-{uuid4().hex[:12]}") as run:
        for number in range(_CALLS_OF_CONVERSATION):
            plain += len(msgspec.json.encode({"model": "bench", "messages": messages}))
            said = run.llm(_answer, model="bench", messages=messages, number=number)
            messages = [*messages, said, {"role": "tool", "content": _text(drawn, _TOOL_OUTPUT_BYTES)}]
    took = (time.perf_counter() - began) * 1000 / _CALLS_OF_CONVERSATION
    return Turn(calls=plain, seconds=float(_stored(url) - before), milliseconds=(took,))


def _answer(model: str, messages: list[dict[str, str]], number: int) -> dict[str, str]:
    return {"role": "assistant", "content": f"{model} answers {len(messages)} messages, {number}"}


def _text(drawn: random.Random, size: int) -> str:
    """Return words out of some thousands, as text of about a size."""
    words: list[str] = []
    length = 0
    while length < size:
        number = int(6_000 * drawn.random() ** 2)
        words.append(f"{chr(97 + number % 26)}{number:x}{chr(97 + number // 26 % 26)}")
        length += len(words[-1]) + 1
    return " ".join(words)


def _stored(url: str) -> int:
    """Return how many bytes the database's file has, once all is in it."""
    address = parse(url)
    if not isinstance(address, FileAddress):
        raise BadAnswer(f"{url} is no file")
    with sqlite3.connect(address.path) as connection, suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return Path(address.path).stat().st_size


def _work(guard: Guard, name: str) -> int:
    with guard.run(name) as run:
        return sum(
            run.custom("lookup", _look_up, number, place="GB-SCT")["number"] for number in range(_REPLAYED_CALLS)
        )


def _replay(guard: Guard, name: str, recorded: Recording) -> Turn:
    began = time.perf_counter()
    replayed = replay(recorded, lambda: _work(guard, name))
    took = time.perf_counter() - began
    if not replayed.is_same:
        raise BadAnswer(f"the replay differs: {replayed.report()}")
    return Turn(calls=_REPLAYED_CALLS, seconds=took, milliseconds=(took * 1000 / _REPLAYED_CALLS,))
