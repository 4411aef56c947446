"""Plain holds that the contract's scenarios start from."""

from uuid import UUID

from guard.core.effects import SECOND, Duration, Instant, Key
from guard.core.holds import Barred, Changed, Claim, Hold, HoldVerb, Wish, change
from guard.ports.holds import Altered, Occupied, Placed
from guard.ports.store import Store
from tests.contract.given import TENANT

MINUTE = 60 * SECOND
TWO_O_CLOCK = 1_792_000_000 * SECOND
LASTS = Duration(60 * SECOND)


def wish(
    number: int,
    start: int = 0,
    end: int = 30,
    *,
    priority: int = 0,
    resource: str = "room-1",
    key: Key | None = None,
    lasts: Duration | None = LASTS,
) -> Wish:
    """Return the wish of an agent for a room, in minutes from two o'clock."""
    return Wish(
        id=UUID(int=number),
        tenant=TENANT,
        resource=resource,
        start=Instant(TWO_O_CLOCK + start * MINUTE),
        end=Instant(TWO_O_CLOCK + end * MINUTE),
        priority=priority,
        holder=f"agent-{number}",
        run=None if key is None else "booking-42",
        key=key,
        lasts=lasts,
    )


async def placed(store: Store, wanted: Wish) -> Placed:
    """Place a hold that nothing stands in the way of."""
    answer = await store.holds.place(wanted)
    assert isinstance(answer, Placed), answer
    return answer


async def occupied(store: Store, wanted: Wish) -> Occupied:
    """Want a hold that something stands in the way of."""
    answer = await store.holds.place(wanted)
    assert isinstance(answer, Occupied), answer
    return answer


async def changed(store: Store, verb: HoldVerb, number: int) -> Altered:
    """Change a hold as its holder."""

    def rule(claim: Claim, at: Instant) -> Changed | Barred:
        return change(claim, verb, f"agent-{number}", LASTS, at)

    answer = await store.holds.change(TENANT, UUID(int=number), rule)
    assert answer is not None
    return answer


async def committed(store: Store, number: int) -> Hold:
    """Commit a hold as its holder."""
    return (await changed(store, "commit", number)).result.hold


async def state_of(store: Store, number: int) -> str:
    """Read the state of a hold."""
    standing = await store.holds.get(TENANT, UUID(int=number))
    assert standing is not None
    return standing.hold.state
