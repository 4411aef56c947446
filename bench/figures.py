"""Figures as the table, the page and the charts show them."""

from typing import Final

from bench.rows import Row

_TIMES: Final = "\N{MULTIPLICATION SIGN}"


def figure(value: float | None) -> str:
    """Write a figure: whole from a hundred on, else with three digits."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(row: Row) -> str:
    """Write the ratio."""
    return "-" if row.ratio is None else f"{figure(row.ratio)}{_TIMES}"


def target(row: Row) -> str:
    """Write the target: a ratio, or where there is no peer a figure."""
    if row.target is None:
        return "none"
    sign = "≥" if row.better == "higher" else "≤"
    return f"{sign} {row.target:g}{_TIMES}" if row.peer is not None else f"{sign} {row.target:g} {row.unit}"


def verdict(row: Row) -> str:
    """Say whether the target is met."""
    return {None: "", True: "met", False: "missed"}[row.met]
