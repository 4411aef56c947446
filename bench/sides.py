"""The two sides of each comparison, started for it alone and ended with it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Literal, TypeAlias

import msgspec

from bench import load
from bench.peers.install import RESTATE_SERVER, Say, dbos_python, powertools_python
from bench.processes import CallerProcess, caller_process
from bench.restate import CALL_PATH, restate
from bench.servers import POSTGRES_MUST, VALKEY_MUST, durability, durable, noop, postgres, service, sqlite, valkey
from bench.stampede import Stampede
from bench.turns import Turn

Database: TypeAlias = Literal["PostgreSQL", "SQLite"]
TakeTurn: TypeAlias = Callable[[float], Turn]
"""Loads one side for some seconds."""

CALLERS: Final = 32
_DBOS_DATABASE: Final = "dbos"
_SQLITE_SYNCS: Final = {"synchronous": "2"}
_POSTGRES_SYNCS: Final = {name: POSTGRES_MUST[name] for name in ("fsync", "synchronous_commit")}
_RESTATE: Final = f"Restate {RESTATE_SERVER.rpartition('@')[2]}"


class Sides(msgspec.Struct, frozen=True, kw_only=True):
    """Both sides, ready; `facts` is what they say of their durability."""

    ours: TakeTurn
    peer: TakeTurn | None = None
    facts: tuple[str, ...]


@contextmanager
def sdk_against_dbos(database: Database, callers: int, say: Say) -> Iterator[Sides]:
    """Compare calls through the SDK with DBOS on the same database server, or on a SQLite file of its own."""
    with ExitStack() as stack:
        python = dbos_python(say)
        url = stack.enter_context(_database(database))
        ours = sdk_callers(stack, url)
        its_url = _beside(url)
        peer = stack.enter_context(caller_process("DBOS", python, "bench.peers.dbos_calls", its_url))
        must = _SQLITE_SYNCS if database == "SQLite" else _POSTGRES_SYNCS
        yield Sides(
            ours=lambda seconds: ours.turn(callers, seconds),
            peer=lambda seconds: peer.turn(callers, seconds),
            facts=(durability(url), durable("DBOS's connections", peer.facts, must)),
        )


@contextmanager
def sdk_against_restate(say: Say) -> Iterator[Sides]:
    """Compare calls through the SDK with calls of Restate's ingress by the SDK's HTTP client."""
    with ExitStack() as stack:
        theirs = stack.enter_context(restate(say))
        url = stack.enter_context(postgres())
        ours = sdk_callers(stack, url)
        address = f"http://127.0.0.1:{theirs.port}{CALL_PATH}"
        peer = stack.enter_context(caller_process("Restate's client", sys.executable, "bench.clients.ingress", address))
        yield Sides(
            ours=lambda seconds: ours.turn(CALLERS, seconds),
            peer=lambda seconds: peer.turn(CALLERS, seconds),
            facts=(durability(url), durable(_RESTATE, theirs.facts, {})),
        )


@contextmanager
def sdk_against_by_hand(_: Say) -> Iterator[Sides]:
    """Compare calls through the SDK with a hand-written pair of transactions in the same database."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres())
        ours = sdk_callers(stack, url)
        peer = stack.enter_context(caller_process("the pair by hand", sys.executable, "bench.clients.by_hand", url))
        yield Sides(
            ours=lambda seconds: ours.turn(CALLERS, seconds),
            peer=lambda seconds: peer.turn(CALLERS, seconds),
            facts=(durability(url), durable("the pair's connections", peer.facts, _POSTGRES_SYNCS)),
        )


@contextmanager
def sdk_against_powertools(say: Say) -> Iterator[Sides]:
    """Compare calls through the SDK with idempotent functions of Powertools, whose record is in a Valkey that syncs."""
    with ExitStack() as stack:
        python = powertools_python(say)
        url = stack.enter_context(postgres())
        ours = sdk_callers(stack, url)
        port = str(stack.enter_context(valkey()))
        module = "bench.peers.powertools_calls"
        peer = stack.enter_context(caller_process("Powertools", python, module, "127.0.0.1", port))
        yield Sides(
            ours=lambda seconds: ours.turn(CALLERS, seconds),
            peer=lambda seconds: peer.turn(CALLERS, seconds),
            facts=(durability(url), durable("Powertools' Valkey", peer.facts, VALKEY_MUST)),
        )


@contextmanager
def service_against_restate(say: Say) -> Iterator[Sides]:
    """Compare the service alone with Restate's ingress, both under the generator."""
    with restate(say) as theirs, postgres() as url, service(url) as ours:
        yield Sides(
            ours=load.Generator(load.guarded(ours)).turn,
            peer=load.Generator(load.posted(theirs.port, CALL_PATH)).turn,
            facts=(durability(url), durable(_RESTATE, theirs.facts, {})),
        )


@contextmanager
def service_against_noop(database: Database, _: Say) -> Iterator[Sides]:
    """Compare the service alone with the no-op, both under the generator."""
    with _database(database) as url, service(url) as ours, noop() as peer:
        yield Sides(
            ours=load.Generator(load.guarded(ours)).turn,
            peer=load.Generator(load.guarded(peer)).turn,
            facts=(durability(url),),
        )


@contextmanager
def replay_against_noop(_: Say) -> Iterator[Sides]:
    """Compare begins of settled keys with the no-op, one request a call."""
    with postgres() as url, service(url) as ours, noop() as peer:
        yield Sides(
            ours=load.Generator(load.repeated(ours, "replay")).turn,
            peer=load.Generator(load.repeated(peer, "execute")).turn,
            facts=(durability(url),),
        )


@contextmanager
def stampede(_: Say) -> Iterator[Sides]:
    """Send a thousand begins of one key at once; no peer does that."""
    with postgres() as url, service(url) as ours:
        yield Sides(ours=Stampede(ours).turn, facts=(durability(url),))


def sdk_callers(stack: ExitStack, url: str) -> CallerProcess:
    """Start the service and, in another process, callers through the SDK."""
    side = stack.enter_context(service(url))
    address = f"http://127.0.0.1:{side.port}"
    return stack.enter_context(caller_process("the SDK's callers", sys.executable, "bench.clients.guarded", address))


@contextmanager
def _database(name: Database) -> Iterator[str]:
    """Start one of the databases, empty and durable; give its address."""
    with postgres() if name == "PostgreSQL" else sqlite() as url:
        yield url


def _beside(url: str) -> str:
    """Return the address of another database of the same server, or of another file in the same folder."""
    place, _, _ = url.rpartition("/")
    return f"{place}/{_DBOS_DATABASE}" + (".db" if url.startswith("sqlite") else "")
