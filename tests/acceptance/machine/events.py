"""What may happen next in an example, and how often: the events that the machine draws.

An event names effects and attempts by how they stand in the oracle, so that it means something in any state.
"""

from dataclasses import dataclass
from typing import Final, Literal

from hypothesis import strategies as st

from tests.acceptance.machine.oracle import Rule
from tests.acceptance.machine.verbs import Reconsidered, Settlement

Who = Literal["latest", "earlier", "stranger"]
AsOf = Literal["read", "future"]
Change = Literal["nothing", "to", "note", "distinct", "run", "tool"]
Saying = Literal["not_applied", "unknown", "rejected", "renew", "commit", "release"]
Incident = Literal["look", "list", "raise", "lower", "lower by code", "finish", "finish the other"]


@dataclass(frozen=True, kw_only=True)
class Start:
    """Any call, of a new attempt, at one of the services."""

    at: int
    tool: int
    to: str
    note: str
    run: int | None
    rule: Rule
    occurrence: int
    lease: int | None


@dataclass(frozen=True, kw_only=True)
class Again:
    """A call that was made before, maybe changed in one thing, of a new attempt; maybe given up at once.

    With it, the agent may tell that it knows every outcome.
    """

    at: int
    which: int
    change: Change
    lease: int | None
    reopen: bool
    delivers: bool
    is_given_up: bool


@dataclass(frozen=True, kw_only=True)
class Resend:
    """A begin whose answer was lost, by its own attempt."""

    at: int
    which: int
    who: Who
    lease: int | None


@dataclass(frozen=True, kw_only=True)
class Say:
    """An attempt, or somebody who is none, says what it knows, under its fence or one beside it."""

    at: int
    which: int
    who: Who
    off: int
    saying: Saying
    number: int


@dataclass(frozen=True, kw_only=True)
class Settle:
    """An operator settles, with a result or without one, on word that may be as old as the last look."""

    at: int
    which: int
    off: int
    settlement: Settlement
    result: int
    as_of: AsOf | None


@dataclass(frozen=True, kw_only=True)
class Reconsider:
    """An operator ends an effect that waits, or lets it be tried again."""

    at: int
    which: int
    verb: Reconsidered


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Time passes for all effects."""

    seconds: int


@dataclass(frozen=True, kw_only=True)
class Meanwhile:
    """Something happens around an effect."""

    at: int
    which: int
    incident: Incident


Event = Start | Again | Resend | Say | Settle | Reconsider | Pass | Meanwhile

_at: Final = st.integers(0, 1)
_which: Final = st.sampled_from([0, 0, 0, 0, 1, 1, 2])
_who: Final = st.sampled_from(["latest"] * 5 + ["earlier"] * 3 + ["stranger"])
_off: Final = st.sampled_from([0] * 12 + [1, -1])
_lease: Final = st.sampled_from([None, 25, 45])
_seldom: Final = st.sampled_from([False] * 5 + [True])

starts: Final = st.builds(
    Start,
    at=_at,
    tool=st.sampled_from([0, 1, 2, 3, 4, 5, 5]),
    to=st.sampled_from("ab"),
    note=st.sampled_from("xy"),
    run=st.sampled_from([0, 0, 0, 1, None]),
    rule=st.sampled_from(["once", "once", "step", "business_key", "business_key"]),
    occurrence=st.sampled_from([1, 1, 1, 2]),
    lease=_lease,
)
_KINDS: Final[list[st.SearchStrategy[Event]]] = [
    starts,
    *[
        st.builds(
            Again,
            at=_at,
            which=_which,
            change=st.sampled_from(["nothing"] * 8 + ["to", "note", "note", "note", "distinct", "run", "tool"]),
            lease=_lease,
            reopen=_seldom,
            delivers=_seldom,
            is_given_up=_seldom,
        )
    ]
    * 3,
    st.builds(Resend, at=_at, which=_which, who=_who, lease=_lease),
    *[
        st.builds(
            Say,
            at=_at,
            which=_which,
            who=_who,
            off=_off,
            saying=st.sampled_from(
                ["not_applied"] * 4 + ["unknown"] * 3 + ["renew"] * 2 + ["rejected", "commit", "commit", "release"]
            ),
            number=st.integers(0, 2),
        )
    ]
    * 4,
    *[
        st.builds(
            Settle,
            at=_at,
            which=_which,
            off=_off,
            settlement=st.sampled_from(["not_applied"] * 4 + ["applied", "closed"]),
            result=st.integers(0, 2),
            as_of=st.sampled_from([None, None, "read", "future"]),
        )
    ]
    * 2,
    st.builds(Reconsider, at=_at, which=_which, verb=st.sampled_from(["cancel", "reopen", "reopen"])),
    *[st.builds(Pass, seconds=st.sampled_from([20, 30, 30, 40, 100]))] * 2,
    st.builds(
        Meanwhile,
        at=_at,
        which=_which,
        incident=st.sampled_from(
            ["look"] * 4 + ["raise"] * 2 + ["lower", "lower by code", "finish", "finish the other", "list"]
        ),
    ),
]
events: Final = st.integers(0, len(_KINDS) - 1).flatmap(_KINDS.__getitem__)
"""Any event; what leads an effect on is drawn more often than what ends it."""
