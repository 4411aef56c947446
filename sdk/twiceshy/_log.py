"""A run's log as this process writes it: it alone gives the numbers.

A cancellation, and a stream that the code stops to read, is written down only once the code has gone on after it. One
that nothing follows may have come from the end of the process, and is no outcome that the code saw: a resumed run would
wait for it for ever. To raise an ordinary error is to go on. The same holds for errors that pass, such as a service
that gives no answer, or one that refused the request until somebody sets up what was missing: where the code ends by
one, the call has no outcome yet, and a resumed run asks again.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, cast

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._encode import encode_result
from twiceshy._payloads import NOWHERE, Keeper, Kept, Written, write_arguments, write_value
from twiceshy._raised import written_error
from twiceshy._restore import OPAQUE
from twiceshy._said import clean, kind_of, said
from twiceshy._type_names import type_of_result
from twiceshy.exceptions import (
    GuardUnavailable,
    InProgress,
    MessageRefused,
    OutcomeError,
    OutcomeInDoubt,
    RecordingDiverged,
    RequestRefused,
    RetryLater,
    RunTakenOver,
    SetupError,
    SiblingInDoubt,
    ToolArgumentError,
)
from twiceshy_contract.effects import Opaque
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.wire import EffectKey

_PASSING: Final = (
    GuardUnavailable,
    InProgress,
    MessageRefused,
    OutcomeError,
    OutcomeInDoubt,
    RecordingDiverged,
    RequestRefused,
    RetryLater,
    RunTakenOver,
    SetupError,
    SiblingInDoubt,
)
"""Errors after which the same call may come to something else."""
_COUNTERFACTUAL: Final = ("simulator", "injected", "override", "stand_in")


class Sink(Protocol):
    """Where events go."""

    @property
    def kept(self) -> Kept:
        """What is kept by content."""
        ...

    def append(self, event: Event) -> None:
        """Take the next event."""
        ...


class Entry(msgspec.Struct, frozen=True):
    """An intent that was entered: its number, and when, on a monotonic clock of nanoseconds."""

    seq: int
    began: int


class _Unseen(NamedTuple):
    """An outcome that waits for the code to go on."""

    entry: Entry
    outcome: Outcome
    took: int
    is_passing: bool


class Log:
    """Numbers intents and deliveries, one at a time, from whatever thread."""

    def __init__(self, sink: Sink, *, head: int = 0, wall: Callable[[], int] = time.time_ns) -> None:
        self._sink = sink
        self._next = head + 1
        self._wall = wall
        self._lock = threading.RLock()
        self._unseen: list[_Unseen] = []
        self.is_counterfactual = False

    @property
    def next_seq(self) -> int:
        """The number of the next event."""
        return self._next

    def digest(self, boundary: Boundary) -> str:
        """Return what a boundary is matched by. Raises ToolArgumentError for arguments that are too large."""
        asked = boundary.arguments if boundary.matched is None else boundary.matched
        return _written(boundary, asked, NOWHERE).digest

    def intent(self, boundary: Boundary, origin: int | None = None) -> Entry:
        """Write down that a boundary is entered, in a fork for a call of its parent's log.

        Raises ToolArgumentError for arguments that are too large.
        """
        with self._lock:
            if self._unseen:
                self.settle()
            pending = len(self._sink.kept.pending)
            try:
                seq = self._intend(boundary, origin)
            except BaseException:
                self._sink.kept.take_back(pending)
                raise
            self._next = seq + 1
            return Entry(seq, time.perf_counter_ns())

    def again(self, seq: int) -> Entry:
        """Enter a boundary whose intent the log has already."""
        return Entry(seq, time.perf_counter_ns())

    def delivery(self, entry: Entry, outcome: Outcome) -> None:
        """Write down that an outcome reaches the code."""
        took = (time.perf_counter_ns() - entry.began) // 1000
        with self._lock:
            is_passing = isinstance(outcome.error, _PASSING)
            if outcome.kind == "cancelled" or outcome.is_given_up or is_passing:
                self._unseen.append(_Unseen(entry, outcome, took, is_passing))
                return
            if self._unseen:
                self.settle()
            self._deliver(entry, outcome, took)

    def settle(self) -> None:
        """Write down what waits for the code to go on: it has."""
        with self._lock:
            unseen, self._unseen = self._unseen, []
            for left in unseen:
                self._deliver(left.entry, left.outcome, left.took)

    def end(self, error: BaseException) -> None:
        """Write down what the code saw before it ended by an error, and forget what may be its end itself.

        An error that passes, and what came of it, is forgotten; of an end from without, such as an interruption, all.
        """
        with self._lock:
            unseen, self._unseen = self._unseen, []
            if not isinstance(error, Exception):
                return
            first = next((at for at, left in enumerate(unseen) if left.is_passing), None)
            if first is None:
                first = 0 if _passes(error) else len(unseen)
            for left in unseen[:first]:
                self._deliver(left.entry, left.outcome, left.took)

    def start_anew_in_child(self) -> None:
        """Let go of a lock that a thread of the parent may hold."""
        self._lock = threading.RLock()
        self._unseen = []

    def _intend(self, boundary: Boundary, origin: int | None) -> int:
        written = _written(boundary, boundary.arguments, self._sink.kept)
        digest = written.digest if boundary.matched is None else self.digest(boundary)
        seq = self._next
        self._sink.append(
            Intent(
                seq=seq,
                at=self._wall() // 1000,
                kind=boundary.kind,
                name=boundary.name,
                digest=digest,
                arguments=written.payload or msgspec.UNSET,
                scope=boundary.scope,
                child=boundary.child,
                counterfactual=self.is_counterfactual,
                origin=origin,
                redacted=boundary.redacted,
            )
        )
        return seq

    def _deliver(self, entry: Entry, outcome: Outcome, took: int) -> None:
        if outcome.source in _COUNTERFACTUAL or outcome.is_counterfactual:
            self.is_counterfactual = True
        said: dict[str, Any] = {}
        if outcome.kind == "result":
            said = self._result(outcome)
        else:
            if outcome.written is not msgspec.UNSET:
                said = self._result(outcome)
            if outcome.error is not None:
                said["error"] = outcome.told or written_error(outcome.error)
        effect = None if outcome.effect is None else EffectKey(outcome.effect)
        self._sink.append(
            Delivery(
                seq=self._next,
                at=self._wall() // 1000,
                intent=entry.seq,
                outcome=outcome.kind,
                took=took,
                source=outcome.source,
                effect=effect,
                step=outcome.step,
                child=outcome.child,
                counterfactual=self.is_counterfactual,
                **said,
            )
        )
        self._next += 1

    def _result(self, outcome: Outcome) -> dict[str, Any]:
        value = outcome.value
        written, reason = outcome.written, ""
        if written is msgspec.UNSET:
            try:
                written = encode_result(value)
            except Refusal as refusal:
                reason = f"it cannot be written as JSON: {refusal}"
            except Exception as error:  # noqa: BLE001 - a property or model_dump of the value's own may raise anything
                reason = f"it cannot be written as JSON: {said(error)}"
        fields: dict[str, Any] = {}
        if not reason:
            try:
                fields["value"] = write_value(cast("JsonValue", written), self._sink.kept)
            except Refusal as refusal:
                reason = str(refusal)
        if reason:
            return {"value": opaque(value, reason)}
        if written in (None, "", [], {}):
            fields["empty"] = True
        kind = type_of_result(value)
        return fields if kind is None else {**fields, "value_type": kind}


def _passes(error: BaseException) -> bool:
    """Say whether the code ends by an error that passes, be it among others that were raised at the same time."""
    if isinstance(error, BaseExceptionGroup):
        return any(_passes(part) for part in error.exceptions)
    return isinstance(error, _PASSING)


def opaque(value: object, reason: str) -> dict[str, object]:
    """Return what is kept of a result that cannot be: its type, and why."""
    kind = clean(f"{type(value).__module__}.{kind_of(value)}")
    return {OPAQUE: msgspec.to_builtins(Opaque(type=kind, size=None, sha256=None, reason=clean(reason)))}


def _written(boundary: Boundary, arguments: Mapping[str, JsonValue], kept: Keeper) -> Written:
    try:
        return write_arguments(arguments, kept)
    except Refusal as refusal:
        raise ToolArgumentError(
            f"{boundary.name}: the argument at {refusal.path} cannot be recorded: {refusal.reason}. Nothing was "
            "called; keep large contents elsewhere and pass a reference.",
            path=refusal.path,
        ) from refusal
