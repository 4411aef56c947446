"""The page of the documents: what was measured, how, on what, and how to do it again."""

from collections.abc import Sequence

from bench.charts import is_timed
from bench.curves import Line
from bench.figures import figure, ratio, target, verdict
from bench.replicas import KEYS as REPLAYED_ONCE
from bench.results import Machine
from bench.rows import Percentiles, Row

_HEAD = """# Benchmarks

<!-- Written by `make bench-charts` from the last `make bench`. Do not edit it by hand. -->

Ours and the peer in turn, on the same machine, under the same load: the medians of {repeats} a side, and their ratio.
Times alone mean nothing, because client, service and database share the cores; the ratio is what to read. A
*guarded call* is begin, an empty tool, commit: two requests, both durable before they are answered.

![Throughput of Twiceshy and of each peer](../assets/bench-throughput.svg)

![How long one call took, Twiceshy and each peer](../assets/bench-latency.svg)

![How long calls took by percentile, from 5 to 99.9 %, of Twiceshy and each peer](../assets/bench-distributions.svg)

## Results

| row | what | against | ours | peer | unit | ratio | target | |
|---|---|---|--:|--:|---|--:|--:|---|
"""

_PERCENTILES = """
Milliseconds of a call, where each is timed. Where callers queue, this is the other face of the throughput; row
`latency` has one caller.

| row | ours p50 | p95 | p99 | p99.9 | peer p50 | p95 | p99 | p99.9 |
|---|--:|--:|--:|--:|--:|--:|--:|--:|
"""

_CONDITIONS = """
## Conditions

Measured {when} on {cores} cores of {processor} ({system}), {python};
the load average before it was {load:g}. Everything shares these cores: the client, the service, its
database, and the peer with its own. Every row starts its servers anew and ends them.

What the sides said of their durability when they were asked:

{facts}

How each row is measured:

- **Through the SDK** (`dbos`, `restate`, `by-hand`, `powertools`, `dbos-sqlite`, `latency`): one `Guard` and one async
  tool in a client process, the service in another, `twiceshy serve` with its defaults. Every caller has a run of its
  own.
- **DBOS**: an async workflow with one step, a workflow id of its own for every call, in a process and an environment
  of its own, with its defaults. On SQLite it opens its file with SQLite's defaults: they sync as fully as ours do
  (`synchronous` 2 is FULL), with a rollback journal where ours keeps a write-ahead log.
- **Restate**: its server from npm with its defaults, a service in Python with one `ctx.run` on hypercorn, an
  idempotency key for every call. In row `restate` a client process calls the ingress with the HTTP client that our SDK
  uses; in row `ingress` one generator loads both.
- **Powertools** for AWS Lambda (Python): `@idempotent_function` over its cache persistence, which claims a key with
  one `SET NX` and keeps the result with another `SET`. Its callers are 32 threads of one process, since it has no async
  form; on Lambda each would be a process. The Valkey syncs every write (`appendonly yes`, `appendfsync always`), as the
  row's other side does; Valkey's own default is `appendonly no`, a snapshot now and then, which a power cut takes back.
  No target is set, for it promises less: a record is gone after an hour (its default) and the call runs again; an
  attempt that outlived its time overwrites the next one's result, as no fencing token tells them apart; what crashed in
  the middle is run again and never *in doubt*; who comes second gets an error and does not wait for the outcome.
- **By hand**: `asyncpg` with its default pool of ten connections. One transaction inserts the key
  `on conflict do nothing`, the tool runs, another keeps the result. No service is between client and database.
- **The service alone** (`ingress`, `noop`, `noop-sqlite`, `replay`): a generator with 32 keep-alive connections sends
  both sides the same bytes. The no-op reads the body and answers a constant, on an ordinary Litestar route of the same
  server software; it has no database. In `replay` every request begins one of {settled} settled keys again.
- **Replicas with Redis** (`replay-redis`, `replay-redis-off`): one replica settles {each_once:,} keys, which is not
  timed; the other, which has seen none of them, begins each once. Asked again it would answer from its own memory, as
  in `replay`. The second row sets Redis against none.
- **One key**: 1,000 connections begin one key at once with `wait_seconds=30`; the tool takes a second. The figure is
  the time from the commit's answer to a waiter's own; who was answered before the commit was counts as 0. Were there a
  second execution, the bench would end there. In `one-key-replicas` half of them wait at another replica.
- **Growth**: two databases of one server, ours with ten million settled effects, filled by its own SQL; one caller
  begins new keys. `make bench ARGS="--only growth --effects 100000"` is a quick look, and writes its own count into the
  row. `python -m bench.growth` measures besides what 5,000,000 updates leave behind, and memory.
- **Recording** (`record`, `conversation`, `replay-events`): one guard against the service on SQLite. `record` is the
  median time in the caller while a thread of its process sends; `conversation` sets the plain JSON of 100 calls that
  re-send their context against the growth of the database's file; `replay-events` replays a recorded run.
- **Outbox** (`outbox-…`): a queue of 20,000 messages of 300 bytes is filled, which is not timed, and drained by one
  process; a turn ends when the database says that the queue is empty. Ours is the relay as it is shipped: it looks at
  the effect of each message, settles into the history and signs webhooks. faststream-outbox runs 16 workers with
  batches of 500, pgqueuer batches of 100: their fastest settings. `outbox-webhooks` has 64 requests in flight on both
  sides, to one receiver. In `outbox-poisoned` both sides have 500 lanes; ours has one of 50,000 beside them.

## Do it again

    make bench                            # all rows but growth, about ten minutes; installs the peers first
    make bench ARGS="--only replay"       # one row; --repeats and --seconds say how often and how long
    make bench ARGS="--only growth"       # ten million effects: several minutes to fill
    make bench ARGS="--only curves"       # over clients and replicas, a minute and a half at most
    make bench-charts                     # write this page and its charts from the last results
    make bench-publish                    # growth and the curves too, then both: a good quarter of an hour

It needs what `make test` needs, and for Restate Node.js with npm. Rows are in `bench/results/latest.json`, the curves
in `curves.json` beside it; the exit code is 1 where a target is missed.
"""


