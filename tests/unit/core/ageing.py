"""Lives as the search keeps them: relative to now, and without what no rule looks at, so that they are finite."""

from msgspec.structs import replace

from guard.core.effects import Attempt, Instant, Life

_NOW = Instant(0)


def aged(life: Life, *, oldest: int, window: int) -> Life:
    """Move a life's instants one tick into the past, and no further than any rule can tell apart.

    `oldest` is the oldest instant of an attempt that matters.
    """
    since = life.epoch_since
    return replace(
        life,
        attempts=tuple(
            replace(
                attempt,
                deadline=Instant(max(attempt.deadline - 1, oldest)),
                reported_at=None if attempt.reported_at is None else Instant(max(attempt.reported_at - 1, oldest)),
            )
            for attempt in life.attempts
        ),
        epoch_since=None if since is None else Instant(max(since - 1, -window)),
    )


def without_history(life: Life, *, is_window_open: bool) -> Life:
    """Forget what no rule looks at: times of attempts that are resolved, and how they were."""
    return replace(
        life,
        attempts=tuple(
            replace(attempt, granted_at=_NOW, reported_at=attempt.reported_at)
            if attempt.is_unresolved
            else Attempt(token=attempt.token, fence=attempt.fence, granted_at=_NOW, deadline=_NOW, settled=True)
            for attempt in life.attempts
        ),
        tries=0,
        retry_at=None,
        epoch=0,
        epoch_since=life.epoch_since if is_window_open else None,
        ended_at=None,
    )
