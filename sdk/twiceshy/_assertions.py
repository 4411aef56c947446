"""What a replay must have done, said in checks that fail with the timeline in hand.

    Expectation(replay("case.jsonl", agent)).called("lookup").not_called("pay").outcome("escalated")

A check that holds returns the expectation, so that the next one can follow. One that fails raises an AssertionError
that shows what was called, with the first difference to the recording marked.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn, Protocol, Self

from twiceshy._differences import ABSENT, Difference, differences
from twiceshy._encode import encode_result
from twiceshy._first_difference import marked_timeline
from twiceshy._in_brief import brief, cut, shown, side_by_side
from twiceshy._recorded_calls import Call, RecordedCalls
from twiceshy._recording import Recording
from twiceshy._restore import untag
from twiceshy._run_diff import first_difference
from twiceshy._said import said
from twiceshy.exceptions import SetupError
from twiceshy_contract.refusals import JsonValue, Refusal, steps_of
from twiceshy_contract.variables import did_you_mean

_MOST_PLACES = 5


class Replay(Protocol):
    """A replay that is over, as far as it is looked at here."""

    @property
    def value(self) -> Any:
        """What the agent returned."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What it raised."""
        ...

    @property
    def recording(self) -> Recording:
        """What was replayed."""
        ...

    @property
    def log(self) -> Recording:
        """What the agent did now."""
        ...

    @property
    def differences(self) -> Sequence[object]:
        """What it did otherwise, in words."""
        ...


class Expectation:
    """Checks what a replay did, or what a recording holds. `replayed` is what it was made of."""

    def __init__(self, replayed: Replay | Recording) -> None:
        self.replayed = replayed
        self._recording = None if isinstance(replayed, Recording) else replayed.recording
        self._log = replayed if isinstance(replayed, Recording) else replayed.log
        self._calls = RecordedCalls(self._log)

    @property
    def value(self) -> Any:
        """What the agent returned."""
        return self._replay.value

    @property
    def error(self) -> BaseException | None:
        """What the agent raised; None where it returned."""
        return self._replay.error

    @property
    def log(self) -> Recording:
        """What the agent did."""
        return self._log

    def called(self, tool: str, *, times: int | None = None) -> Self:
        """Check that a tool was called; with `times`, exactly so often."""
        __tracebackhide__ = True
        made = len(self._places(tool))
        if times is None and not made:
            self._fail(f"{tool} was not called{self._near(tool)}")
        if times is not None and made != times:
            self._fail(f"{tool} was called {_times(made)}, not {_times(times)}.")
        return self

    def not_called(self, tool: str) -> Self:
        """Check that a tool was not called."""
        __tracebackhide__ = True
        places = self._places(tool)
        if places:
            at = ", ".join(str(self._calls[place].intent.seq) for place in places)
            self._fail(f"{tool} was called, at {at}.")
        return self

    def before(self, first: str, then: str) -> Self:
        """Check that both were called, and the first call of the one came before the first call of the other."""
        __tracebackhide__ = True
        self.called(first).called(then)
        one, other = self._calls[self._places(first)[0]], self._calls[self._places(then)[0]]
        if one.intent.seq > other.intent.seq:
            self._fail(f"{first} was first called at {one.intent.seq}, after {then} at {other.intent.seq}.")
        return self

    def in_order(self, *tools: str) -> Self:
        """Check that these were called in this order; other calls may stand between."""
        __tracebackhide__ = True
        left = iter(self._names())
        for at, tool in enumerate(tools):
            if not any(name == tool for name in left):
                behind = f" after {', '.join(tools[:at])}" if at else ""
                self._fail(f"{tool} was not called{behind}{self._near(tool)}")
        return self

    def with_arguments(self, tool: str, arguments: Mapping[str, object]) -> Self:
        """Check that one call of a tool had these arguments, by name or by JSON Pointer; it may have had others too."""
        __tracebackhide__ = True
        self.called(tool)
        unlike = [list(_unlike(self._calls[place], arguments)) for place in self._places(tool)]
        if all(unlike):
            nearest = min(unlike, key=len)
            places = "".join(f"\n   {each.path}: {_expected(each)}" for each in nearest[:_MOST_PLACES])
            self._fail(f"No call of {tool} had these arguments. The nearest differs at:{places}")
        return self

    def outcome(self, value: object) -> Self:
        """Check that the agent returned this."""
        __tracebackhide__ = True
        replay = self._replay
        if replay.error is not None:
            self._fail(f"The agent did not return {cut(repr(value), 200)}: it raised {said(replay.error)}")
        if replay.value != value:
            self._fail(f"The agent returned another value than expected.{_beside(value, replay.value)}")
        return self

    def raised(self, kind: type[BaseException], message: str = "") -> Self:
        """Check that the agent raised this kind of error, with a message that holds this text."""
        __tracebackhide__ = True
        error = self._replay.error
        if error is None:
            self._fail(f"The agent raised no {kind.__name__}: it returned {cut(repr(self._replay.value), 200)}.")
        if not isinstance(error, kind) or message not in str(error):
            wanted = f"{kind.__name__} with {message!r}" if message else kind.__name__
            self._fail(f"The agent raised {said(error)}, not {wanted}.")
        return self

    def unchanged(self) -> Self:
        """Check that the agent made the calls of the recording, in their order, and that they ended the same way."""
        __tracebackhide__ = True
        if self._recording is None:
            raise SetupError("unchanged() compares a replay with its recording; this is a recording. Replay it first.")
        differences = self._replay.differences
        if differences or first_difference(self._recording, self._log) is not None:
            self._fail(f"The run is not what was recorded{f': {differences[0]}' if differences else '.'}")
        return self

    @property
    def _replay(self) -> Replay:
        if isinstance(self.replayed, Recording):
            raise SetupError("A recording holds what was called, and not what the agent returned. Replay it first.")
        return self.replayed

    def _places(self, tool: str) -> list[int]:
        return [at for at, name in enumerate(self._names()) if name == tool]

    def _names(self) -> Iterator[str]:
        return (call.intent.name for call in self._calls)

    def _counted(self) -> Counter[str]:
        return Counter(self._names())

    def _near(self, tool: str) -> str:
        """End a sentence about a tool that is missing, with what was probably meant."""
        counted = self._counted()
        return "." if tool in counted else did_you_mean(tool, counted)

    def _fail(self, what: str) -> NoReturn:
        __tracebackhide__ = True
        counted = self._counted()
        called = ", ".join(f"{name} ({_times(count)})" if count > 1 else name for name, count in counted.items())
        parts = [what, f"Called: {called or 'nothing'}.", *self._why()]
        raise AssertionError("\n".join([*parts, marked_timeline(self._log, self._recording)]))

    def _why(self) -> Iterator[str]:
        """Say that the agent did not come to its end, which explains most of what is missing."""
        if not isinstance(self.replayed, Recording) and self.replayed.error is not None:
            yield f"The agent ended with {said(self.replayed.error)}"


