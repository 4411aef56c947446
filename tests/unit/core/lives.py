"""Lives of effects, written in whole seconds, for tests to begin with."""

from uuid import UUID

from guard.core.effects import SECOND, Attempt, AttemptToken, Duration, Fence, Instant, Life, Report, seconds
from guard.core.lease import Rules
from guard.core.lifecycle import Decision, decide
from guard.core.situation import Event, EventName
from twiceshy_contract.names import PublicState

A, B, STRANGER = (AttemptToken(UUID(int=number)) for number in (0xA, 0xB, 0xC))
SIDE_EFFECT = Rules()
IDEMPOTENT = Rules(effect_class="idempotent")
WINDOWED = Rules(provider_window=Duration(100 * SECOND))


def at(second: float) -> Instant:
    return Instant(round(second * SECOND))


def attempt(
    token: AttemptToken,
    fence: int,
    deadline: float,
    report: Report = "none",
    reported_at: float | None = None,
    *,
    settled: bool = False,
) -> Attempt:
    """Return an attempt whose lease was granted 30 seconds before its deadline."""
    return Attempt(
        token=token,
        fence=Fence(fence),
        granted_at=at(deadline - 30),
        deadline=at(deadline),
        report=report,
        reported_at=None if reported_at is None else at(reported_at),
        settled=settled,
    )


def life(state: PublicState, *attempts: Attempt, epoch: int = 0, tries: int | None = None) -> Life:
    """Return a life whose first lease was granted at second 0."""
    return Life(
        state=state,
        fence=max((a.fence for a in attempts), default=Fence(0)),
        attempts=attempts,
        tries=len(attempts) if tries is None else tries,
        epoch=epoch,
        epoch_since=at(0) if attempts else None,
    )


def asked(
    before: Life | None,
    name: EventName,
    token: AttemptToken | None = None,
    *,
    now: float = 10,
    rules: Rules = SIDE_EFFECT,
    fence: int | None = None,
    reopen: bool = False,
    jitter: float = 0.5,
    lease: float | None = None,
    retry_after: float | None = None,
) -> Decision:
    """Return the decision on an event at a second."""
    event = Event(
        name=name,
        token=token,
        fence=None if fence is None else Fence(fence),
        reopen=reopen,
        jitter=jitter,
        lease=None if lease is None else seconds(lease),
        retry_after=None if retry_after is None else seconds(retry_after),
    )
    return decide(before, event, rules, at(now))


def outcome(decision: Decision) -> tuple[str, str]:
    return decision.life.state, decision.verdict


EXECUTING = life("executing", attempt(A, 1, 30))
IN_DOUBT = life("in_doubt", attempt(A, 1, 30))
SILENT_TWO = life("executing", attempt(A, 1, 30), attempt(B, 2, 60))
"""A is silent, B holds the lease: what only a tool with a window or an idempotent one can come to."""
DOUBTFUL_TWO = life("in_doubt", attempt(A, 1, 30), attempt(B, 2, 60))
PENDING = life("pending", attempt(A, 1, 30, "not_applied", 5), epoch=1)
SUCCEEDED = life("succeeded", attempt(A, 1, 30, "succeeded", 5))
FAILED = life("failed", attempt(A, 1, 30, "rejected", 5))