_CURVES = """
## Over clients and replicas

![Guarded calls a second over 1 to 256 clients, for one replica and two, and for the peers](../assets/bench-curves.svg)

One turn of a second for each point; p50 in milliseconds in brackets. Replicas and Restate are under the one generator,
*by the SDK* is one replica with the SDK's callers in one process, and DBOS is called in its own process. Two replicas
share the {cores} cores with their clients and one database: that shows what being two costs, not what two machines do.

| clients | {names} |
|--:|{bars}|
"""


def page(rows: Sequence[Row], lines: Sequence[Line], machine: Machine, settled_keys: int) -> str:
    """Return the page."""
    repeats = " or ".join(sorted({f"{row.repeats} turn{'s' * (row.repeats != 1)}" for row in rows}))
    days = sorted({row.measured_at[:10] for row in rows})
    text = _HEAD.format(repeats=repeats)
    text += "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)
    text += _PERCENTILES
    timed = [row for row in rows if is_timed(row)]
    text += "".join(f"| `{row.name}` | {_four(row.latency.ours)} | {_four(row.latency.peer)} |\n" for row in timed)
    text += _missed(rows)
    text += _over_clients(lines, machine.cores) if lines else ""
    return text + _CONDITIONS.format(
        when=" and ".join(dict.fromkeys((days[0], days[-1]))) if days else "never",
        cores=machine.cores,
        processor=machine.processor,
        system=machine.system,
        python=machine.python,
        load=machine.load,
        facts="\n".join(f"- {fact}" for fact in sorted({fact for row in rows for fact in row.facts})),
        settled=settled_keys,
        each_once=REPLAYED_ONCE,
    )


def _over_clients(lines: Sequence[Line], cores: int) -> str:
    bars = "--:|" * (len(lines) - 1) + "--:"
    text = _CURVES.format(names=" | ".join(line.name for line in lines), bars=bars, cores=cores)
    for place, count in enumerate(lines[0].clients):
        cells = (f"{figure(line.per_second[place])} ({figure(line.p50[place])})" for line in lines)
        text += f"| {count} | {' | '.join(cells)} |\n"
    return text


def _cells(row: Row) -> tuple[str, ...]:
    peer = row.peer_name or "-"
    return (
        f"`{row.name}`",
        row.what,
        peer,
        figure(row.ours),
        figure(row.peer),
        row.unit,
        ratio(row),
        target(row),
        verdict(row),
    )


def _four(found: Percentiles | None) -> str:
    if found is None:
        return "- | - | - | -"
    return " | ".join(figure(value) for value in (found.p50, found.p95, found.p99, found.p99_9))


def _missed(rows: Sequence[Row]) -> str:
    """Name what was missed on this machine, in words; nothing where all is met."""
    missed = [row for row in rows if row.met is False]
    lines = (f"- `{row.name}` reached {_reached(row)}, the target is {target(row)}.\n" for row in missed)
    return "\nMissed in this run:\n\n" + "".join(lines) if missed else ""


def _reached(row: Row) -> str:
    return f"{figure(row.ours)} {row.unit}" if row.ratio is None else ratio(row)