def _unlike(call: Call, wanted: Mapping[str, object]) -> Iterator[Difference]:
    """Find where a call's arguments are not those that are wanted."""
    arguments = call.arguments()
    for name, value in wanted.items():
        steps = steps_of(name) if name.startswith("/") else (name,)
        found = _at(arguments, steps)
        path = "".join(f"/{step}" for step in steps)
        if found is ABSENT:
            yield Difference(path, _written(value), ABSENT)
        elif untag(found) != value:
            for each in differences(_written(value), found):
                yield Difference(f"{path}{each.path}", each.left, each.right)


def _at(value: object, steps: tuple[str, ...]) -> object:
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def _written(value: object) -> JsonValue:
    """Write a value as a recording holds it."""
    try:
        return encode_result(value)
    except Refusal as refusal:
        raise SetupError(f"No recorded argument can be {cut(repr(value), 100)}: {refusal}.") from refusal


def _expected(difference: Difference) -> str:
    match difference.is_at:
        case "left":
            return f"{brief(difference.left)} is expected, and there is nothing"
        case "right":
            return f"nothing is expected, and there is {brief(difference.right)}"
        case "both":
            expected, there = side_by_side(difference.left, difference.right)
            return f"{expected} is expected, and there is {there}"


def _beside(expected: object, returned: object) -> str:
    """Show two values: where they differ, if both can be written, else as they print."""
    try:
        found = list(islice(differences(encode_result(expected), encode_result(returned)), _MOST_PLACES))
    except Exception:  # noqa: BLE001 - a value's own properties may raise anything
        found = []
    if not found:
        return f"\n   expected: {cut(repr(expected), 500)}\n   returned: {cut(repr(returned), 500)}"
    return "".join(f"\n   {each.path or 'the value'}: {_expected(each)}" for each in found)


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{shown(count, 20)} times")
