"""`python -m tests.soak`: soak for minutes, check the history, say what was found; exit with 1 on a violation."""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.soak.checker import check, summary
from tests.soak.history import Entry, Executed, Fault, Operation
from tests.soak.stage import Backend, Plan, soak


@click.command()
@click.option("--minutes", type=click.FloatRange(0.1), default=15.0, show_default=True, envvar="SOAK_MINUTES")
@click.option("--database", "backend", type=click.Choice(["postgresql", "sqlite"]), default="postgresql")
@click.option("--replicas", type=click.IntRange(1, 8), default=2, show_default=True)
@click.option("--redis/--no-redis", "with_redis", default=True, show_default=True, help="Let replicas share a Valkey.")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws the same faults again.")
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Where the history goes.")
@click.option("--json", "as_json", is_flag=True, help="Say what was found as JSON.")
def main(
    *, minutes: float, backend: Backend, replicas: int, with_redis: bool, seed: int, folder: Path | None, as_json: bool
) -> None:
    """Let agents, operators and faults loose on the service, and check everything that was said."""
    place = folder or Path(tempfile.mkdtemp(prefix="twiceshy-soak-"))
    place.mkdir(parents=True, exist_ok=True)
    notes = Console(stderr=True)
    plan = Plan(seconds=60 * minutes, backend=backend, replicas=replicas, with_redis=with_redis, seed=seed)
    with Progress(console=notes, transient=True, disable=not notes.is_terminal) as progress:
        task = progress.add_task(f"Soaking for {minutes:g} minutes", total=1.0)
        history = soak(plan, place, lambda part: progress.update(task, completed=part))
    violations = check(history)
    counts = tally(history)
    if as_json:
        found = {"counts": counts, "violations": msgspec.to_builtins(violations), "history": str(place)}
        click.echo(json.dumps(found, indent=2))
    else:
        _show(counts)
        click.echo(summary(violations) or "No violation.")
        click.echo(f"The history is in {place}.")
    sys.exit(bool(violations))


def tally(history: list[Entry]) -> dict[str, int]:
    """Count what happened, by its kind."""
    counts: Counter[str] = Counter()
    for entry in history:
        match entry:
            case Operation(verb=verb, said=said):
                counts[f"{verb}: {said or 'no answer'}"] += 1
            case Executed(tool=tool):
                counts[f"executed: {tool}"] += 1
            case Fault(what=what):
                counts[f"fault: {what}"] += 1
            case _:
                counts["read in the end"] += 1
    return dict(sorted(counts.items()))


def _show(counts: dict[str, int]) -> None:
    table = Table("what", "times")
    for what, times in counts.items():
        table.add_row(what, f"{times:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
