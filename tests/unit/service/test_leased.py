"""Effects under a lease that a commit need not read back."""

from msgspec.structs import replace

from guard.core.effects import Attempt, AttemptToken, Effect, Fence, Instant, Life
from guard.service.leased import LARGEST, MOST, Leased
from tests.contract.given import FIRST, SECOND_TOKEN, intent, key

ONE, TWO = Fence(1), Fence(2)


def leased(number: int = 1, token: AttemptToken = FIRST, fence: Fence = ONE, **fields: object) -> Effect:
    attempt = Attempt(token=token, fence=fence, granted_at=Instant(1), deadline=Instant(2))
    life = Life(state="executing", fence=fence, attempts=(attempt,))
    return replace(Effect(version=1, intent=intent(number), life=life), **fields)


def test_an_effect_is_known_to_the_attempt_that_holds_it_and_once() -> None:
    known = Leased()
    known.keep(leased())
    assert known.take(key(1), FIRST, ONE) == leased()
    assert known.take(key(1), FIRST, ONE) is None


def test_it_is_unknown_to_any_other_attempt() -> None:
    known = Leased()
    for token, fence in ((SECOND_TOKEN, ONE), (FIRST, TWO)):
        known.keep(leased())
        assert known.take(key(1), token, fence) is None


def test_the_latest_lease_is_known() -> None:
    known = Leased()
    known.keep(leased())
    known.keep(leased(token=SECOND_TOKEN, fence=TWO))
    assert known.take(key(1), SECOND_TOKEN, TWO) == leased(token=SECOND_TOKEN, fence=TWO)


def test_what_is_large_is_not_kept_and_nothing_older_of_it() -> None:
    known = Leased()
    for large in ({"edited": b"x" * LARGEST}, {"outcome": b"x" * LARGEST}, {"resolution": "x" * LARGEST}):
        known.keep(leased())
        known.keep(leased(**large))
        assert known.take(key(1), FIRST, ONE) is None


def test_only_so_many_are_kept() -> None:
    known = Leased()
    for number in range(MOST + 1):
        known.keep(leased(number))
    assert known.take(key(0), FIRST, ONE) is None
    assert known.take(key(1), FIRST, ONE) is not None


def test_what_is_forgotten_is_not_known() -> None:
    known = Leased()
    known.keep(leased())
    known.forget((key(1), key(2)))
    assert known.take(key(1), FIRST, ONE) is None
