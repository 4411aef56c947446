"""Growth: what a begin, the tables and a process are like after very many effects.

`python -m bench.growth` measures all of it; the row `growth` of the bench is its first part.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import linear_regression, median
from typing import Final
from uuid import uuid4

import asyncpg
import click
import msgspec
from rich.console import Console
from rich.progress import Progress

from bench import load
from bench.connection import Connection
from bench.peers.install import Say
from bench.rows import percentiles
from bench.servers import durability, postgres, service
from bench.sides import Sides
from bench.turns import Turn
from guard.store.sql.schema import migrate
from tests.service import ServiceProcess

FEW: Final = 10_000
MANY: Final = 10_000_000
COUNT_VARIABLE: Final = "GROWTH_EFFECTS"
"""The variable that names another number than ten million for the row of the bench."""
_IN_A_RUN: Final = 100
_RUNS_AT_ONCE: Final = 2_000
_UPDATES_AT_ONCE: Final = 10_000
Tell = Callable[[float], None]

_FILL: Final = """
    WITH made AS (
      INSERT INTO runs (id, tenant, name, state, effects, started_at)
      SELECT uuidv7(make_interval(secs => n - $2)), 1, 'filled-' || n, 1, $3, 0 FROM generate_series($1::int, $2::int) n
      RETURNING id, name)
    INSERT INTO effects (
      key, version, tenant, run_id, run, step, tool, tool_version, rule, occurrence, generation, identity_digest,
      arguments_digest, arguments, began_at, state, fence, attempt, granted_at, lease_expires_at, report, reported_at,
      settled, tries, epoch, epoch_since, closed, ended_at, outcome, delivered, earlier)
    SELECT substring(uuid_send(m.id) for 6) || substring(d.digest for 26), 2, 1, m.id, m.name, s, 'pay', 0, 1, 1, 1,
           d.digest, d.digest, convert_to('{"to":"ann","amount":' || s || '}', 'UTF8'), 0, 3, 1, gen_random_uuid(), 0,
           1, 1, 1, false, 1, 0, 0, false, 1, convert_to('{"result":"receipt"}', 'UTF8'), false, 0
      FROM made m CROSS JOIN generate_series(1, $3::int) s
           CROSS JOIN LATERAL (SELECT sha256(uuid_send(m.id) || int4send(s)) AS digest) d"""
_FIRST_AND_LAST: Final = """
    SELECT (SELECT key FROM effects ORDER BY key LIMIT 1),
           (SELECT key FROM effects ORDER BY key DESC OFFSET $1 LIMIT 1)"""
"""The first key, and the last from which on there are enough to update."""
_UPDATE: Final = """
    UPDATE effects SET version = version + 1, reported_at = reported_at + 1
     WHERE key IN (SELECT key FROM effects WHERE key >= $1 ORDER BY key LIMIT $2)"""
_SIZES: Final = """
    SELECT pg_relation_size('effects') AS heap, pg_indexes_size('effects') AS indexes,
           (SELECT n_live_tup FROM pg_stat_user_tables WHERE relname = 'effects') AS live,
           (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'effects') AS dead,
           (SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'effects') AS updated,
           (SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'effects') AS hot"""


async def fill(url: str, count: int, tell: Tell = lambda _part: None) -> None:
    """Add so many settled effects, a hundred a run, with the statements of a few large transactions."""
    connection = await asyncpg.connect(url)
    try:
        runs = count // _IN_A_RUN
        for first in range(1, runs + 1, _RUNS_AT_ONCE):
            await connection.execute(_FILL, first, min(first + _RUNS_AT_ONCE - 1, runs), _IN_A_RUN, timeout=600)
            tell(first / runs)
        await connection.execute("SELECT pg_stat_force_next_flush()")  # else told after the vacuum, and counted twice
        await connection.execute("VACUUM (ANALYZE) effects", timeout=1200)
        await connection.execute("VACUUM (ANALYZE) runs", timeout=1200)
    finally:
        await connection.close()


@contextmanager
def grown(count: int | None, say: Say) -> Iterator[Sides]:
    """Compare begins where very many effects are stored with begins where there are ten thousand."""
    number = count or int(os.environ.get(COUNT_VARIABLE, MANY))
    with postgres() as url:
        other = f"{url.rpartition('/')[0]}/grown"
        asyncio.run(_create(url, "grown"))
        asyncio.run(migrate(other))
        say(f"growth: filling {number:,} effects")
        asyncio.run(fill(url, FEW))
        asyncio.run(fill(other, number))
        with service(url) as few, service(other) as many:
            yield Sides(
                ours=_turns(load.Side(port=many.port, begin=many.begin, commit=many.commit)),
                peer=_turns(load.Side(port=few.port, begin=few.begin, commit=few.commit)),
                facts=(durability(other), f"{number:,} effects are stored"),
            )


def _turns(side: load.Side) -> Callable[[float], Turn]:
    """Return turns of one caller that begins new keys, one after the other."""
    name = uuid4().hex[:12]

    async def call(connection: Connection, number: int) -> None:
        await load.begin(connection, side, f"grown-{name}-{number // _IN_A_RUN}", number, "execute")

    generator = load.Generator(load.over_connections(side.port, lambda connection, _: partial(call, connection)), 1)
    return generator.turn


async def _create(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()


class Bloat(msgspec.Struct, frozen=True, kw_only=True):
    """What updates left behind: bytes for each live row before and after, and how many updates stayed in their page."""

    updates: int
    bytes_before: float
    bytes_after: float
    hot: float
    dead: int


async def bloat(url: str, updates: int, tell: Tell = lambda _part: None) -> Bloat:
    """Update effects, all over the table, with autovacuum at work beside."""
    connection = await asyncpg.connect(url)
    try:
        before = await connection.fetchrow(_SIZES)
        for done in range(0, updates, _UPDATES_AT_ONCE):
            count = min(_UPDATES_AT_ONCE, updates - done)
            low, high = await connection.fetchrow(_FIRST_AND_LAST, count - 1)
            start = int.from_bytes(low[:6], "big")
            place = start + int.from_bytes(os.urandom(6), "big") % max(int.from_bytes(high[:6], "big") - start, 1)
            await connection.execute(_UPDATE, place.to_bytes(6, "big"), count, timeout=600)
            tell(done / updates)
        await connection.execute("SELECT pg_stat_force_next_flush()")
        after = await connection.fetchrow(_SIZES)
    finally:
        await connection.close()
    updated = after["updated"] - before["updated"]
    return Bloat(
        updates=updated,
        bytes_before=round((before["heap"] + before["indexes"]) / max(before["live"], 1), 1),
        bytes_after=round((after["heap"] + after["indexes"]) / max(after["live"], 1), 1),
        hot=round((after["hot"] - before["hot"]) / max(updated, 1), 4),
        dead=after["dead"],
    )


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The resident memory of a service under load, in MiB, and how it grows, in KiB a minute."""

    minutes: float
    first: float
    last: float
    slope: float


