"""Wire structs of a fork: a run that goes on from a step of another one, and may do less, and of where it stops."""

from typing import Annotated, Final, Literal

import msgspec

from twiceshy_contract.effects import Outcome, ReportedError
from twiceshy_contract.events import Digest, Seq
from twiceshy_contract.names import Person, Reason, RunName, ToolName
from twiceshy_contract.outcomes import TypeName
from twiceshy_contract.policies import Expression, Part

Reads = Literal["live", "recorded"]
"""Whether a call that only reads may really run where the record has no answer."""


class LiveTerms(Part, frozen=True, kw_only=True, omit_defaults=True):
    """A tool that may really run: calls whose `arguments` make `when` true, at most `calls` of them."""

    tool: ToolName
    when: Expression | None = None
    calls: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class ForkTerms(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a fork may do: up to step `at` of its parent all is from the record, and only `live` tools really run."""

    at: Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
    reads: Reads = "live"
    live: Annotated[tuple[LiveTerms, ...], msgspec.Meta(max_length=200)] = ()

    def __post_init__(self) -> None:
        names = [terms.tool for terms in self.live]
        if len(set(names)) != len(names):
            raise ValueError("a tool is named once in `live`; put more conditions into one `when`")


class ForkRequest(ForkTerms, frozen=True, kw_only=True):
    """Fork a run under the name `fork`. The same terms again find the same fork.

    A fork of a log is cut at an `event` of it; `overrides` is the digest of the outcomes that are put into it.
    """

    fork: RunName
    event: Seq | None = None
    overrides: Digest | None = None


CREDENTIAL: Final = "fork."
"""How the token begins that drives a fork: `fork.<the run's id in hex>.<what proves it>`."""

PauseWord = Literal["inject", "deny", "allow"]
"""A person gives an outcome in the tool's place; refuses the call; or lets this one call really run."""
PauseState = Literal["open", "answered"]


class InjectedOutcome(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a person gives in a tool's place: a `result` in tagged form, or an `error`; never both."""

    result: object = msgspec.UNSET
    error: ReportedError | msgspec.UnsetType = msgspec.UNSET
    result_type: TypeName | None = None

    def __post_init__(self) -> None:
        if (self.result is msgspec.UNSET) == (self.error is msgspec.UNSET):
            raise ValueError("an outcome has either a `result` or an `error`")


class AnswerPauseRequest(Part, frozen=True, kw_only=True, omit_defaults=True):
    """Answer a call at which a fork stopped, once: with an `outcome` to inject, or with the reason of yes or no."""

    answer: PauseWord
    outcome: InjectedOutcome | None = None
    reason: Reason | None = None
    by: Person | None = None

    def __post_init__(self) -> None:
        if (self.answer == "inject") == (self.outcome is None):
            raise ValueError("`inject` needs an `outcome`, and no other answer has one")
        if self.answer != "inject" and self.reason is None:
            raise ValueError(f"`{self.answer}` needs a `reason`")


class ForkPause(msgspec.Struct, frozen=True, kw_only=True):
    """A call at which a fork stopped: why, with which arguments, and what a person answered.

    `digest` is that of the arguments; `spent` says that the fork has used the answer.
    """

    run: str
    key: str
    tool: str
    state: PauseState
    arguments: dict[str, object]
    digest: str
    rule: str
    at: str
    answer: PauseWord | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    by: str | None = None
    answered_at: str | None = None
    spent: bool = False


class PausePage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the calls at which a fork stopped, oldest first."""

    items: tuple[ForkPause, ...]
    next: str | None
