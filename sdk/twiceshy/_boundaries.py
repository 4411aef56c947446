"""A boundary between an agent's code and the world: what the code asks for there, and what it gets."""

from collections.abc import Callable
from typing import Any

import msgspec

from twiceshy._restore import untag
from twiceshy_contract.events import ChildHead, EventKind, OutcomeKind, Source
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue


def plain(value: object, first: str | None) -> object:
    """Read a recorded value as JSON tells it."""
    del first
    return untag(value)


class Boundary(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the world. `arguments` are in tagged form and are kept; `matched` is what it is matched by.

    `restore` reads a recorded value, in tagged form, beside the name of the type that it had. Raises Misfit.
    """

    kind: EventKind
    name: str
    arguments: dict[str, JsonValue] = {}
    matched: dict[str, JsonValue] | None = None
    """None: the arguments."""
    scope: str = ""
    child: str | None = None
    restore: Callable[[object, str | None], Any] = plain
    is_read: bool = False
    """Whether it is a tool's call that only reads, and its code leaves it to others how a fork answers it."""
    returns_nothing: bool = False
    """Whether the call is annotated to return None, so that no result of it can be missed."""
    is_that: Callable[[dict[str, JsonValue]], bool] | None = None
    """Says whether recorded arguments are the call's own, though other parts of them are redacted there."""
    redacted: tuple[str, ...] = ()
    """The places that are left out of the arguments."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a boundary ended: `value` for a result, `error` for all else. Where it is of the record, `is_recorded`.

    `written` is the value in tagged form where that is known already; what an error left behind has it too. `told` is
    what is kept of the error where that is not all of it. One that is `given_up` was ended by the code itself, or by
    its end.
    """

    kind: OutcomeKind
    value: Any = None
    error: BaseException | None = None
    told: ErrorOutcome | None = None
    source: Source = "live"
    effect: str | None = None
    step: int | None = None
    child: ChildHead | None = None
    written: object = msgspec.UNSET
    is_recorded: bool = False
    is_given_up: bool = False
    is_counterfactual: bool = False
    """Whether the record says that it follows from what the world did not give."""

    def give(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value