def memory(url: str, minutes: float, tell: Tell = lambda _part: None) -> Memory:
    """Load a service for some minutes, and look at its memory each second. The first half of the time warms it up."""
    with ServiceProcess(url, options=("--log", "problems")) as process:
        side = load.Side(port=process.port, begin="/v1/effects", commit="/v1/effects/{key}/commit")
        generator = load.Generator(load.guarded(side))
        samples: list[tuple[float, float]] = []
        started = time.monotonic()
        while (gone := time.monotonic() - started) < 60 * minutes:
            generator.turn(1.0)
            samples.append((gone / 60, _resident(process.pid)))
            tell(gone / 60 / minutes)
    warm = samples[len(samples) // 2 :]
    slope = linear_regression([at for at, _ in warm], [held for _, held in warm]).slope
    return Memory(
        minutes=minutes, first=round(warm[0][1] / 1024, 1), last=round(warm[-1][1] / 1024, 1), slope=round(slope, 1)
    )


def _resident(pid: int) -> int:
    """Return the resident memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@click.command()
@click.option("--effects", type=click.IntRange(FEW), default=MANY, show_default=True, help="Stored effects.")
@click.option("--updates", type=click.IntRange(1), default=5_000_000, show_default=True, help="Updates of effects.")
@click.option("--minutes", type=click.FloatRange(0.1), default=15.0, show_default=True, help="Load on one service.")
@click.option("--json", "as_json", is_flag=True, help="Write the figures as JSON.")
def main(*, effects: int, updates: int, minutes: float, as_json: bool) -> None:
    """Measure begins, tables and memory after very many effects."""
    notes = Console(stderr=True)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:

        def part(what: str) -> Tell:
            task = progress.add_task(what, total=1.0)
            return lambda gone: progress.update(task, completed=gone)

        with grown(effects, lambda what: progress.console.print(what, highlight=False)) as sides:
            turns = [(sides.ours(3.0), (sides.peer or sides.ours)(3.0)) for _ in range(3)]
        many, few = (median(percentiles(pair[at].milliseconds).p50 for pair in turns) for at in (0, 1))
        with postgres() as url:
            asyncio.run(fill(url, min(effects, 1_000_000), part("Filling")))
            swollen = asyncio.run(bloat(url, updates, part(f"{updates:,} updates")))
            held = memory(url, minutes, part(f"{minutes:g} minutes of load"))
    figures = {
        "effects": effects,
        "p50_ms": round(many, 3),
        "p50_ms_of_few": round(few, 3),
        "ratio": round(many / few, 3),
        "bloat": msgspec.to_builtins(swollen),
        "memory": msgspec.to_builtins(held),
    }
    if as_json:
        click.echo(json.dumps(figures, indent=2))
    else:
        click.echo(
            f"p50 of a begin: {many:.3f} ms with {effects:,} effects, {few:.3f} ms with {FEW:,}: {many / few:.2f}x"
        )
        click.echo(
            f"Bytes a row: {swollen.bytes_before} before, {swollen.bytes_after} after {swollen.updates:,} updates;"
        )
        click.echo(f"    {swollen.hot:.1%} stayed in their page, {swollen.dead:,} are dead still.")
        click.echo(
            f"Memory: {held.first} MiB, {held.last} MiB after {held.minutes:g} minutes; {held.slope:+.0f} KiB a minute."
        )
    sys.exit(many / few > 1.3)


if __name__ == "__main__":
    main()
