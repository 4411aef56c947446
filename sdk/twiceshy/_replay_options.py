"""What may be said of a replay, checked before anything of the agent runs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, TypeVar, get_args

from msgspec.structs import replace

from twiceshy._overrides import Override, Overrides
from twiceshy._pump import PATIENCE_SECONDS
from twiceshy._recording import Recording
from twiceshy._replay_plan import Llm, Mode, OnMiss, Plan
from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import did_you_mean


class ReplayOptions(TypedDict, total=False):
    """The keyword options of a replay.

    `mode` is `full` (all from the record), `until` (the same up to event `at`, where it pauses), `retest` (tools from
    the record, for changed code and prompts) or `fork` (from event `at` on the model is asked again). `overrides`
    replace single outcomes. `llm` says what answers the models: `recorded`, `position` (the n-th call, whatever its
    prompt), `live`, or a function in their place, which is given the call's arguments by name. With `on_miss="live"`
    a model call that the record has no answer for is made; a tool's never is: `answers` are results of tools by name.
    `patience` is for how many seconds code may not reach what the record has next. A child run is served what came of
    it, unless its own recording is among `children`: then its code runs too, and is held to that.
    """

    mode: Mode
    at: int | None
    overrides: Sequence[Override]
    llm: Llm | None
    on_miss: OnMiss
    answers: Mapping[str, Any] | None
    patience: float
    children: Sequence[Recording]


T = TypeVar("T")
_MODES: Final[tuple[Mode, ...]] = ("full", "until", "retest", "fork")
_LLMS: Final = ("recorded", "position", "live")


def planned(recording: Recording, options: ReplayOptions) -> Plan:
    """Return what the options ask for. Raises SetupError."""
    for option in options:
        if option not in ReplayOptions.__annotations__:
            raise TypeError(f"replay takes no argument {option!r}{did_you_mean(option, ReplayOptions.__annotations__)}")
    mode, at, llm = options.get("mode", "full"), options.get("at"), options.get("llm")
    _require("mode", mode, _MODES)
    _require("on_miss", options.get("on_miss", "fail"), get_args(OnMiss))
    if llm is not None and not callable(llm):
        _require("llm", llm, _LLMS)
    _require_place(recording, mode, at)
    overrides = _listed("overrides", options.get("overrides", ()), Override, "Override(result=..., seq=...) objects")
    children = _listed("children", options.get("children", ()), Recording, "the Recordings of child runs")
    return Plan(
        mode=mode,
        at=at,
        overrides=Overrides(overrides, recording, is_held=mode in ("full", "until")),
        llm=llm or "recorded",
        by_position=llm is None and bool(overrides),
        on_miss=options.get("on_miss", "fail"),
        answers=_answers(options.get("answers")),
        deep=frozenset(child.run for child in children),
    )


def of_child(plan: Plan, child: Recording) -> Plan:
    """Return how a child of a run is replayed: whole, or tested again where its parent is."""
    mode: Mode = "retest" if plan.mode == "retest" else "full"
    return replace(plan, mode=mode, at=None, overrides=Overrides((), child))


def patience_of(options: ReplayOptions) -> float:
    """Return how many seconds code may not reach what is next."""
    patience: object = options.get("patience", PATIENCE_SECONDS)
    if isinstance(patience, bool) or not isinstance(patience, int | float) or not 0 < patience < math.inf:
        raise SetupError(f"replay: patience is {patience!r}; say a number of seconds above 0.")
    return patience


def _listed(option: str, given: object, kind: type[T], what: str) -> Sequence[T]:
    """Return what is in a list of one kind. Raises SetupError for what is none."""
    if not isinstance(given, list | tuple):
        raise SetupError(f"replay: {option} is {given!r}; give a list of {what}.")
    for each in given:
        if not isinstance(each, kind):
            raise SetupError(f"replay: {option} holds {each!r}; give {what}.")
    return given


def _answers(given: object) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise SetupError(
            f"replay: answers is {given!r}; give results by the names of their tools, like {{'charge': 1}}."
        )
    return given


def _require(option: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise SetupError(f"replay: {option} is {value!r}{hint} The choice is {', '.join(map(repr, known))}.")


def _require_place(recording: Recording, mode: Mode, at: int | None) -> None:
    if mode not in ("until", "fork"):
        if at is not None:
            raise SetupError(f"replay: at is for the modes 'until' and 'fork'; the mode is {mode!r}.")
        return
    last = len(recording) + (1 if mode == "fork" else 0)
    if at is None or isinstance(at, bool) or not 1 <= at <= last:
        raise SetupError(f"replay: with mode={mode!r}, at is an event from 1 to {last} of the recording; it is {at!r}.")
