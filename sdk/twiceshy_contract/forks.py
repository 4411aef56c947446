"""Wire structs of a fork: a run that goes on from a step of another one, and may do less."""

from typing import Annotated, Literal

import msgspec

from twiceshy_contract.names import RunName, ToolName
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
    """Fork a run under the name `fork`. The same terms again find the same fork."""

    fork: RunName
