"""The checker of histories finds each violation, and passes what only looks like one."""

from typing import Any

import pytest

from tests.soak.checker import Rule, check
from tests.soak.history import EffectClass, Entry, Executed, Operation, Stands, Verb

KEY = "k"


def asked(verb: Verb, said: str | None, at: float, **more: Any) -> Operation:
    """An operation that took a hundredth of a second."""
    told: dict[str, Any] = {"client": "a", "key": KEY, "tool": "side_effect", "started": at, "ended": at + 0.01} | more
    return Operation(verb=verb, said=said, **told)


def granted(attempt: str, fence: int, at: float, tool: EffectClass = "side_effect", lease: float = 1.0) -> Operation:
    """A begin that may execute."""
    return asked("begin", "execute", at, attempt=attempt, fence=fence, lease=lease, tool=tool)


def executed(attempt: str, at: float, tool: EffectClass = "side_effect", downstream: str = "d") -> Executed:
    """A tool's effect."""
    return Executed(client="a", key=KEY, tool=tool, attempt=attempt, downstream_key=downstream, receipt="ok", at=at)


def stands(state: str, outcome: object = None, replica: str = "one") -> Stands:
    """How the effect stands in the end."""
    return Stands(replica=replica, key=KEY, state=state, outcome=outcome)


SETTLED = asked("resolve", "pending", 13.0, what="not_applied", fence=1)
LOST_WORD = asked("resolve", None, 13.0, what="not_applied", fence=1)
REFUSED_WORD = asked("resolve", "not-possible", 13.0, what="not_applied", fence=1)
DONE = asked("commit", "succeeded", 1.0, attempt="a", outcome="ok")

CLEAN: dict[str, list[Entry]] = {
    "a call that is replayed": [
        granted("a", 1, 0.0), executed("a", 0.5), DONE, asked("begin", "replay", 2.0, outcome="ok"),
        stands("succeeded", "ok"), stands("succeeded", "ok", "database"),
    ],
    "the same attempt asks again": [granted("a", 1, 0.0), granted("a", 1, 0.2, lease=0.8), executed("a", 0.5), DONE],
    "nothing was applied, and another tries": [
        granted("a", 1, 0.0), asked("fail", "pending", 0.1, attempt="a", what="not_applied"), granted("b", 2, 0.2),
    ],
    "a failure whose answer was lost": [
        granted("a", 1, 0.0), asked("fail", None, 0.1, attempt="a", what="not_applied"), granted("b", 2, 0.2),
    ],
    "doubt that was settled": [
        granted("a", 1, 0.0), executed("a", 0.5), SETTLED, granted("b", 2, 14.0), executed("b", 14.1),
    ],
    "doubt that may have been settled": [
        granted("a", 1, 0.0), executed("a", 0.5), LOST_WORD, granted("b", 2, 14.0), executed("b", 14.1),
    ],
    "a provider that knows the downstream key": [
        granted("a", 1, 0.0, "idempotent"), executed("a", 0.5, "idempotent"),
        granted("b", 2, 1.2, "idempotent"), executed("b", 1.3, "idempotent"),
    ],
    "a begin that crosses the success": [
        granted("a", 1, 0.0), executed("a", 0.5), asked("begin", "in-progress", 1.005), DONE,
    ],
}  # fmt: skip

