"""The life of an effect as one table.

Theory of operation. An effect has one of five public states. Doubt belongs to attempts: an attempt is
*unresolved* when it was granted a lease and has neither said what became of it nor been settled by someone who
knows. From that four rules follow, and the search in the tests finds a double execution when any of them is
switched off:

1. While another attempt is unresolved, one attempt's word that it applied nothing settles nothing, and no pending
   effect is granted.
2. A client fences itself: it starts and sends nothing after its lease's deadline (the client's half).
3. Word from outside that nothing was applied counts only after the settle time, when no request can be on
   its way any more.
4. A doubtful effect runs again under the same downstream key only while the provider's window is sure to
   outlast the new lease and the settle time.

`decide` applies `deadline` first where a lease has run out, then finds the first row of the table whose state,
event and conditions hold. No row: `not_possible`, nothing is touched. The documents print the table.
"""

from typing import Final, Literal

import msgspec

from guard.core.acts import ACTS, Act
from guard.core.effects import NEVER_GRANTED, AttemptToken, Instant, Life
from guard.core.lease import Rules
from guard.core.situation import CONDITIONS, Condition, Event, EventName, Situation
from twiceshy_contract.names import PublicState

Source = Literal["absent", "pending", "executing", "succeeded", "failed", "in_doubt"]
Verdict = Literal[
    "granted", "done", "repeated", "replay", "in_progress", "retry_later", "exhausted", "in_doubt",
    "lease_lost", "superseded", "contradicted", "unsettled", "changed_since", "not_possible", "await_approval",
    "approval_expired",
]  # fmt: skip
_ABSENT: Final = Life(state="pending")


