"""What a replay came to: the value, what was found different, and a report for people and for programs."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from twiceshy._divergence import Divergence
from twiceshy._divergences import diverged
from twiceshy._encode import encode_result
from twiceshy._in_brief import brief
from twiceshy._overrides import Override
from twiceshy._raised import written_error
from twiceshy._recording import Recording
from twiceshy._replay_errors import ReplayIncomplete, ReplayPaused
from twiceshy._said import said
from twiceshy._timeline import cards, timeline
from twiceshy_contract.events import Event
from twiceshy_contract.refusals import Refusal

SAME: Final = 0
DIVERGED: Final = 1
UNFINISHED: Final = 3
"""Exit codes of a replay: it is the same, it differs, or it paused or its record ended before the code did."""
_LAST_CARDS: Final = 10


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A replay that was done. `value` is what the agent returned, `error` what it raised, or what stopped it.

    `recording` was replayed, `log` is the replay's own. `unused_overrides` are those that no call was given.
    `is_counterfactual` says that something was not as recorded, so that what follows is not what happened.
    """

    recording: Recording
    log: Recording
    mode: str
    value: Any = None
    error: BaseException | None = None
    divergences: tuple[Divergence, ...] = ()
    paused: ReplayPaused | None = None
    incomplete: ReplayIncomplete | None = None
    unused_overrides: tuple[Override, ...] = ()
    is_counterfactual: bool = False

    @property
    def events(self) -> Sequence[Event]:
        """The replay's own events."""
        return self.log.events

    @property
    def differences(self) -> tuple[Divergence, ...]:
        """The divergences that are no mere notes, the first one first."""
        return tuple(divergence for divergence in self.divergences if not divergence.is_note)

    @property
    def is_same(self) -> bool:
        """Whether the code did what the record has, all of it."""
        return not self.differences and self.paused is None and self.incomplete is None

    @property
    def exit_code(self) -> int:
        """0 where it is the same, 1 where it diverged, 3 where it paused or the record ended."""
        if self.differences:
            return DIVERGED
        return SAME if self.is_same else UNFINISHED

    def require_same(self) -> "Replayed":
        """Return this where it is the same. Raises ReplayDiverged, ReplayIncomplete or ReplayPaused."""
        if self.differences:
            raise diverged(self.recording, self.differences)
        stopped = self.paused or self.incomplete
        if stopped is not None:
            raise stopped
        return self

    def report(self) -> str:
        """Say in plain text what came of it."""
        return "\n".join(self._lines())

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs, as it can be written as JSON."""
        stopped = self.paused or self.incomplete
        found: dict[str, Any] = msgspec.to_builtins(
            {
                "run": self.recording.run,
                "mode": self.mode,
                "is_same": self.is_same,
                "exit_code": self.exit_code,
                "recorded_events": len(self.recording),
                "events": len(self.log),
                "counterfactual": self.is_counterfactual,
                "value": _written(self.value),
                "error": None if self.error is None else written_error(self.error),
                "paused": None if self.paused is None else self.paused.seq,
                "incomplete": None if self.incomplete is None else self.incomplete.seq,
                "stopped": None if stopped is None else str(stopped),
                "unused_overrides": [str(override) for override in self.unused_overrides],
                "divergences": self.divergences,
            }
        )
        return found

    def _lines(self) -> Iterator[str]:
        yield f"Replay ({self.mode}) of run {self.recording.run}: {len(self.recording)} events recorded."
        yield self._verdict()
        if self.mode == "fork":
            yield "The database seen after the cut is today's."
        if self.is_counterfactual:
            yield "Something was put in the place of what was recorded: what follows from it did not happen."
            if self.error is None and self.paused is None:
                yield f"It came to {_said(self.value)}."
        yield from (f"Not used: the override of {override}." for override in self.unused_overrides)
        for divergence in self.divergences:
            yield ""
            yield from divergence.lines()
        if self.paused is not None:
            yield from self._pause(self.paused)
        elif self.error is not None and not self.differences and self.incomplete is None:
            yield f"The code raised {said(self.error)}."

    def _verdict(self) -> str:
        if self.differences:
            return f"It diverged: {self.differences[0].headline()}"
        if self.paused is not None:
            return str(self.paused)
        if self.incomplete is not None:
            return str(self.incomplete)
        return "The code did what was recorded."

    def _pause(self, paused: ReplayPaused) -> Iterator[str]:
        for frame in paused.locals:
            yield ""
            yield f"In {frame.function} ({frame.file}:{frame.line}):"
            yield from (f"  {name} = {_said(value)}" for name, value in frame.locals.items())
        yield ""
        yield "So far:"
        yield from list(timeline(cards(self.log)))[-_LAST_CARDS:]


def _said(value: object) -> str:
    try:
        return brief(encode_result(value))
    except Exception:  # noqa: BLE001 - whatever the agent holds may refuse to be looked at
        return f"<{type(value).__qualname__}>"


def _written(value: object) -> object:
    try:
        return encode_result(value)
    except Refusal:
        return {"type": type(value).__qualname__}
    except Exception as error:  # noqa: BLE001 - a property of the value's own may raise anything
        return {"type": type(value).__qualname__, "reason": said(error)}
