"""Where a replay's code and the record part: what was recorded, what the code did, and how the two differ."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from twiceshy._differences import Difference, differences
from twiceshy._in_brief import brief, side_by_side
from twiceshy._recording import Recording
from twiceshy._sentences import sentence
from twiceshy_contract.events import INLINE_BYTES, Delivery, EventKind, Intent
from twiceshy_contract.refusals import JsonValue

DivergenceClass = Literal["reordered", "arguments", "name", "kind", "extra", "missing", "outcome"]
"""`extra` is a call that the record has not, `missing` one that the code does not make any more."""
AROUND: Final = 2
"""How many events are shown before and after a divergence."""
_MOST_CHANGES: Final = 20
_WORDS: Final = re.compile(r"\d+|[^\W\d]+")
_MOST_IN_A_LINE: Final = 3


class ReplayedCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call as the record has it, or as the code makes it; `seq` is its number in the record."""

    kind: EventKind
    name: str
    arguments: dict[str, JsonValue] = {}
    scope: str = ""
    seq: int | None = None


class Divergence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One place where code and record part. One that `is_note` changes nothing of what the code was given.

    `arguments` are where those differ, the record's at the left. `around` are the events beside it in the record. What
    is not in the record has no `seq`; `after` is then the last recorded call that was made before it, or 0.
    """

    class_: DivergenceClass = msgspec.field(name="class")
    message: str
    advice: str
    seq: int | None = None
    after: int | None = None
    recorded: ReplayedCall | None = None
    actual: ReplayedCall | None = None
    arguments: tuple[Difference, ...] = ()
    around: tuple[str, ...] = ()
    is_note: bool = False

    def __str__(self) -> str:
        return f"{'note: ' if self.is_note else ''}{self.message}"

    def lines(self) -> Iterator[str]:
        """Write it for people."""
        yield f"{'Note' if self.is_note else 'Divergence'} {self._place()}: {self.class_}"
        yield f"  {self.message}"
        if self.recorded is not None or self.actual is not None:
            yield f"  recorded: {_shown(self.recorded)}"
            yield f"  now:      {_shown(self.actual)}"
        yield from (f"    {_changed(change)}" for change in self.arguments[:_MOST_CHANGES])
        if len(self.arguments) > _MOST_CHANGES:
            yield f"    and {len(self.arguments) - _MOST_CHANGES} more"
        if self.around:
            yield "  around it:"
            yield from (f"    {line}" for line in self.around)
        yield f"  {self.advice}"

    def headline(self) -> str:
        """Say it in a line, with the first arguments that differ."""
        shown = ", ".join(_changed(change) for change in self.arguments[:_MOST_IN_A_LINE])
        more = ", ..." if len(self.arguments) > _MOST_IN_A_LINE else ""
        return f"{self.message.removesuffix('.')} ({shown}{more})." if shown else self.message

    def _place(self) -> str:
        if self.seq is not None:
            return f"at event {self.seq} of the record"
        if self.after is None:
            return "after the end of the record"
        return f"after event {self.after} of the record" if self.after else "at the beginning of the record"


def called(recording: Recording, intent: Intent) -> ReplayedCall:
    """Return a recorded call with its arguments whole."""
    return ReplayedCall(
        kind=intent.kind,
        name=intent.name,
        arguments=recording.arguments(intent),
        scope=intent.scope,
        seq=intent.seq,
    )


def changes(recorded: ReplayedCall | None, actual: ReplayedCall | None) -> tuple[Difference, ...]:
    """Return where the arguments of two calls differ."""
    if recorded is None or actual is None:
        return ()
    return tuple(differences(recorded.arguments, actual.arguments))


def in_short(call: ReplayedCall | None) -> ReplayedCall | None:
    """Return a call without arguments that are long."""
    if call is None or len(msgspec.json.encode(call.arguments)) <= INLINE_BYTES:
        return call
    return msgspec.structs.replace(call, arguments={})


def is_alike(one: ReplayedCall, other: ReplayedCall, *, much: float = 0.5) -> bool:
    """Say whether two calls pass much the same: half of their values at least, whatever these are called.

    What a model is asked is told word by word, and a number in it may be another one.
    """
    left, right = (Counter(_leaves(call.arguments, is_asked=call.kind == "llm_call")) for call in (one, other))
    if not left or not right:
        return not left and not right
    return (left & right).total() >= much * max(left.total(), right.total())


def around(recording: Recording, seq: int) -> tuple[str, ...]:
    """Describe the events about a place of the record in a line each."""
    first, last = max(seq - AROUND, 1), min(seq + AROUND, len(recording))
    return tuple(f"{'>' if at == seq else ' '} {at:>5}  {_line(recording, at)}" for at in range(first, last + 1))


def _line(recording: Recording, seq: int) -> str:
    event = recording.events[seq - 1]
    if isinstance(event, Intent):
        return sentence(event, recording.arguments(event)).partition("; no outcome")[0]
    intent = recording.events[event.intent - 1]
    name = intent.name if isinstance(intent, Intent) else "?"
    return f"{name} ({event.intent}): {_ended(recording, event)}"


def _ended(recording: Recording, event: Delivery) -> str:
    if event.outcome == "result":
        return brief(recording.value(event))
    return event.outcome if event.error is msgspec.UNSET else f"{event.error.type}: {event.error.message}"


def _leaves(value: object, *, is_asked: bool) -> Iterator[str]:
    match value:
        case dict():
            for member in value.values():
                yield from _leaves(member, is_asked=is_asked)
        case list():
            for item in value:
                yield from _leaves(item, is_asked=is_asked)
        case None:  # it is what was not said
            return
        case str() if is_asked:
            yield from ("0" if word.isdigit() else word for word in _WORDS.findall(value))
        case _:
            yield repr(value)


def _shown(call: ReplayedCall | None) -> str:
    if call is None:
        return "nothing"
    where = f" in {call.scope}" if call.scope else ""
    passed = ", ".join(f"{name}={brief(value)}" for name, value in call.arguments.items())
    return f"{call.kind} {call.name}({passed}){where}"


def _changed(change: Difference) -> str:
    left, right = change.left, change.right
    one, other = (_side(left), _side(right)) if change.is_at != "both" else side_by_side(left, right)
    return f"{change.path or '(all)'}: {one} -> {other}"


def _side(value: object) -> str:
    return "nothing" if value is msgspec.UNSET else brief(value)
