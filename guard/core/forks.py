"""A fork: a run that goes on from a point of another one, and may do less.

Its steps go on from the cut, so that a place in its record is one number: up to `at` it is its parent's, after it its
own. A fork of a fork has the record of both.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from guard.core.effects import RunId
from guard.core.templates import Known, is_true
from twiceshy_contract.forks import Reads
from twiceshy_contract.names import ToolName
from twiceshy_contract.policies import Expression
from twiceshy_contract.refusals import Refusal

Allowance = Literal["not named", "other arguments", "used up", "allowed"]
"""What the terms of a fork say of a call that would really run."""


class LiveTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that may really run in a fork: calls whose `arguments` make `when` true, at most `calls` of them."""

    tool: ToolName
    when: Expression | None = None
    calls: int | None = None


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """Where a fork comes from and what it may do: up to step `at` of its parent all is from the record."""

    parent: str
    parent_id: RunId
    at: int
    reads: Reads = "live"
    live: tuple[LiveTool, ...] = ()

    def terms_of(self, tool: str) -> LiveTool | None:
        """Find what is said of a tool that may really run."""
        return next((terms for terms in self.live if terms.tool == tool), None)


def allowance(terms: LiveTool | None, known: Known, made: int) -> Allowance:
    """Say whether one more call may really run, after `made` others. An expression that fails allows nothing."""
    if terms is None:
        return "not named"
    try:
        if terms.when is not None and not is_true(terms.when, known):
            return "other arguments"
    except Refusal:
        return "other arguments"
    return "used up" if terms.calls is not None and made >= terms.calls else "allowed"


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Effects of one run: those after a step and up to another (None: all that follow)."""

    run: RunId
    after: int
    until: int | None

    def has(self, step: int) -> bool:
        """Say whether a step lies within."""
        return self.after < step and (self.until is None or step <= self.until)

    @property
    def is_empty(self) -> bool:
        """Whether no step lies within."""
        return self.until is not None and self.until <= self.after


class Lineage(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a fork: the `head` is what it repeats, the `tail` what it may be served of afterwards.

    Both are in the order of steps. After them come the tails that the ancestors themselves could be served of.
    """

    head: tuple[Span, ...]
    tail: tuple[Span, ...]

    def repeats(self, run: RunId | None, step: int | None) -> bool:
        """Say whether an effect is one that the fork repeats."""
        return step is not None and any(span.run == run and span.has(step) for span in self.head)


def lineage(fork: Fork, ancestors: Sequence[Fork]) -> Lineage:
    """Return the record of a fork. `ancestors` is its parent as a fork, its grandparent as one, and so on."""
    head: list[Span] = []
    tail: list[Span] = []
    rest: list[Span] = []
    runs = [fork.parent_id, *(ancestor.parent_id for ancestor in ancestors)]
    floors = [*(ancestor.at for ancestor in ancestors), 0]
    upper: int | None = None
    for run, floor in zip(runs, floors, strict=True):
        head.append(Span(run=run, after=floor, until=_lower(upper, fork.at)))
        tail.append(Span(run=run, after=max(floor, fork.at), until=upper))
        if upper is not None:
            rest.append(Span(run=run, after=max(floor, upper), until=None))
        upper = _lower(upper, floor)
    return Lineage(head=_filled(head[::-1]), tail=_filled([*tail[::-1], *rest]))


def _lower(upper: int | None, other: int) -> int:
    return other if upper is None else min(upper, other)


def _filled(spans: Sequence[Span]) -> tuple[Span, ...]:
    return tuple(span for span in spans if not span.is_empty)