class Row(msgspec.Struct, frozen=True):
    """One row of the table: in `source`, on `event`, when all of `when` hold, go to `target` and say `verdict`."""

    source: Source
    event: EventName
    when: tuple[Condition, ...]
    target: PublicState
    act: Act
    verdict: Verdict


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the table says: the life afterwards, the verdict, and the row (none: not possible)."""

    life: Life
    verdict: Verdict
    row: Row | None
    alert: bool = False


TABLE: Final[tuple[Row, ...]] = (
    Row("absent", "begin", ("approval open",), "pending", "nothing", "await_approval"),
    Row("absent", "begin", ("approval expired",), "pending", "nothing", "approval_expired"),
    Row("absent", "begin", (), "executing", "grant", "granted"),
    Row("absent", "release", (), "pending", "note", "done"),
    # pending: nothing is applied and nobody holds the lease
    Row("pending", "begin", ("own lease", "alone or re-run harmless"), "executing", "regrant", "granted"),
    Row("pending", "begin", ("token ended",), "pending", "nothing", "lease_lost"),
    Row("pending", "begin", ("approval open",), "pending", "nothing", "await_approval"),
    Row("pending", "begin", ("approval expired",), "pending", "nothing", "approval_expired"),
    Row("pending", "begin", ("attempts left", "too early"), "pending", "nothing", "retry_later"),
    Row("pending", "begin", ("attempts left", "alone or re-run harmless"), "executing", "grant", "granted"),
    Row("pending", "begin", ("attempts left",), "in_doubt", "nothing", "in_doubt"),
    Row("pending", "begin", (), "pending", "nothing", "exhausted"),
    Row("pending", "success", ("by an attempt",), "succeeded", "finish", "done"),
    Row("pending", "not_applied", ("said so before",), "pending", "nothing", "repeated"),
    Row("pending", "not_applied", ("by an attempt", "unreported", "another unresolved"), "pending", "note", "done"),
    Row("pending", "not_applied", ("by an attempt", "unreported"), "pending", "retry", "done"),
    Row("pending", "rejected", ("said so before",), "pending", "nothing", "repeated"),
    Row("pending", "rejected", ("by an attempt", "unreported", "another unresolved"), "pending", "note", "done"),
    Row("pending", "rejected", ("by an attempt", "unreported"), "failed", "reject", "done"),
    Row("pending", "unknown", ("said so before",), "pending", "nothing", "repeated"),
    Row("pending", "unknown", ("by an attempt", "unreported"), "pending", "note", "done"),
    Row("pending", "found_not_applied", ("fence moved",), "pending", "nothing", "changed_since"),
    Row("pending", "found_not_applied", ("settled",), "pending", "settle", "done"),
    Row("pending", "found_not_applied", (), "pending", "nothing", "unsettled"),
    Row("pending", "found_applied", ("fence moved",), "pending", "nothing", "changed_since"),
    Row("pending", "found_applied", ("another unresolved",), "succeeded", "finish", "done"),
    Row("pending", "release", (), "pending", "note", "done"),
    Row("pending", "denied", ("another unresolved",), "pending", "nothing", "unsettled"),
    Row("pending", "denied", (), "failed", "end", "done"),
    Row("pending", "cancelled", ("another unresolved",), "pending", "nothing", "unsettled"),
    Row("pending", "cancelled", (), "failed", "end", "done"),
    Row("pending", "reopened", (), "pending", "reopen", "done"),
    Row("pending", "renew", ("own lease", "alone or re-run harmless"), "executing", "regrant", "done"),
    Row("pending", "renew", ("by an attempt",), "pending", "nothing", "lease_lost"),
    # executing: one attempt holds the lease
    Row("executing", "deadline", ("idempotent",), "pending", "lapse", "done"),
    Row("executing", "deadline", (), "in_doubt", "doubt", "done"),
    Row("executing", "begin", ("own lease", "alone or re-run harmless"), "executing", "regrant", "granted"),
    Row("executing", "begin", ("token ended",), "executing", "nothing", "lease_lost"),
    Row("executing", "begin", (), "executing", "nothing", "in_progress"),
    Row("executing", "success", ("by an attempt",), "succeeded", "finish", "done"),
    Row(
        "executing",
        "not_applied",
        ("by the latest", "unreported", "harmless anyway"),
        "pending",
        "lapse",
        "done",
    ),
    Row("executing", "not_applied", ("by the latest", "unreported", "another unresolved"), "in_doubt", "doubt", "done"),
    Row("executing", "not_applied", ("by the latest", "unreported"), "pending", "retry", "done"),
    Row("executing", "rejected", ("by the latest", "unreported", "harmless anyway"), "failed", "reject", "done"),
    Row("executing", "rejected", ("by the latest", "unreported", "another unresolved"), "in_doubt", "doubt", "done"),
    Row("executing", "rejected", ("by the latest", "unreported"), "failed", "reject", "done"),
    Row("executing", "unknown", ("by the latest", "unreported", "idempotent"), "pending", "lapse", "done"),
    Row("executing", "unknown", ("by the latest", "unreported"), "in_doubt", "doubt", "done"),
    Row("executing", "not_applied", ("said so before",), "executing", "nothing", "repeated"),
    Row("executing", "not_applied", ("by an attempt", "unreported"), "executing", "note", "done"),
    Row("executing", "rejected", ("said so before",), "executing", "nothing", "repeated"),
    Row("executing", "rejected", ("by an attempt", "unreported"), "executing", "note", "done"),
    Row("executing", "unknown", ("said so before",), "executing", "nothing", "repeated"),
    Row("executing", "unknown", ("by an attempt", "unreported"), "executing", "note", "done"),
    Row("executing", "renew", ("own lease", "alone or re-run harmless"), "executing", "regrant", "done"),
    Row("executing", "renew", ("by an attempt",), "executing", "nothing", "lease_lost"),
    Row("executing", "release", ("own lease", "harmless anyway"), "pending", "unwind", "done"),
    Row("executing", "release", ("own lease", "another unresolved"), "in_doubt", "doubt", "done"),
    Row("executing", "release", ("own lease",), "pending", "unwind", "done"),
    Row("executing", "release", (), "executing", "note", "done"),
    # in_doubt: an attempt ended and nobody knows what became of it
    Row("in_doubt", "begin", ("own lease", "alone or re-run harmless"), "executing", "regrant", "granted"),
    Row("in_doubt", "begin", ("token ended",), "in_doubt", "nothing", "lease_lost"),
    Row("in_doubt", "begin", ("re-run harmless", "attempts left"), "executing", "grant", "granted"),
    Row("in_doubt", "begin", (), "in_doubt", "nothing", "in_doubt"),
    Row("in_doubt", "renew", ("own lease", "alone or re-run harmless"), "executing", "regrant", "done"),
    Row("in_doubt", "renew", ("by an attempt",), "in_doubt", "nothing", "lease_lost"),
    Row("in_doubt", "success", ("by an attempt",), "succeeded", "finish", "done"),
    Row("in_doubt", "not_applied", ("said so before",), "in_doubt", "nothing", "repeated"),
    Row("in_doubt", "not_applied", ("by an attempt", "unreported", "another unresolved"), "in_doubt", "note", "done"),
    Row("in_doubt", "not_applied", ("by an attempt", "unreported"), "pending", "retry", "done"),
    Row("in_doubt", "rejected", ("said so before",), "in_doubt", "nothing", "repeated"),
    Row("in_doubt", "rejected", ("by an attempt", "unreported", "another unresolved"), "in_doubt", "note", "done"),
    Row("in_doubt", "rejected", ("by an attempt", "unreported"), "failed", "reject", "done"),
    Row("in_doubt", "unknown", ("said so before",), "in_doubt", "nothing", "repeated"),
    Row("in_doubt", "unknown", ("by an attempt", "unreported"), "in_doubt", "note", "done"),
    Row("in_doubt", "found_applied", ("fence moved",), "in_doubt", "nothing", "changed_since"),
    Row("in_doubt", "found_applied", (), "succeeded", "finish", "done"),
    Row("in_doubt", "found_not_applied", ("fence moved",), "in_doubt", "nothing", "changed_since"),
    Row("in_doubt", "found_not_applied", ("settled",), "pending", "settle", "done"),
    Row("in_doubt", "found_not_applied", (), "in_doubt", "nothing", "unsettled"),
    Row("in_doubt", "closed", ("fence moved",), "in_doubt", "nothing", "changed_since"),
    Row("in_doubt", "closed", (), "in_doubt", "close", "done"),
    Row("in_doubt", "release", ("by an attempt", "unreported", "another unresolved"), "in_doubt", "note", "done"),
    Row("in_doubt", "release", ("by an attempt", "unreported"), "pending", "unwind", "done"),
    Row("in_doubt", "release", (), "in_doubt", "note", "done"),
    # final: unchanged by anything; a token that never held a lease is remembered as ended
    Row("succeeded", "begin", (), "succeeded", "nothing", "replay"),
    Row("succeeded", "success", ("said so before",), "succeeded", "nothing", "repeated"),
    Row("succeeded", "success", ("by an attempt",), "succeeded", "nothing", "contradicted"),
    Row("succeeded", "not_applied", ("by an attempt",), "succeeded", "nothing", "superseded"),
    Row("succeeded", "rejected", ("by an attempt",), "succeeded", "nothing", "superseded"),
    Row("succeeded", "unknown", ("by an attempt",), "succeeded", "nothing", "superseded"),
    Row("succeeded", "renew", ("by an attempt",), "succeeded", "nothing", "superseded"),
    Row("succeeded", "release", ("token ended",), "succeeded", "nothing", "repeated"),
    Row("succeeded", "release", (), "succeeded", "note", "done"),
    Row("succeeded", "found_not_applied", (), "succeeded", "nothing", "contradicted"),
    Row("failed", "begin", (), "failed", "nothing", "replay"),
    Row("failed", "rejected", ("said so before",), "failed", "nothing", "repeated"),
    Row("failed", "success", ("by an attempt",), "failed", "nothing", "contradicted"),
    Row("failed", "not_applied", ("by an attempt",), "failed", "nothing", "superseded"),
    Row("failed", "rejected", ("by an attempt",), "failed", "nothing", "superseded"),
    Row("failed", "unknown", ("by an attempt",), "failed", "nothing", "superseded"),
    Row("failed", "renew", ("by an attempt",), "failed", "nothing", "superseded"),
    Row("failed", "found_applied", (), "failed", "nothing", "contradicted"),
    Row("failed", "release", ("token ended",), "failed", "nothing", "repeated"),
    Row("failed", "release", (), "failed", "note", "done"),
)


def decide(life: Life | None, event: Event, rules: Rules, now: Instant, table: tuple[Row, ...] = TABLE) -> Decision:
    """Say what becomes of an effect (None: there is none yet) on an event."""
    touched = life if life is None else touch(life, rules, now, table)
    situation = Situation(life=touched or _ABSENT, event=event, rules=rules, now=now)
    source: Source = "absent" if touched is None else touched.state
    row = _find(source, situation, table)
    if row is None:
        verdict: Verdict = "lease_lost" if event.token and situation.attempt is None else "not_possible"
        return Decision(life=situation.life, verdict=verdict, row=None)
    after = msgspec.structs.replace(ACTS[row.act](situation), state=row.target)
    return Decision(life=after, verdict=row.verdict, row=row, alert=_is_alarming(row, situation))


def touch(life: Life, rules: Rules, now: Instant, table: tuple[Row, ...] = TABLE) -> Life:
    """Apply the deadline where the lease has run out; every touch of an effect begins so."""
    latest = life.latest
    if life.state != "executing" or latest is None or now < latest.deadline:
        return life
    situation = Situation(life=life, event=Event(name="deadline", token=latest.token), rules=rules, now=now)
    row = _find("executing", situation, table)
    return life if row is None else msgspec.structs.replace(ACTS[row.act](situation), state=row.target)


def _find(source: Source, situation: Situation, table: tuple[Row, ...]) -> Row | None:
    for row in table:
        if row.source == source and row.event == situation.event.name and _all_hold(row, situation):
            return row
    return None


def _all_hold(row: Row, situation: Situation) -> bool:
    return all(CONDITIONS[condition](situation) for condition in row.when)


def _is_alarming(row: Row, situation: Situation) -> bool:
    """A success beside a living or settled attempt may be a double execution, and so may a contradiction."""
    if row.verdict == "contradicted":
        return True
    if row.event != "success" or row.act != "finish" or situation.rules.effect_class != "side_effect":
        return False
    attempt = situation.known_attempt
    if situation.rules.provider_window is not None and situation.life.is_under_present_key(attempt):
        return False
    return attempt is not situation.life.latest or row.source == "pending"


def may_be_second(life: Life, rules: Rules, token: AttemptToken) -> bool:
    """Say whether an attempt's success may be a second execution, beside the success that is on record.

    It is none where running twice is harmless by declaration: of an idempotent tool, and under one downstream key at a
    provider that takes it. Nor where the attempt is the only one, and somebody else said what is on record.
    """
    granted = [attempt for attempt in life.attempts if attempt.fence > NEVER_GRANTED]
    succeeded = [attempt for attempt in granted if attempt.report == "succeeded"]
    if rules.effect_class != "side_effect":
        return False
    said = [*succeeded, *(attempt for attempt in granted if attempt.token == token)]
    if rules.provider_window is not None and all(life.is_under_present_key(attempt) for attempt in said):
        return False
    return len(granted) > 1 or bool(succeeded)
