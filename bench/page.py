"""The page of the documents: what was measured, how, on what, and how to do it again."""

from collections.abc import Sequence

from bench.curves import Line
from bench.figures import figure, ratio, target, verdict
from bench.results import Machine
from bench.rows import Percentiles, Row

_HEAD = """# Benchmarks

<!-- Written by `make bench-charts` from the last `make bench`. Do not edit it by hand. -->

Ours and the peer in turn, on the same machine, under the same load: the medians of {repeats} a side, and their ratio.
Times alone mean nothing, because client, service and database share the cores; the ratio is what to read. A
*guarded call* is begin, an empty tool, commit: two requests, both durable before they are answered.

![Throughput of Twiceshy and of each peer](../assets/bench-throughput.svg)

![How long one call took, Twiceshy and each peer](../assets/bench-latency.svg)

## Results

| row | what | against | ours | peer | unit | ratio | target | |
|---|---|---|--:|--:|---|--:|--:|---|
"""

_PERCENTILES = """
Milliseconds of a call. Where callers queue, this is the other face of the throughput; row `latency` has one caller.

| row | ours p50 | p95 | p99 | peer p50 | p95 | p99 |
|---|--:|--:|--:|--:|--:|--:|
"""

_CONDITIONS = """
## Conditions

Measured {when} on {cores} cores of {processor} ({system}), {python};
the load average before it was {load:g}. Everything shares these cores: the client, the service, its
database, and the peer with its own. Every row starts its servers anew and ends them.

What the sides said of their durability when they were asked:

{facts}

How each row is measured:

- **Through the SDK** (`dbos`, `restate`, `by-hand`, `dbos-sqlite`, `latency`): one `Guard` and one async tool in a
  client process, the service in another, `twiceshy serve` with its defaults. Every caller has a run of its own.
- **DBOS**: an async workflow with one step, a workflow id of its own for every call, in a process and an environment
  of its own, with its defaults. On SQLite it opens its file with SQLite's defaults: they sync as fully as ours do
  (`synchronous` 2 is FULL), with a rollback journal where ours keeps a write-ahead log.
- **Restate**: its server from npm with its defaults, a service in Python with one `ctx.run` on hypercorn, an
  idempotency key for every call. In row `restate` a client process calls the ingress with the HTTP client that our SDK
  uses; in row `ingress` one generator loads both.
- **Powertools** for AWS Lambda: `@idempotent_function` on its cache persistence, callers are threads of one process,
  the record in a Valkey with `appendfsync always` (its default syncs once a second). It has no target: it keeps a key
  for a time, without fencing, doubt, or a record that outlives it.
- **By hand**: `asyncpg` with its default pool of ten connections. One transaction inserts the key
  `on conflict do nothing`, the tool runs, another keeps the result. No service is between client and database.
- **The service alone** (`ingress`, `noop`, `noop-sqlite`, `replay`): a generator with 32 keep-alive connections sends
  both sides the same bytes. The no-op reads the body and answers a constant, on an ordinary Litestar route of the same
  server software; it has no database. In `replay` every request begins one of {settled} settled keys again.
- **One key**: 1,000 connections begin one key at once with `wait_seconds=30`; the tool takes a second. The figure is
  the time from the commit's answer to a waiter's own. Were there a second execution, the bench would end there.
- **Growth**: two databases of one server, ours with ten million settled effects, filled by its own SQL; one caller
  begins new keys. `python -m bench.growth` measures besides what 5,000,000 updates leave behind, and memory.
- **Recording** (`record`, `conversation`, `replay-events`): one guard against the service on SQLite. `record` is the
  median time in the caller while a thread of its process sends; `conversation` sets the plain JSON of 100 calls that
  re-send their context against the growth of the database's file; `replay-events` replays a recorded run.
- **Outbox** (`outbox-…`): a queue of 20,000 messages of 300 bytes is filled, which is not timed, and drained by one
  process; a turn ends when the database says that the queue is empty. Ours is the relay as it is shipped: it looks at
  the effect of each message, settles into the history and signs webhooks. faststream-outbox runs 16 workers with
  batches of 500, pgqueuer batches of 100: their fastest settings. `outbox-webhooks` has 64 requests in flight on both
  sides, to one receiver. In `outbox-poisoned` both sides have 500 lanes; ours has one of 50,000 beside them.

## Do it again

    make bench                            # all rows but growth, about nine minutes; installs the peers first
    make bench ARGS="--only replay"       # one row; --repeats and --seconds say how often and how long
    make bench-charts                     # write this page and its charts from the last results
    make bench-publish                    # growth and the curves too, then both: about fifteen minutes

It needs what `make test` needs, and for Restate Node.js with npm. Results are in `bench/results/latest.json`; the exit
code is 1 where a target is missed.
"""


_CURVES = """
## Over clients and replicas

![Guarded calls a second over 1 to 256 clients, for one replica and two, and for the peers](../assets/bench-curves.svg)

One turn of a second for each point; p50 in milliseconds in brackets. Two replicas share the two cores with their
clients and one database, so they show that nothing is lost by being two, not what two machines would do.

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
    text += "".join(f"| `{row.name}` | {_three(row.latency.ours)} | {_three(row.latency.peer)} |\n" for row in rows)
    text += _over_clients(lines) if lines else ""
    return text + _CONDITIONS.format(
        when=" and ".join(dict.fromkeys((days[0], days[-1]))) if days else "never",
        cores=machine.cores,
        processor=machine.processor,
        system=machine.system,
        python=machine.python,
        load=machine.load,
        facts="\n".join(f"- {fact}" for fact in sorted({fact for row in rows for fact in row.facts})),
        settled=settled_keys,
    )


def _over_clients(lines: Sequence[Line]) -> str:
    text = _CURVES.format(names=" | ".join(line.name for line in lines), bars="--:|" * (len(lines) - 1) + "--:")
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


def _three(found: Percentiles | None) -> str:
    if found is None:
        return "- | - | -"
    return f"{figure(found.p50)} | {figure(found.p95)} | {figure(found.p99)}"
