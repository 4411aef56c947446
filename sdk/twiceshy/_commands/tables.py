"""How effects look on a terminal."""

import json

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from twiceshy_contract.effects import (
    AttemptView,
    EffectPage,
    EffectSummary,
    EffectView,
    EvidenceView,
    Outcome,
)

_WIDEST = 4000
_COLOURS = {"succeeded": "green", "failed": "red", "in_doubt": "bold yellow", "executing": "cyan", "pending": "dim"}


def print_page(page: EffectPage) -> None:
    """Print a listing, keys whole so that they can be copied."""
    if not page.items:
        Console().print("No effects.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("key", "state", "tool", "run", "step", "began"):
        table.add_column(heading, no_wrap=heading in ("key", "state", "began"))
    for effect in page.items:
        table.add_row(
            effect.key, _state(effect), Text(effect.tool), Text(effect.run or "-"),
            "-" if effect.step is None else str(effect.step), effect.began_at[:19],
        )  # fmt: skip
    _print_whole(table)
    if page.next is not None:
        Console().print("There are more: use --limit, --state, --tool or --run.")


def print_effect(effect: EffectView) -> None:
    """Print everything about one effect."""
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in _facts(effect):
        facts.add_row(name, value if isinstance(value, Text) else Text(value))
    _print_whole(facts, _attempts(effect.attempts))
    if effect.evidence:
        _print_whole(_evidence(effect.evidence))


def _facts(effect: EffectView) -> list[tuple[str, str | Text]]:
    given: list[tuple[str, object]] = [
        ("run", effect.run),
        ("step", effect.step),
        ("caller's step", effect.caller_step),
        ("business key", effect.business_key),
        ("occurrence", effect.occurrence if effect.occurrence > 1 else None),
        ("worker", effect.worker),
        ("began", effect.began_at),
        ("ended", effect.ended_at),
        ("lease until", effect.lease_expires_at),
        ("not before", effect.retry_at),
        ("as of", effect.as_of),
        ("ask the provider after", effect.settles_at),
        ("downstream key", effect.downstream_key),
        ("resolution", effect.resolution),
    ]
    return [
        ("key", effect.key),
        ("state", _state(effect)),
        ("tool", f"{effect.tool} (version {effect.tool_version}, fence {effect.fence})"),
        *((name, str(value)) for name, value in given if value is not None),
        ("arguments", json.dumps(effect.arguments, ensure_ascii=False)),
        *_outcome(effect.outcome),
    ]


def _outcome(outcome: Outcome | None) -> list[tuple[str, str | Text]]:
    if outcome is None:
        return []
    if outcome.failure is not None:
        return [("error", f"{outcome.failure.type}: {outcome.failure.message}")]
    return [("result", json.dumps(outcome.result, ensure_ascii=False))]


def _attempts(attempts: tuple[AttemptView, ...]) -> Table:
    table = Table(title="Attempts", title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in ("fence", "granted", "deadline", "report", "reported", "settled"):
        table.add_column(heading, no_wrap=True)
    for attempt in attempts:
        table.add_row(
            str(attempt.fence), attempt.granted_at[:19], attempt.deadline[:19], attempt.report,
            (attempt.reported_at or "-")[:19], "yes" if attempt.settled else "no",
        )  # fmt: skip
    return table


def _evidence(evidence: tuple[EvidenceView, ...]) -> Table:
    table = Table(title="Contradicting proof", title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in ("at", "attempt", "kind", "body"):
        table.add_column(heading)
    for piece in evidence:
        body = Text(json.dumps(piece.body, ensure_ascii=False))
        table.add_row(piece.at[:19], str(piece.attempt or "-"), Text(piece.kind), body)
    return table


def _state(effect: EffectSummary) -> Text:
    closed = " (closed)" if effect.closed else ""
    return Text(f"{effect.state}{closed}", style=_COLOURS.get(effect.state, ""))


def _print_whole(*tables: Table) -> None:
    """Print tables as wide as they are, so that keys stay whole; a terminal wraps the lines itself."""
    console = Console()
    for table in tables:
        width = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
        Console(width=max(console.width, width)).print(table)
