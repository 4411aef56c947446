"""The table that the bench prints."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from bench.figures import figure, ratio, target, verdict
from bench.rows import Row


def print_table(console: Console, rows: Sequence[Row]) -> None:
    """Print medians, ratios, how far the repeats were apart, and the percentiles of both sides."""
    table = Table(box=box.HORIZONTALS)
    table.add_column("what against whom")
    for heading in ("ours\npeer", "p50\nms", "p99\nms", "spread", "ratio", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            f"[bold]{row.name}[/]: {row.what} ({row.unit})\n  {row.peer_name or 'no peer'}",
            f"{figure(row.ours)}\n{figure(row.peer)}",
            f"{figure(row.latency.ours.p50)}\n{figure(row.latency.peer.p50 if row.latency.peer else None)}",
            f"{figure(row.latency.ours.p99)}\n{figure(row.latency.peer.p99 if row.latency.peer else None)}",
            f"{row.spread_ours:.0%}\n{'-' if row.spread_peer is None else f'{row.spread_peer:.0%}'}",
            ratio(row),
            f"{target(row)}\n{verdict(row)}",
        )
    console.print(table)
