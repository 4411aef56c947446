"""What is asked of a replay, as its script obeys it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from twiceshy._boundaries import Boundary
from twiceshy._overrides import Overrides
from twiceshy_contract.events import Delivery

Mode = Literal["full", "until", "retest", "fork"]
OnMiss = Literal["fail", "live"]
Llm: TypeAlias = Literal["recorded", "position", "live"] | Callable[..., Any]
CLOCKS: Final = ("time", "random", "uuid", "sleep")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a replay. `at` is the event at which it pauses, or is forked.

    `is_online` says that what is not of the record goes on at the service, which decides about it.
    """

    mode: Mode | Literal["resume"]
    overrides: Overrides
    at: int | None = None
    llm: Llm = "recorded"
    by_position: bool = False
    on_miss: OnMiss = "fail"
    answers: Mapping[str, Any] = {}
    is_online: bool = False
    live: frozenset[str] = frozenset()
    """Names of tools that a fork at the service asks for anew, though its parent's log has an answer."""
    deep: frozenset[str] = frozenset()
    """Child runs whose code runs, and whose outcome then takes its turn."""

    def asks_again(self, boundary: Boundary, delivery: Delivery | None) -> bool:
        """Say whether a call behind the cut is made anew, though the record may have an answer.

        At the service it decides about effects; all else is served, but for what draws anew and what is named to run.
        """
        if not self.is_online:
            return boundary.kind == "llm_call" and self.mode == "fork" and self.llm != "recorded"
        is_answered = delivery is not None and delivery.effect is None and delivery.outcome != "cancelled"
        is_effect = boundary.kind == "tool_call" and not boundary.is_read
        is_drawn = boundary.kind == "llm_call" or boundary.kind in CLOCKS
        return not is_answered or is_effect or is_drawn or boundary.name in self.live
