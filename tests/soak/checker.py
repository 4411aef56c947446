"""The checker: reads a whole history and says what must never be, with the entries that prove it.

The idea is Jepsen's: clients record what they asked and heard, and a pure function judges the history afterwards.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, pairwise
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
    "an outcome is what a tool returned",
    "doubt is settled after its time",
    "what was acknowledged is readable",
    "all replicas tell the same",
]
EARLY_SECONDS: Final = 0.05
"""By how much a lease may seem to end early: the instants of its ends are read from two clocks' ticks."""
SETTLE_SECONDS: Final = 1.0
"""How long after the end of a lease nobody may say that nothing was applied: the default of a tool."""
_ENDINGS: Final = ("succeeded", "failed")
_FREED: Final = {"commit": ("succeeded",), "fail": ("pending", "in_doubt", "failed")}
"""Answers to the holder of a lease that say that it has ended. Any other was a refusal, which ends nothing."""


class Violation(msgspec.Struct, frozen=True):
    """A rule that was broken, of which key, and by what."""

    rule: Rule
    key: str
    proof: tuple[Entry, ...]


class _Key:
    """All that is known of one key, by time."""

    def __init__(self, readers: frozenset[str]) -> None:
        self.readers = readers
        self.operations: list[Operation] = []
        self.executions: list[Executed] = []
        self.stands: list[Stands] = []


def check(history: Iterable[Entry]) -> list[Violation]:
    """Return all violations."""
    entries = list(history)
    readers = frozenset(entry.replica for entry in entries if isinstance(entry, Stands))
    keys: defaultdict[str, _Key] = defaultdict(lambda: _Key(readers))
    for entry in entries:
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
        until = max(one.started + one.lease for one in _leases(key, earlier, before=later.started))
        if later.ended < until - EARLY_SECONDS and not _was_ended(key, earlier, later):
            yield Violation("one live lease a key", name, (earlier, later))


def _fences_grow(name: str, key: _Key) -> Iterator[Violation]:
    """An attempt that was granted later has a higher fence, and no other attempt has it."""
    for earlier, later in combinations(_grants(key), 2):
        if later.ended < earlier.started or (earlier.fence == later.fence and earlier.attempt != later.attempt):
            yield Violation("fences grow", name, (earlier, later))


def _no_silent_rerun(name: str, key: _Key) -> Iterator[Violation]:
    """What may have been applied is granted again only once somebody said that it was not.

    A begin that heard of doubt proves it too: the grant that is in doubt may have been lost on its way.
    """
    grants = _grants(key)
    for earlier, later in pairwise(grants):
        if earlier.tool == "side_effect" and not _was_cleared(key, earlier, later):
            yield Violation("no execution after a doubt that nobody settled", name, (earlier, later))
    for doubt in key.operations:
        if doubt.verb != "begin" or doubt.said != "outcome-in-doubt":
            continue
        again = [one for one in grants if one.fence > doubt.fence and one.started > doubt.ended]
        if again and not _was_cleared(key, doubt, again[0]):
            yield Violation("no execution after a doubt that nobody settled", name, (doubt, again[0]))


def _settled_in_time(name: str, key: _Key) -> Iterator[Violation]:
    """Nobody's word that nothing was applied is taken while the attempt may yet come."""
    for word in key.operations:
        if not _clears(word) or word.said is None:
            continue
        for grant in _grants(key):
            if grant.fence > word.fence or any(one.ended <= word.ended for one in _reports(key, grant)):
                continue
            until = max(one.started + one.lease for one in _leases(key, grant, before=word.started))
            if grant.started < word.started and word.ended < until + SETTLE_SECONDS - EARLY_SECONDS:
                yield Violation("doubt is settled after its time", name, (grant, word))


def _one_execution(name: str, key: _Key) -> Iterator[Violation]:
    """A tool has its effect once, or again after a doubt that was settled, or under one downstream key."""
    fences = {grant.attempt: grant.fence for grant in _grants(key)}
    for earlier, later in combinations(sorted(key.executions, key=lambda one: one.at), 2):
        if earlier.attempt and earlier.attempt == later.attempt:
            yield Violation("one execution without a doubt in between", name, (earlier, later))
        elif earlier.tool == "idempotent" and earlier.downstream_key == later.downstream_key:
            continue
        elif not any(_lies_between(one, earlier, later, fences) for one in key.operations if _clears(one)):
            yield Violation("one execution without a doubt in between", name, (earlier, later))


