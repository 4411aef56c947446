"""The table that the bench prints."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from bench.rows import Measured, spread


def print_table(console: Console, measured: Sequence[Measured]) -> None:
    """Print medians, ratios and how far the repeats were apart."""
    table = Table(box=box.HORIZONTALS)
    table.add_column("what")
    for heading in ("ours", "peer", "ratio", "spread\nours / peer", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        row = one.row
        table.add_row(
            f"{row.name}\n({row.unit}, median of {len(one.ours)})",
            f"{row.ours:,.0f}",
            f"{row.peer:,.0f}",
            f"{row.ratio:.1%}",
            f"{spread(one.ours):.0%} / {spread(one.peer):.0%}",
            "none yet" if row.target is None else f"{row.target:.0%} {'met' if row.met else 'MISSED'}",
        )
    console.print(table)
