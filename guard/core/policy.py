"""What one call may do in a fork. Nothing that is not allowed here is ever granted a lease in one.

Up to the cut all is from the record. After it a call is answered from what the parent's record still holds; what is not
there may really run if the fork's terms name the tool, or if it only reads; else its simulator answers; else the fork
stops. The registry's rule is a ceiling over all that comes after the cut.

Where a fork stopped, a person may have answered the call: with an outcome, with no, or with yes for this one call. Such
an answer counts before all rules but the registry's `deny`; what the tool itself asks of persons is asked all the same.
"""

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from guard.core.forks import Allowance
from guard.core.lease import stricter
from twiceshy_contract.forks import Reads
from twiceshy_contract.names import EffectClass
from twiceshy_contract.policies import ForkRule
from twiceshy_contract.policy import PolicyDecision, PolicyRule

Recorded = Literal["nothing", "before the cut", "after the cut", "arguments differ", "outcome unknown"]
"""What the record has for a call. The last two are said of its own place before the cut, and of what it was given."""
Simulated = Literal["nothing", "an outcome", "a failure"]
"""What the tool's simulator has for a call; it fails where its template does not fit the arguments."""
Answered = Literal["nothing", "injected", "denied", "allowed"]
"""What a person answered a call at which the fork stopped: an outcome, no, or yes for this one call."""
Standing = Literal["not needed", "missing", "open", "approved", "expired", "denied"]
"""How the approval stands that a call needs to really run."""

_CEILINGS: Final[tuple[ForkRule, ...]] = ("auto", "live", "recorded", "stub", "suspend", "deny")
"""In the order of their strictness; `auto` leaves it to the class and to the record, and `live` says no more."""
_OF_THE_REGISTRY: Final[Mapping[ForkRule, PolicyRule]] = MappingProxyType(
    {"recorded": "registry: recorded", "stub": "registry: stub"}
)
_OF_THE_TERMS: Final[Mapping[Allowance, PolicyRule]] = MappingProxyType(
    {"used up": "live calls used up", "other arguments": "arguments not allowed"}
)


class ForkedCall(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides about one call in a fork.

    The classes and the registry's rules are those of the versions that the runs of the fork's record used and of the
    one that holds today; the strictest of each counts.
    """

    classes: tuple[EffectClass, ...]
    rules: tuple[ForkRule, ...]
    is_registered: bool
    recorded: Recorded
    allowance: Allowance
    simulated: Simulated
    approval: Standing
    reads: Reads
    answered: Answered = "nothing"

    @property
    def effect_class(self) -> EffectClass:
        """The class that counts."""
        return reduce(stricter, self.classes) if self.is_registered else "side_effect"

    @property
    def ceiling(self) -> ForkRule:
        """The registry's rule that counts."""
        return max(self.rules, key=_CEILINGS.index)


class Ruled(msgspec.Struct, frozen=True):
    """A decision and the rule that made it."""

    decision: PolicyDecision
    rule: PolicyRule


def outside() -> Ruled:
    """Decide about a call that is in no fork."""
    return Ruled("live", "not in a fork")


def rule_on(call: ForkedCall) -> Ruled:
    """Decide about a call in a fork."""
    if call.recorded == "before the cut":
        return Ruled("recorded", "before the cut")
    if call.answered != "nothing":
        return _answered(call)
    if call.recorded == "arguments differ" or call.recorded == "outcome unknown":  # noqa: PLR1714 - narrows the type
        return Ruled("suspend", call.recorded)
    return _after_the_cut(call)


def _answered(call: ForkedCall) -> Ruled:
    """Decide about a call that a person answered. `approval` is only what the tool's own rules ask for."""
    if call.ceiling == "deny":
        return Ruled("deny", "registry: deny")
    if call.answered == "injected":
        return Ruled("stub", "injected")
    if call.answered == "denied":
        return Ruled("deny", "denied by a person")
    if call.approval == "denied":
        return Ruled("deny", "approval denied")
    is_agreed = call.approval in ("not needed", "approved")
    return Ruled("live", "allowed once") if is_agreed else Ruled("suspend", "needs approval")


def _after_the_cut(call: ForkedCall) -> Ruled:
    ceiling = call.ceiling
    if ceiling == "deny":
        return Ruled("deny", "registry: deny")
    if ceiling == "suspend":
        return Ruled("suspend", "registry: suspend")
    if call.recorded == "after the cut" and ceiling != "stub":
        return Ruled("recorded", "recorded")
    live = _live(call) if ceiling in ("auto", "live") else None
    if live is not None:
        return live
    if call.simulated == "an outcome":
        return Ruled("stub", "simulator")
    return Ruled("suspend", _stopped_by(call))


def _live(call: ForkedCall) -> Ruled | None:
    """Decide about a call that would really run; None where it may not."""
    if call.allowance == "allowed":
        return _allowed(call)
    if call.effect_class == "read" and call.reads == "live":
        return Ruled("live", "read")
    return None


def _allowed(call: ForkedCall) -> Ruled:
    """Decide about a call that the fork's terms let run: a side effect needs an approval of these arguments as well."""
    is_approved = call.approval == "approved"
    if call.approval == "denied":
        return Ruled("deny", "approval denied")
    if not is_approved and (call.approval != "not needed" or call.effect_class == "side_effect"):
        return Ruled("suspend", "needs approval")
    return Ruled("live", "allowed by the fork")


def _stopped_by(call: ForkedCall) -> PolicyRule:
    """Name what stands in the way of a call that nothing answers."""
    if call.simulated == "a failure":
        return "simulator failed"
    rule = _OF_THE_REGISTRY.get(call.ceiling) or _OF_THE_TERMS.get(call.allowance)
    if rule is not None:
        return rule
    if not call.is_registered:
        return "not registered"
    return "reads: recorded" if call.effect_class == "read" else "nothing may answer"
