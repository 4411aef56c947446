"""Outcomes out of the record, as the code gets them: values in their types, errors raised again."""

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._raised import read_error
from twiceshy._recording_errors import RecordedError
from twiceshy._restore import Misfit, refuse_opaque, restore
from twiceshy._script import Record
from twiceshy.exceptions import EffectRef, RecordMismatch
from twiceshy_contract.events import Delivery
from twiceshy_contract.outcomes import ErrorOutcome


def served(record: Record, boundary: Boundary, delivery: Delivery) -> Outcome:
    """Return a recorded outcome. Raises ResultNotKept, and RecordMismatch where the value does not fit any more."""
    if delivery.outcome == "result":
        value, error = _value(record, boundary, delivery), None
    else:
        value = None if delivery.value is msgspec.UNSET else _value(record, boundary, delivery)
        error = read_error(delivery.error) if isinstance(delivery.error, ErrorOutcome) else None
        if error is None and delivery.outcome != "cancelled":
            error = RecordedError(f"{boundary.name} ended without an outcome", type=delivery.outcome)
    return Outcome(
        kind=delivery.outcome,
        value=value,
        error=error,
        source="recorded",
        effect=delivery.effect,
        step=delivery.step,
        child=delivery.child,
        is_recorded=True,
        is_counterfactual=delivery.counterfactual,
    )


def typed(name: str | None) -> object:
    """Return the type that a name in the record stands for, among the loaded modules; Any where unknown."""
    if name is None:
        return Any
    outer, _, inner = name.partition("[")
    if inner:
        member = typed(inner.removesuffix("]").removeprefix("str, "))
        kinds: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict}
        kind = kinds.get(outer)
        if kind is None or member is Any:
            return Any
        arguments = {"dict": (str, member), "tuple": (member, ...)}.get(outer, (member,))
        return kind[arguments]
    return _class(name)


def _class(name: str) -> object:
    module, _, rest = name.rpartition(".")
    found: Any = sys.modules.get(module or "builtins")
    found = getattr(found, rest, None)
    return found if isinstance(found, type) else Any


def _value(record: Record, boundary: Boundary, delivery: Delivery) -> Any:
    reference = EffectRef(tool=boundary.name, key=delivery.effect)
    written = record.value(delivery)
    refuse_opaque(written, reference)
    try:
        return boundary.restore(written, delivery.value_type)
    except Misfit as misfit:
        raise RecordMismatch(
            f"{boundary.name} is in the recording at {delivery.seq}, but its value does not fit any more: {misfit}. "
            "Take back the change of the type, or make it take what is recorded.",
            effect=reference,
        ) from misfit


def by_annotation(annotation: Callable[[], object]) -> Callable[[object, str | None], object]:
    """Return what reads a value by an annotation; without one, by the name of the type that it had."""

    def read(value: object, first: str | None) -> object:
        said = annotation()
        return restore(value, typed(first) if said in (Any, object) else said, first)

    return read
