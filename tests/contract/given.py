"""Plain values that the contract's scenarios start from."""

from uuid import UUID

from msgspec.structs import replace

from guard.core.effects import SECOND, AttemptToken, Duration, Effect, Fence, Instant, Intent, Key, TenantId
from guard.core.runs import Run
from guard.ports.steps import Finish, Found, Insert, Look, Step, StepResult, Written
from guard.ports.store import Store

TENANT = TenantId(1)
LEASE = Duration(30 * SECOND)
FIRST, SECOND_TOKEN, THIRD = (AttemptToken(UUID(int=number)) for number in (1, 2, 3))
RESULT = b'{"result":{"id":"h-1"}}'


def key(number: int) -> Key:
    """Return a key that sorts by the number."""
    return Key(b"\x01\x9a\x00\x00\x00\x00" + number.to_bytes(26, "big"))


def intent(number: int = 1, run: Run | None = None) -> Intent:
    """Return what a caller means to do, with every optional field filled but the run."""
    return Intent(
        key=key(number),
        tenant=TENANT,
        run_id=None if run is None else run.id,
        run=None if run is None else run.name,
        step=None,
        tool="create_calendar_hold",
        tool_version=3,
        rule="business_key",
        caller_step="7",
        business_key="order-4711",
        occurrence=2,
        generation=4,
        identity_digest=b"\x00\xff" * 16,
        arguments_digest=b"\x01" * 32,
        arguments='{"title":"Über 1 Stunde"}'.encode(),
        worker="worker-a",
        began_at=Instant(0),
    )


def insert(number: int = 1, run: Run | None = None, token: AttemptToken = FIRST) -> Insert:
    """Return the step that begins an effect."""
    return Insert(intent=intent(number, run), token=token, lease=LEASE)


def finish(number: int = 1, token: AttemptToken = FIRST, fence: int = 1) -> Finish:
    """Return the step that records success."""
    return Finish(key=key(number), token=token, fence=Fence(fence), outcome=RESULT)


def in_doubt(effect: Effect, at: Instant) -> Effect:
    """Return the effect after its latest attempt said that it does not know."""
    *earlier, latest = effect.life.attempts
    told = replace(latest, report="unknown", reported_at=at)
    return replace(effect, life=replace(effect.life, state="in_doubt", attempts=(*earlier, told)))


async def one(store: Store, step: Step) -> StepResult:
    """Apply one step."""
    (answer,) = await store.effects.apply(0, [step])
    return answer


async def written(store: Store, step: Step) -> Written:
    """Apply one step whose assumption must hold."""
    answer = await one(store, step)
    assert isinstance(answer, Written), answer
    return answer


async def found(store: Store, step: Step) -> Effect:
    """Apply one step that must find an effect."""
    answer = await one(store, step)
    assert isinstance(answer, Found), answer
    assert answer.effect is not None
    return answer.effect


async def look(store: Store, number: int = 1) -> Effect:
    """Read an effect that must be there."""
    return await found(store, Look(key=key(number)))


async def nothing(store: Store, number: int) -> bool:
    """Say whether there is no such effect."""
    answer = await one(store, Look(key=key(number)))
    return isinstance(answer, Found) and answer.effect is None


async def opened(store: Store, name: str = "booking-42") -> Run:
    """Open a run."""
    (run,) = await store.runs.open(TENANT, [name])
    return run
