"""A guarded call as a boundary of its run: how it is recorded and matched, and its Answer out of the record.

What is redacted is in neither the record nor the digest that the call is matched by. What was redacted when it was
recorded may be other than what is now; then the call is compared with what the record has left of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._calls import ToolCall
from twiceshy._recorded import Answer, source_of
from twiceshy._results import returns_nothing
from twiceshy._served import by_annotation
from twiceshy._session import Session, failed, observed, observed_async
from twiceshy.exceptions import OutcomeInDoubt
from twiceshy_contract.events import Source
from twiceshy_contract.redaction import marks, redacted
from twiceshy_contract.refusals import JsonValue, steps_of

_encode: Final = msgspec.json.Encoder(order="sorted").encode


def boundary_of(call: ToolCall) -> Boundary:
    """Return the boundary that a call passes. What its tool ignores is kept, and not matched."""
    rules = call.spec.rules
    written: Any = call.spec.signature.written(call.bound) if not call.written else call.written
    kept: Any = redacted(written, rules.redacted) if rules.redacted else written
    return Boundary(
        kind="tool_call",
        name=call.spec.name,
        arguments=kept,
        matched=without(kept, rules.ignored) if rules.ignored else None,
        restore=by_annotation(lambda: call.spec.signature.returns),
        is_read=rules.effect == "read" and rules.fork in ("auto", "live", "recorded"),
        returns_nothing=returns_nothing(call.spec),
        is_that=partial(_is_recorded_as, written, tuple(rules.ignored)),
        redacted=tuple(rules.redacted),
    )


def _is_recorded_as(written: dict[str, Any], ignored: Sequence[str], recorded: dict[str, Any]) -> bool:
    """Say whether recorded arguments are these, apart from what the record leaves out and what the tool ignores."""
    kept: Any = redacted(written, marks(recorded))
    return _encode(without(kept, ignored)) == _encode(without(recorded, ignored))


def answered(session: Session, call: ToolCall, ask: Callable[[], Answer[Any]]) -> Answer[Any]:
    """Pass the boundary of a call, blocking."""
    asked: list[Answer[Any]] = []

    def live() -> Outcome:
        seen = observed(lambda: asked.append(ask()))
        return _told(call, asked[0]) if asked else _with_effect(seen)

    outcome = session.outcome_of(boundary_of(call), live)
    value = outcome.give()
    return asked[0] if asked else _of_record(call, value, outcome.source)


async def answered_async(session: Session, call: ToolCall, ask: Callable[[], Awaitable[Answer[Any]]]) -> Answer[Any]:
    """Pass the boundary of a call on an event loop."""
    asked: list[Answer[Any]] = []

    async def keep() -> None:
        asked.append(await ask())

    async def live() -> Outcome:
        seen = await observed_async(keep)
        return _told(call, asked[0]) if asked else _with_effect(seen)

    outcome = await session.outcome_of_async(boundary_of(call), live)
    value = outcome.give()
    return asked[0] if asked else _of_record(call, value, outcome.source)


def without(value: dict[str, JsonValue], pointers: Sequence[str]) -> dict[str, JsonValue]:
    """Return arguments without the members at these JSON Pointers; `*` stands for every item of a list."""
    result: Any = value
    for pointer in pointers:
        result = _without(result, steps_of(pointer))
    return dict(result)


def _without(value: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if isinstance(value, list) and first == "*":
        return [_without(item, rest) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without(member, rest) if name == first else member
        for name, member in value.items()
        if name != first or rest
    }


def _told(call: ToolCall, answer: Answer[Any]) -> Outcome:
    step = answer.step if answer.run in (None, call.run) else None  # of another run it counts that run's effects
    return Outcome(kind="result", value=answer.value, effect=answer.key, step=step, source=answer.source)


def _with_effect(seen: Outcome) -> Outcome:
    """Name the effect that an error is about, and say where nobody knows how it ended."""
    error = seen.error
    key = getattr(error, "key", None)
    told = Outcome(
        kind="unknown" if isinstance(error, OutcomeInDoubt) else seen.kind,
        error=error,
        effect=key if isinstance(key, str) else None,
        source=source_of(error),
    )
    return told if error is not None else failed(RuntimeError("a call ended without an outcome"))


def _of_record(call: ToolCall, value: Any, source: Source) -> Answer[Any]:
    said = "served from the recording" if source == "recorded" else "put in the place of what was recorded"
    return Answer(value=value, is_replay=True, said=said, run=call.run, source=source)
