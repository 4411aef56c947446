"""Wire structs of a policy decision: what a call may do in a fork, asked without doing anything."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec

from twiceshy_contract.effects import Outcome, Provenance
from twiceshy_contract.forks import ForkTerms
from twiceshy_contract.names import BusinessKey, CallerStep, EffectClass, Occurrence, RunName, ToolName
from twiceshy_contract.wire import EffectKey

PolicyDecision = Literal["live", "recorded", "stub", "suspend", "deny"]
"""The call may really run; is answered from the record; by its simulator; stops the fork; is refused."""

PolicyRule = Literal[
    "not in a fork",
    "before the cut",
    "arguments differ",
    "outcome unknown",
    "recorded",
    "read",
    "allowed by the fork",
    "needs approval",
    "approval denied",
    "simulator",
    "simulator failed",
    "registry: recorded",
    "registry: stub",
    "registry: suspend",
    "registry: deny",
    "reads: recorded",
    "live calls used up",
    "arguments not allowed",
    "not registered",
    "nothing may answer",
    "injected",
    "denied by a person",
    "allowed once",
]
"""The rule that decided. These words stay."""


class PolicyCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call that somebody might make. With `tool_version` the tool is that version, whatever holds."""

    tool: ToolName
    arguments: dict[str, object] = {}
    step: CallerStep | None = None
    business_key: BusinessKey | None = None
    occurrence: Occurrence = 1
    tool_version: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None


class ForkOf(ForkTerms, frozen=True, kw_only=True):
    """A fork that need not exist: of which run, and on which terms."""

    parent: RunName


class PolicyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ask what calls may do: in the fork `run`, or in one on the terms of `fork`.

    Each is judged as if those before it had been made. With `as_of`, the registry is that of then.
    """

    calls: Annotated[tuple[PolicyCall, ...], msgspec.Meta(min_length=1, max_length=500)]
    run: RunName | None = None
    fork: ForkOf | None = None
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def __post_init__(self) -> None:
        if (self.run is None) == (self.fork is None):
            raise ValueError("name either the `run` of the calls or the `fork` that they would be made in")


class PolicyRuling(msgspec.Struct, frozen=True, kw_only=True):
    """What one call may do and the rule that decided so.

    `tool_version` is the version that names the call (0: not declared), `rules_version` the one whose rule for forks
    was weighed beside it. `origin` is the key of the effect whose outcome it is.
    """

    tool: str
    decision: PolicyDecision
    rule: PolicyRule
    tool_version: int
    rules_version: int
    class_: EffectClass = msgspec.field(name="class")
    provenance: Provenance | None = None
    origin: EffectKey | None = None
    outcome: Outcome | None = None


class PolicyAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One ruling for each call, in their order."""

    decisions: tuple[PolicyRuling, ...]
