"""A fork: a run that goes on from a point of another one, and may do less.

Its steps go on from the cut, so that a place in its record is one number: up to `at` it is its parent's, after it its
own. A fork of a fork has the record of both.

A child of a fork, and each run below it, obeys the fork's terms: it may never do more than the run that started it. It
has a record of its own, that of the run which its parent's record started under the same name.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final, Literal

import msgspec

from guard.core.effects import RunId
from guard.core.templates import Known, is_true
from twiceshy_contract.forks import Reads
from twiceshy_contract.names import ToolName
from twiceshy_contract.policies import Expression
from twiceshy_contract.refusals import Refusal

DEEPEST: Final = 32
"""Runs around a run below a fork: so many blocks within each other are a programming mistake."""

Allowance = Literal["not named", "other arguments", "used up", "allowed"]
"""What the terms of a fork say of a call that would really run."""


class LiveTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that may really run in a fork: calls whose `arguments` make `when` true, at most `calls` of them."""

    tool: ToolName
    when: Expression | None = None
    calls: int | None = None


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """Where a fork comes from and what it may do: up to step `at` of its parent all is from the record.

    One of a log was cut at an `event` of it, and `overrides` is the digest of what was put into that. A child of a fork
    is one itself: `within` are the runs around it, first the one that was forked. Its record `is_empty` where its
    parent's record started no such child.
    """

    parent: str
    parent_id: RunId
    at: int
    reads: Reads = "live"
    live: tuple[LiveTool, ...] = ()
    event: int | None = None
    overrides: str | None = None
    within: tuple[RunId, ...] = ()
    is_empty: bool = False

    def counted_in(self, run: RunId) -> RunId:
        """Return the run that was forked, under which the live calls of all below it count; `run` is this one."""
        return self.within[0] if self.within else run

    def terms_of(self, tool: str) -> LiveTool | None:
        """Find what is said of a tool that may really run."""
        return next((terms for terms in self.live if terms.tool == tool), None)


def is_within(run: RunId, fork: Fork | None, root: RunId) -> bool:
    """Say whether a run is the fork `root`, or lies below it."""
    return run == root or (fork is not None and root in fork.within)


def child_of(parent: RunId, fork: Fork, record: tuple[str, RunId] | None) -> Fork:
    """Return what a child of a fork is: it may do what its parent may. `record` is the run that it has the record of.

    Nothing of that record is before the cut: a child that was over by then is never started again.
    """
    within = (*fork.within, parent)
    fork = msgspec.structs.replace(fork, event=None, overrides=None)
    if record is None:
        return msgspec.structs.replace(fork, at=0, within=within, is_empty=True)
    name, run = record
    return msgspec.structs.replace(fork, parent=name, parent_id=run, at=0, within=within, is_empty=False)


def counterpart(child: str, parent: str, record: str) -> str | None:
    """Return how the child of a run is called in that run's record; None where the child has not its parent's name."""
    rest = child.removeprefix(parent)
    return record + rest if rest and rest != child else None


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
    if fork.is_empty:
        return Lineage(head=(), tail=())
    ancestors = list(takewhile(lambda ancestor: not ancestor.is_empty, ancestors))
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