BROKEN: dict[str, tuple[Rule, list[Entry]]] = {
    "two leases at once": (
        "one live lease a key", [granted("a", 1, 0.0, "idempotent"), granted("b", 2, 0.5, "idempotent")],
    ),
    "a lease that was renewed and taken": (
        "one live lease a key",
        [
            granted("a", 1, 0.0, "idempotent"), asked("renew", "executing", 0.9, attempt="a", lease=1.0),
            granted("b", 2, 1.5, "idempotent"),
        ],
    ),
    "one fence for two": ("fences grow", [granted("a", 1, 0.0), granted("b", 1, 9.0)]),
    "fences that fall": ("fences grow", [granted("a", 2, 0.0), granted("b", 1, 9.0)]),
    "a doubt that nobody settled": (
        "no execution after a doubt that nobody settled", [granted("a", 1, 0.0), granted("b", 2, 9.0)],
    ),
    "a word that was refused settles nothing": (
        "no execution after a doubt that nobody settled", [granted("a", 1, 0.0), REFUSED_WORD, granted("b", 2, 19.0)],
    ),
    "two executions": (
        "one execution without a doubt in between", [granted("a", 1, 0.0), executed("a", 0.5), executed("b", 0.6)],
    ),
    "two executions under two downstream keys": (
        "one execution without a doubt in between",
        [executed("a", 0.5, "idempotent", "d"), executed("b", 0.6, "idempotent", "e")],
    ),
    "an execution after a success": (
        "nothing runs after an acknowledged success", [DONE, SETTLED, granted("b", 2, 15.0)],
    ),
    "two outcomes": (
        "every answer tells one outcome", [DONE, asked("begin", "replay", 2.0, outcome="other")],
    ),
    "another outcome in the end": ("every answer tells one outcome", [DONE, stands("succeeded", "other")]),
    "a success that is gone": ("what was acknowledged is readable", [DONE, stands("in_doubt")]),
    "replicas that differ": (
        "all replicas tell the same", [stands("succeeded", "ok"), stands("executing", None, "two")],
    ),
    "a lease that the same begin lengthened, and taken": (
        "one live lease a key",
        [granted("a", 1, 0.0, "idempotent"), granted("a", 1, 0.8, "idempotent"), granted("b", 2, 1.5, "idempotent")],
    ),
    "a refused commit ends no lease": (
        "one live lease a key",
        [granted("a", 1, 0.0, "idempotent"), asked("commit", "lease-lost", 0.1, attempt="a"),
         granted("b", 2, 0.5, "idempotent")],
    ),
    "the word about an older doubt settles no newer one": (
        "no execution after a doubt that nobody settled",
        [granted("a", 1, 0.0), SETTLED, granted("b", 2, 14.0), granted("c", 3, 29.0)],
    ),
    "a refused failure settles nothing": (
        "no execution after a doubt that nobody settled",
        [granted("a", 1, 0.0), asked("fail", "lease-lost", 0.1, attempt="a", what="not_applied"),
         granted("b", 2, 9.0)],
    ),
    "a failure that left doubt settles nothing": (
        "no execution after a doubt that nobody settled",
        [granted("a", 1, 0.0), asked("fail", "in_doubt", 0.1, attempt="a", what="not_applied"),
         granted("b", 2, 9.0)],
    ),
    "doubt about a grant that was lost on its way": (
        "no execution after a doubt that nobody settled",
        [asked("begin", "outcome-in-doubt", 3.0, fence=1), granted("b", 2, 9.0)],
    ),
    "a word that was taken too soon": (
        "doubt is settled after its time",
        [granted("a", 1, 0.0), asked("resolve", "pending", 1.5, what="not_applied", fence=1)],
    ),
    "three executions and one doubt": (
        "one execution without a doubt in between",
        [granted("a", 1, 0.0), executed("a", 0.5), SETTLED, granted("b", 2, 14.0), executed("b", 14.1),
         granted("c", 3, 29.0), executed("c", 29.1)],
    ),
    "a begin that must wait after a success": (
        "nothing runs after an acknowledged success", [DONE, asked("begin", "retry-later", 2.0)],
    ),
    "a lease that is renewed after a success": (
        "nothing runs after an acknowledged success", [DONE, asked("renew", "executing", 2.0, attempt="b")],
    ),
    "an outcome that no tool returned": (
        "an outcome is what a tool returned",
        [executed("a", 0.5), asked("commit", "succeeded", 1.0, attempt="a", outcome="of another"),
         stands("succeeded", "of another")],
    ),
    "a success that is gone from the database": (
        "what was acknowledged is readable",
        [DONE, stands("succeeded", "ok"),
         Stands(replica="database", key="another", state="succeeded", outcome="ok")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_history_passes(name: str) -> None:
    assert check(CLEAN[name]) == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_history_is_found(name: str) -> None:
    rule, history = BROKEN[name]
    assert rule in {violation.rule for violation in check(history)}
