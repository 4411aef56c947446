"""`twiceshy runs diff`: two runs side by side, the first difference first.

Exit codes: 0 the same, 1 different (or not to be read), 2 wrongly used.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
import msgspec
from rich.console import Console
from rich.text import Text

from twiceshy._commands.cards import print_text
from twiceshy._commands.recorded_runs import Where, place_of, recorded
from twiceshy._commands.service import of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._differences import Difference
from twiceshy._in_brief import cut, printable, side_by_side
from twiceshy._recorded_calls import Call
from twiceshy._recording import Recording
from twiceshy._run_diff import Pair, Verdict, run_diff
from twiceshy._timeline import card_of

DIFFERENT: Final = 1
_AROUND: Final = 2
"""How many equal calls are shown before and behind what differs."""
_NARROW: Final = 80
_SIGNS: Final[dict[Verdict, tuple[str, str]]] = {
    "equal": (" ", "dim"),
    "changed": ("~", "yellow"),
    "only_left": ("-", "red"),
    "only_right": ("+", "green"),
}


@click.command()
@click.argument("left", metavar="RUN|FILE", callback=place_of)
@click.argument("right", metavar="RUN|FILE", callback=place_of)
@click.option("--exact", is_flag=True, help="Compare also what clocks and chance gave, which differs in any two runs.")
@click.option("--all", "everything", is_flag=True, help="Show all calls that are equal too.")
@with_json
@of_service
def diff(*, left: Where, right: Where, exact: bool, everything: bool, as_json: bool, **of: Any) -> None:
    """Compare two runs call by call; each is a run of the service, or a file of a recording.

    Calls are aligned by what they are, so that one call more makes nothing else look different. On a terminal the two
    stand in columns. Exit code 0: they are the same; 1: they are not.

    \b
    twiceshy runs diff order-1042 order-1042-why
    twiceshy runs diff before.jsonl after.jsonl --json
    twiceshy runs diff week.jsonl.zst::order-1 week.jsonl.zst::order-2
    """  # noqa: D301 - click reads the control character
    with recorded(left, of["url"], of["token"]) as one, recorded(right, of["url"], of["token"]) as other:
        pairs = list(run_diff(one, other, exact=exact))
        is_same = all(pair.verdict == "equal" for pair in pairs)
        if as_json:
            print_json(msgspec.json.encode(_summary(one, other, pairs)))
        else:
            _print(one, other, pairs, everything=everything)
    click.get_current_context().exit(0 if is_same else DIFFERENT)


def _summary(left: Recording, right: Recording, pairs: Sequence[Pair]) -> dict[str, object]:
    """Return the comparison as JSON: what is equal is counted, what is not is told, first difference first."""
    counts = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in _SIGNS}
    told = [_told(pair) for pair in pairs if pair.verdict != "equal"]
    return {
        "left": left.run,
        "right": right.run,
        "is_same": not told,
        "counts": counts,
        "differences": told,
    }


def _told(pair: Pair) -> dict[str, object]:
    return {
        "verdict": pair.verdict,
        "left": _call(pair.left),
        "right": _call(pair.right),
        "arguments": pair.arguments,
        "outcome": pair.outcome,
        "moved": pair.moved,
    }


def _call(call: Call | None) -> object:
    if call is None:
        return None
    intent = call.intent
    named = {"seq": intent.seq, "kind": intent.kind, "name": intent.name, "scope": intent.scope}
    return {**named, "sentence": card_of(call).sentence}


def _print(left: Recording, right: Recording, pairs: Sequence[Pair], *, everything: bool) -> None:
    counted = {verdict: sum(pair.verdict == verdict for pair in pairs) for verdict in _SIGNS}
    if counted["equal"] == len(pairs):
        print_line(f"{left.run} and {right.run} are the same: {len(pairs)} calls, with the same outcomes.")
        if not everything:
            return
    else:
        words: tuple[tuple[Verdict, str], ...] = (
            ("changed", "changed"),
            ("only_left", f"only in {left.run}"),
            ("only_right", f"only in {right.run}"),
            ("equal", "equal"),
        )
        said = ", ".join(f"{counted[verdict]} {word}" for verdict, word in words if counted[verdict])
        print_line(f"{left.run} and {right.run} differ: {said}.")
        first = next(pair for pair in pairs if pair.verdict != "equal")
        print_line(f"They part at {_place(first)}.")
    print_line("")
    rows = _rows(pairs, everything=everything)
    console = Console()
    if console.is_terminal and console.width >= _NARROW:
        _print_columns(left, right, rows, console.width)
    else:
        _print_lines(rows)


def _place(pair: Pair) -> str:
    places = [str(call.intent.seq) for call in (pair.left, pair.right) if call is not None]
    return " / ".join(dict.fromkeys(places))


def _rows(pairs: Sequence[Pair], *, everything: bool) -> Iterator[Pair | int]:
    """Leave equal calls out that are far from what differs; a number says how many."""
    near = set(range(len(pairs))) if everything else _near(pairs)
    hidden = 0
    for at, pair in enumerate(pairs):
        if at in near:
            if hidden:
                yield hidden
            hidden = 0
            yield pair
        else:
            hidden += 1
    if hidden:
        yield hidden


def _near(pairs: Sequence[Pair]) -> set[int]:
    unlike = (at for at, pair in enumerate(pairs) if pair.verdict != "equal")
    return {near for at in unlike for near in range(at - _AROUND, at + _AROUND + 1)}


def _print_lines(rows: Iterable[Pair | int]) -> None:
    """Print one call a line; what a changed call was and is stand below each other."""
    for row in rows:
        if isinstance(row, int):
            print_line(f"  … {_equal_calls(row)}")
            continue
        sign, style = _SIGNS[row.verdict]
        if row.left is not None:
            mark = "-" if row.verdict == "changed" else sign
            print_text(Text(f"{mark} {_sentence(row.left)}{_moved(row)}", style))
        if row.right is not None and row.verdict != "equal":
            print_text(Text(f"+ {_sentence(row.right)}{_moved(row)}", style))
        for line in _places(row):
            print_text(Text(f"        {line}", style))


def _print_columns(left: Recording, right: Recording, rows: Iterable[Pair | int], width: int) -> None:
    """Print two columns, the left run and the right one, each sentence cut to its column."""
    half = (width - 5) // 2
    print_text(Text(f"  {cut(printable(left.run), half):<{half}} │ {cut(printable(right.run), half)}", "bold"))
    for row in rows:
        if isinstance(row, int):
            print_text(Text(f"  … {_equal_calls(row)}", "dim"))
            continue
        sign, style = _SIGNS[row.verdict]
        one = "" if row.left is None else _sentence(row.left)
        other = "" if row.right is None else _sentence(row.right)
        print_text(Text(f"{sign} {cut(one, half):<{half}} │ {cut(other, half)}", style))
        for line in (*_places(row), *([_moved(row).strip(" ()")] if row.moved else [])):
            print_text(Text(f"        {line}", style))


def _sentence(call: Call) -> str:
    return f"{call.intent.seq:>5}  {card_of(call).sentence}"


def _places(pair: Pair) -> Iterator[str]:
    for what, found in (("argument", pair.arguments), ("outcome", pair.outcome)):
        for difference in found:
            yield f"{what} {difference.path or '(all)'}: {_sides(difference)}"


def _sides(difference: Difference) -> str:
    left, right = side_by_side(difference.left, difference.right)
    left = "nothing" if difference.left is msgspec.UNSET else left
    right = "nothing" if difference.right is msgspec.UNSET else right
    return f"{left} → {right}"


def _moved(pair: Pair) -> str:
    return "" if pair.moved is None else f" (in the other run at {pair.moved})"


def _equal_calls(count: int) -> str:
    return "1 equal call" if count == 1 else f"{count} equal calls"
