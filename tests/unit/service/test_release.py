"""Release, step by step: what it writes where a begin may have been faster."""

import pytest
from msgspec.structs import replace

from guard.core.effects import Attempt, AttemptToken, Effect, Fence, Instant, Life
from guard.ports.steps import Found, Look, Replace, Written
from guard.service.outcomes import Settled
from guard.service.release import release
from tests.unit.service.calls import called
from twiceshy_contract.tools import KeyDeclaration, ToolDeclaration

SECOND = 1_000_000
PAGED = ToolDeclaration(key=KeyDeclaration(scope="tenant", window_seconds=60))
OTHERS = Attempt(
    token=AttemptToken(called(PAGED, 9).request.attempt),
    fence=Fence(1),
    granted_at=Instant(0),
    deadline=Instant(30 * SECOND),
    report="succeeded",
    reported_at=Instant(SECOND),
)
DONE = Life(state="succeeded", fence=Fence(1), attempts=(OTHERS,), tries=1, ended_at=Instant(SECOND))


def test_a_token_ends_in_the_next_instance_too_where_the_window_passed_while_it_was_written() -> None:
    call = called(PAGED)
    work = release(call)
    assert next(work) == Look(key=call.key(1))
    first = Effect(version=2, intent=call.intent(1), life=DONE)
    noted = work.send(Found(effect=first, at=Instant(60 * SECOND)))
    assert isinstance(noted, Replace)
    assert (noted.seen, noted.effect.life.attempts[0].report) == (2, "released")
    written = replace(noted.effect, version=3)
    assert work.send(Written(effect=written, at=Instant(61 * SECOND))) == Look(key=call.key(2))
    granted = replace(OTHERS, token=AttemptToken(call.request.attempt), report="none", reported_at=None)
    held = Effect(version=1, intent=call.intent(2), life=Life(state="executing", fence=Fence(1), attempts=(granted,)))
    freed = work.send(Found(effect=held, at=Instant(29 * SECOND)))
    assert isinstance(freed, Replace)
    assert (freed.seen, freed.effect.life.state) == (1, "pending")


def test_a_token_ends_once_where_the_window_has_not_passed() -> None:
    call = called(PAGED)
    work = release(call)
    next(work)
    noted = work.send(Found(effect=Effect(version=2, intent=call.intent(1), life=DONE), at=Instant(50 * SECOND)))
    assert isinstance(noted, Replace)
    with pytest.raises(StopIteration) as stop:
        work.send(Written(effect=replace(noted.effect, version=3), at=Instant(51 * SECOND)))
    assert isinstance(stop.value.value, Settled)
