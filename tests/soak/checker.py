"""The checker: reads a whole history and says what must never be, with the entries that prove it.

The idea is Jepsen's: clients record what they asked and heard, and a pure function judges the history afterwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal

import msgspec

from tests.soak.history import Entry, Executed, Operation, Stands

Rule = Literal[
    "one live lease a key",
    "fences grow",
    "no execution after a doubt that nobody settled",
    "one execution without a doubt in between",
    "nothing runs after an acknowledged success",
    "every answer tells one outcome",
    "what was acknowledged is readable",
    "all replicas tell the same",
]
EARLY_SECONDS: Final = 0.05
"""By how much a lease may seem to end early: the instants of its ends are read from two clocks' ticks."""
_ENDINGS: Final = ("succeeded", "failed")


class Violation(msgspec.Struct, frozen=True):
    """A rule that was broken, of which key, and by what."""

    rule: Rule
    key: str
    proof: tuple[Entry, ...]


class _Key:
    """All that is known of one key, by time."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.executions: list[Executed] = []
        self.stands: list[Stands] = []


def check(history: Iterable[Entry]) -> list[Violation]:
    """Return all violations."""
    keys: defaultdict[str, _Key] = defaultdict(_Key)
    for entry in history:
        if isinstance(entry, Operation) and entry.key:
            keys[entry.key].operations.append(entry)
        elif isinstance(entry, Executed):
            keys[entry.key].executions.append(entry)
        elif isinstance(entry, Stands):
            keys[entry.key].stands.append(entry)
    return [violation for name, key in keys.items() for rule in _RULES for violation in rule(name, key)]


def _grants(key: _Key) -> list[Operation]:
    """Return the first grant of each attempt, by fence."""
    first: dict[tuple[int, str], Operation] = {}
    for operation in sorted(key.operations, key=lambda one: one.ended):
        if operation.verb == "begin" and operation.said == "execute":
            first.setdefault((operation.fence, operation.attempt), operation)
    return [first[name] for name in sorted(first)]


def _one_live_lease(name: str, key: _Key) -> Iterator[Violation]:
    """A lease is granted only after the one before it has ended, or was ended."""
    for earlier, later in pairwise(_grants(key)):
        if earlier.fence == later.fence:
            yield Violation("fences grow", name, (earlier, later))
            continue
        renewed = [
            one.started + one.lease
            for one in key.operations
            if one.verb == "renew"
            and one.attempt == earlier.attempt
            and one.said == "executing"
            and one.ended <= later.started
        ]
        until = max([earlier.started + earlier.lease, *renewed])
        if later.ended < until - EARLY_SECONDS and not _was_ended(key, earlier, before=later.ended):
            yield Violation("one live lease a key", name, (earlier, later))


def _fences_grow(name: str, key: _Key) -> Iterator[Violation]:
    """An attempt that was granted later has a higher fence."""
    grants = _grants(key)
    for earlier, later in pairwise(grants):
        if later.ended < earlier.started:
            yield Violation("fences grow", name, (earlier, later))


def _no_silent_rerun(name: str, key: _Key) -> Iterator[Violation]:
    """What may have been applied is granted again only once somebody said that it was not."""
    for earlier, later in pairwise(_grants(key)):
        if earlier.tool == "side_effect" and not _was_cleared(key, earlier, before=later.ended):
            yield Violation("no execution after a doubt that nobody settled", name, (earlier, later))


def _one_execution(name: str, key: _Key) -> Iterator[Violation]:
    """A tool has its effect once, or again after a doubt that was settled, or under one downstream key."""
    executions = sorted(key.executions, key=lambda one: one.at)
    for earlier, later in pairwise(executions):
        if earlier.attempt == later.attempt and earlier.attempt:
            yield Violation("one execution without a doubt in between", name, (earlier, later))
        elif earlier.tool == "idempotent" and earlier.downstream_key == later.downstream_key:
            continue
        elif not any(_clears(one) and one.started <= later.at for one in key.operations):
            yield Violation("one execution without a doubt in between", name, (earlier, later))


def _nothing_after_success(name: str, key: _Key) -> Iterator[Violation]:
    """After a success was told, no begin is let execute and none hears that another executes."""
    told = [one for one in key.operations if one.is_answered and _tells_success(one)]
    if not told:
        return
    first = min(told, key=lambda one: one.ended)
    for one in key.operations:
        is_again = one.verb == "begin" and one.said in ("execute", "in-progress", "outcome-in-doubt")
        if is_again and one.started > first.ended:
            yield Violation("nothing runs after an acknowledged success", name, (first, one))


def _one_outcome(name: str, key: _Key) -> Iterator[Violation]:
    """Whoever is told an outcome is told the same."""
    told: list[Operation | Stands] = [one for one in key.operations if one.is_answered and _tells_success(one)]
    told += [one for one in key.stands if one.state == "succeeded"]
    for one in told[1:]:
        if one.outcome != told[0].outcome:
            yield Violation("every answer tells one outcome", name, (told[0], one))


def _readable(name: str, key: _Key) -> Iterator[Violation]:
    """What was told to have succeeded stands so in the end."""
    told = [one for one in key.operations if one.is_answered and _tells_success(one)]
    if told and key.stands and any(one.state != "succeeded" for one in key.stands):
        yield Violation("what was acknowledged is readable", name, (told[0], *key.stands))


def _replicas_agree(name: str, key: _Key) -> Iterator[Violation]:
    """All replicas tell the same of what is over."""
    for one in key.stands[1:]:
        first = key.stands[0]
        is_over = one.state in _ENDINGS or first.state in _ENDINGS
        if is_over and (one.state, one.outcome) != (first.state, first.outcome):
            yield Violation("all replicas tell the same", name, (first, one))


_RULES: Final = (
    _one_live_lease,
    _fences_grow,
    _no_silent_rerun,
    _one_execution,
    _nothing_after_success,
    _one_outcome,
    _readable,
    _replicas_agree,
)


def _tells_success(one: Operation) -> bool:
    return one.said in ("replay", "succeeded", "returned")


def _was_ended(key: _Key, grant: Operation, before: float) -> bool:
    """Say whether the attempt, or an operator, may have ended the lease before a time."""
    return any(
        one.started <= before and ((one.verb in ("commit", "fail") and one.attempt == grant.attempt) or _clears(one))
        for one in key.operations
    )


def _was_cleared(key: _Key, grant: Operation, before: float) -> bool:
    """Say whether somebody may have said, before a time, that the attempt applied nothing."""
    return any(
        one.started <= before and (_clears(one) if one.verb == "resolve" else one.attempt == grant.attempt)
        for one in key.operations
        if one.verb == "resolve" or (one.verb == "fail" and one.what == "not_applied")
    )


def _clears(one: Operation) -> bool:
    """Say whether an operation may have said that nothing was applied: it was taken, or its answer was lost."""
    return one.verb == "resolve" and one.what == "not_applied" and (one.said is None or one.said == "pending")


def summary(violations: Sequence[Violation]) -> str:
    """Write violations for people, the worst cases first."""
    lines = []
    for violation in violations[:20]:
        lines.append(f"{violation.rule}: {violation.key}")
        lines += [f"    {msgspec.json.encode(entry).decode()}" for entry in violation.proof]
    if len(violations) > 20:
        lines.append(f"... and {len(violations) - 20} more")
    return "\n".join(lines)
