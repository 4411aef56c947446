"""What to do about a divergence: it depends on what was asked of the replay, and never says what was done already."""

from typing import Final

from twiceshy._divergence import DivergenceClass
from twiceshy._replay_plan import Plan

_FIND: Final = (
    "Look for what the arguments are made of: a changed prompt or setting, or a value that is no boundary of the run. "
)
_SAID: Final[dict[DivergenceClass, str]] = {
    "reordered": "Nothing to do: each call was given its own outcome.",
    "arguments": _FIND + "Name arguments that may differ in the tool's `ignored`; a changed prompt is tested with "
    "mode='retest'.",
    "name": "The code asks for something else here. Take the change back, or test it with mode='retest'.",
    "kind": "The code passes this boundary in another way than when it was recorded. Take the change back, or record "
    "the run again.",
    "extra": "The code makes a call that the record has no outcome for, and a replay makes none up. Take it out, "
    "override it by its name, or test the change with mode='retest' and answers={...}.",
    "missing": "The code does not come to this call any more. Look at what it was given just before.",
    "outcome": "Nothing to do: a fact is said of the run at whatever time, and is not what the code came to.",
}


def advice(class_: DivergenceClass, plan: Plan, actual: tuple[str, str] | None) -> str:
    """Say what to do where the code was stopped; `actual` is the kind and name of what it called."""
    if actual is None or class_ not in ("arguments", "name", "extra"):
        return _SAID[class_]
    kind, name = actual
    is_tested = plan.mode in ("retest", "fork") or bool(plan.overrides) or bool(plan.answers)
    if not is_tested:
        return _SAID[class_]
    if kind == "llm_call":
        return "Say what answers it: llm='position', a function as llm, or on_miss='live'; or take the change back."
    answered = f"give a result for it to go on: answers={{{name!r}: ...}}"
    if class_ != "arguments":
        return f"The record has no outcome for this call. If it is meant, {answered}; else take it out."
    if plan.overrides:
        return f"This may follow from the override. To see what is next, {answered}."
    return f"If this follows from the change that you test, {answered}. {_FIND.strip()}"


def advice_where_it_went_on(class_: DivergenceClass, plan: Plan) -> str:
    """Say what to do about a call that got an outcome nevertheless, and the code went on."""
    if class_ == "extra":
        return "Nothing to do if it is meant: the code went on with that."
    if plan.overrides:
        return "It may be just what follows from the override. The code went on: look at what it came to."
    if plan.mode in ("retest", "fork"):
        return "It may be just what follows from what you test. The code went on: look at what it came to."
    return "Nothing to do: the code went on with the recorded outcome."
