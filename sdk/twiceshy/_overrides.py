"""Overrides: outcomes that a replay puts in the place of recorded ones, to see what changes."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._encode import encode_result
from twiceshy._raised import read_error
from twiceshy._recording import Recording
from twiceshy._restore import Misfit
from twiceshy._said import said
from twiceshy._type_names import type_of_result
from twiceshy.exceptions import SetupError
from twiceshy_contract.events import Delivery, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.variables import did_you_mean


class Override(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome in the place of a recorded one: a `result`, or an `error` that is raised.

    Which call it is, say by its number in the record (`seq`, of the call or of its outcome), or by its `name` and
    which of that name it is, counted from 1 as the code makes them. `result` is a value of the call's own type, or JSON
    that fits it; `error` an exception, or an object with `type` and `message`.
    """

    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET
    seq: int | None = None
    name: str | None = None
    occurrence: int = 1

    def __post_init__(self) -> None:
        if (self.result is msgspec.UNSET) == (self.error is msgspec.UNSET):
            raise SetupError("An Override says one of both: result=..., or error=...")
        if (self.seq is None) == (self.name is None):
            raise SetupError("An Override names its call by one of both: seq=..., or name=... with occurrence=...")
        if self.seq is not None:
            _require_number("Override: seq is the number of an event", self.seq)
            if self.occurrence != 1 or isinstance(self.occurrence, bool):
                raise SetupError("Override: occurrence counts the calls of a name; give name=... with it, or no seq.")
        elif not isinstance(self.name, str) or not self.name:
            raise SetupError(f"Override: name is {self.name!r}; it is the name of a call, such as 'charge'.")
        _require_number(f"Override of {self.name}: occurrence counts from 1", self.occurrence)

    def __str__(self) -> str:
        which = f"event {self.seq}" if self.name is None else f"{self.name} (call {self.occurrence} of it)"
        what = repr(self.result) if self.error is msgspec.UNSET else f"the error {self.error!r}"
        return f"{which}: {what if len(what) <= 80 else what[:79] + '…'}"

    def outcome(self, boundary: Boundary) -> Outcome:
        """Return what the code is given. Raises SetupError where it does not fit the call's type."""
        if self.error is not msgspec.UNSET:
            return Outcome(kind="error", error=_error(self.error), source="override")
        return fitted(boundary, self.result, f"The override of {self}")


def _require_number(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SetupError(f"{what}; it is {value!r}. Say a whole number from 1 on.")


def fitted(boundary: Boundary, result: object, what: str) -> Outcome:
    """Return a result in the place of a call's own. Raises SetupError where it does not fit."""
    try:
        written = encode_result(result)
        value = boundary.restore(written, type_of_result(result))
    except (Misfit, Refusal) as error:
        why = error.given if isinstance(error, Misfit) else str(error)
        raise SetupError(
            f"{what} does not fit what {boundary.name} returns: {why}. Give a value of its type, or JSON that fits it."
        ) from error
    return Outcome(kind="result", value=value, source="override", written=written)


class Overrides:
    """The overrides of one replay."""

    def __init__(
        self, overrides: Sequence[Override], recording: Recording, *, is_strict: bool = True, is_held: bool = False
    ) -> None:
        """Find the calls that are meant. Unless it `is_strict`, one that is not there comes to nothing.

        Where the code `is_held` to the record, it makes no call of a name more often than that.
        """
        self._all = tuple(overrides)
        self._used: set[int] = set()
        self._by_seq: dict[int, Override] = {}
        self._by_name: dict[tuple[str, int], Override] = {}
        self._counts: Counter[str] = Counter()
        for override in overrides:
            if override.seq is not None:
                if is_strict or override.seq <= len(recording):
                    self._by_seq[_intent_of(override, recording)] = override
            elif override.name is not None:
                self._by_name[override.name, override.occurrence] = override
        if is_strict and self._by_name:
            self._require_calls(recording, is_held=is_held)

    def _require_calls(self, recording: Recording, *, is_held: bool) -> None:
        made = Counter(event.name for event in recording.events if isinstance(event, Intent))
        for name, occurrence in self._by_name:
            if name not in made:
                raise SetupError(f"No call of the recording is named {name!r}{did_you_mean(name, made)}")
            if is_held and occurrence > made[name]:
                often = "once" if made[name] == 1 else f"{made[name]} times"
                raise SetupError(
                    f"Override of {name}: the recording has it {often}, and no call {occurrence} of it. Changed code, "
                    "which may call it more often, is tested with mode='retest'."
                )

    def __bool__(self) -> bool:
        return bool(self._by_seq or self._by_name)

    def of_name(self, name: str) -> Override | None:
        """Count a call of a name, and return the override of just this one."""
        if not self._by_name:
            return None
        self._counts[name] += 1
        return self._by_name.get((name, self._counts[name]))

    def used(self, override: Override) -> Override:
        """Note that a call was given this one, and return it."""
        self._used.add(id(override))
        return override

    @property
    def unused(self) -> tuple[Override, ...]:
        """Those that no call was given."""
        return tuple(override for override in self._all if id(override) not in self._used)

    def of_intent(self, intent: int) -> Override | None:
        """Return the override of a recorded call."""
        return self._by_seq.get(intent)


def _intent_of(override: Override, recording: Recording) -> int:
    seq = override.seq or 0
    if not 1 <= seq <= len(recording):
        raise SetupError(f"The recording of {recording.run} has {len(recording)} events; there is no event {seq}.")
    event = recording.events[seq - 1]
    return event.intent if isinstance(event, Delivery) else event.seq


def _error(error: object) -> BaseException:
    if isinstance(error, BaseException):
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return error()
    try:
        return read_error(msgspec.convert(error, ErrorOutcome))
    except msgspec.ValidationError as wrong:
        raise SetupError(
            f"An Override's error is an exception, or an object with type and message; it is {error!r}: {said(wrong)}."
        ) from wrong