def _lies_between(word: Operation, earlier: Executed, later: Executed, fences: dict[str, int]) -> bool:
    """Say whether a word that nothing was applied may have been taken between two attempts."""
    low, high = sorted((fences.get(earlier.attempt, 0), fences.get(later.attempt, 0)))
    if low == 0:  # of a program it is not known which grant it had
        return word.started <= later.at and (word.said is None or word.ended >= earlier.at)
    return low <= word.fence < high


def _nothing_after_success(name: str, key: _Key) -> Iterator[Violation]:
    """After a success was told, every begin is told it too; no lease is renewed and no doubt is settled otherwise."""
    told = [one for one in key.operations if _tells_success(one)]
    if not told:
        return
    first = min(told, key=lambda one: one.ended)
    for one in key.operations:
        if not one.is_answered or one.started <= first.ended:
            continue
        is_open = one.said in ("executing", "pending", "in_doubt")
        if is_open or (one.verb == "begin" and one.said != "replay"):
            yield Violation("nothing runs after an acknowledged success", name, (first, one))


def _one_outcome(name: str, key: _Key) -> Iterator[Violation]:
    """Whoever is told an outcome is told the same, and it is what a tool returned."""
    told: list[Operation | Stands] = [one for one in key.operations if _tells_success(one)]
    told += [one for one in key.stands if one.state == "succeeded"]
    for one in told[1:]:
        if one.outcome != told[0].outcome:
            yield Violation("every answer tells one outcome", name, (told[0], one))
    receipts = [one.receipt for one in key.executions]
    if told and told[0].outcome not in receipts:
        yield Violation("an outcome is what a tool returned", name, (told[0], *key.executions))


def _readable(name: str, key: _Key) -> Iterator[Violation]:
    """What was told to have succeeded stands so in the end, for each of those who looked at anything."""
    told = [one for one in key.operations if _tells_success(one)]
    succeeded = {one.replica for one in key.stands if one.state == "succeeded"}
    if told and (succeeded != key.readers or any(one.state != "succeeded" for one in key.stands)):
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
    _settled_in_time,
    _one_execution,
    _nothing_after_success,
    _one_outcome,
    _readable,
    _replicas_agree,
)


def _tells_success(one: Operation) -> bool:
    return one.said in ("replay", "succeeded", "returned")


def _leases(key: _Key, grant: Operation, before: float) -> list[Operation]:
    """Return the grant and all that surely lengthened its lease before a time: renewals, and the same begin again."""
    lengthened = [
        one
        for one in key.operations
        if one.attempt == grant.attempt
        and (one.verb, one.said) in (("renew", "executing"), ("begin", "execute"))
        and one.ended <= before
    ]
    return [grant, *lengthened]


def _reports(key: _Key, grant: Operation) -> list[Operation]:
    """Return what the attempt may have reported: what was taken, and what was lost on its way."""
    return [
        one
        for one in key.operations
        if one.attempt == grant.attempt and one.verb in _FREED and (one.said is None or one.said in _FREED[one.verb])
    ]


def _was_ended(key: _Key, grant: Operation, later: Operation) -> bool:
    """Say whether the attempt, or an operator, may have ended the lease before the later grant."""
    words = [one for one in key.operations if _clears(one) and grant.fence <= one.fence < later.fence]
    return any(one.started <= later.ended for one in (*_reports(key, grant), *words))


def _was_cleared(key: _Key, unsettled: Operation, later: Operation) -> bool:
    """Say whether somebody may have said, between two fences, that the attempt applied nothing."""
    return any(
        one.started <= later.ended
        and (
            (_clears(one) and unsettled.fence <= one.fence < later.fence)
            or (one.verb == "fail" and one.what == "not_applied" and one.said in (None, "pending")
                and one.attempt in _attempts(key, unsettled))
        )
        for one in key.operations
    )  # fmt: skip


def _attempts(key: _Key, unsettled: Operation) -> set[str]:
    """Return the attempts that were granted an operation's fence."""
    return {one.attempt for one in _grants(key) if one.fence == unsettled.fence}


def _clears(one: Operation) -> bool:
    """Say whether an operation may have said that nothing was applied: it was taken, or its answer was lost."""
    return one.verb == "resolve" and one.what == "not_applied" and one.said in (None, "pending")


def summary(violations: Sequence[Violation]) -> str:
    """Write violations for people, the worst cases first."""
    lines = []
    for violation in violations[:20]:
        lines.append(f"{violation.rule}: {violation.key}")
        lines += [f"    {msgspec.json.encode(entry).decode()}" for entry in violation.proof]
    if len(violations) > 20:
        lines.append(f"... and {len(violations) - 20} more")
    return "\n".join(lines)
