"""Relays in processes of their own over one outbox: nothing is lost, nothing doubled, and every lane stays in order."""

import asyncio
from collections import defaultdict
from itertools import pairwise

from guard.ports.outbox import MessageFilter
from guard.ports.store import Store
from tests.contract.given import TENANT
from tests.contract.given_outbox import declared, row, stage, states
from tests.contract.relay_rivals import Sent, deliver, deliver_and_die
from tests.contract.rivals import compete

_LANES = ["a", "b", "c", "d", None, None]
_COUNT = 240


async def _given(store: Store) -> None:
    """Stage messages in a few lanes and in none."""
    log = await declared(store)
    for number in range(_COUNT // 20):
        await stage(store, number, *(row(number, log, _LANES[place % 6], place) for place in range(20)))


async def _history(store: Store) -> list[tuple[str | None, int]]:
    """Return what was delivered by its lane, in the order in which it was settled."""
    found, after = [], None
    while True:
        page, after = await store.outbox.page(TENANT, MessageFilter(state="delivered", limit=500, after=after))
        found += page
        if after is None:
            return [(one.lane, one.id) for one in sorted(found, key=lambda one: (one.settled_at or 0, one.id))]


def _in_order(delivered: list[tuple[str | None, int]]) -> bool:
    lanes: defaultdict[str, list[int]] = defaultdict(list)
    for lane, id_ in delivered:
        if lane is not None:
            lanes[lane].append(id_)
    return all(ids == sorted(ids) for ids in lanes.values())


async def test_several_relays_lose_and_double_nothing_and_keep_every_lane_in_order(
    store: Store, database_url: str
) -> None:
    await _given(store)
    sent: list[Sent] = [one for some in await asyncio.to_thread(compete, database_url, deliver, 3) for one in some]
    delivered = await _history(store)
    assert len(delivered) == len({id_ for _, id_ in delivered}) == _COUNT
    assert await states(store) == {}
    assert _in_order(delivered)
    assert sorted(id_ for id_, *_, is_delivered in sent if is_delivered) == sorted(id_ for _, id_ in delivered)
    for lane in "abcd":
        tries = sorted((began, ended, id_) for id_, at, began, ended, _ in sent if at == lane)
        assert all(one[1] <= other[0] for one, other in pairwise(tries)), "one at a time"
        assert [id_ for *_, id_ in tries] == sorted(id_ for *_, id_ in tries), "none overtakes"


async def test_what_relays_forget_is_taken_back_and_delivered_in_order(store: Store, database_url: str) -> None:
    """A message that was sent and never settled is sent again; none is sent before all ahead of it were."""
    await _given(store)
    sent = [one for some in await asyncio.to_thread(compete, database_url, deliver_and_die, 3) for one in some]
    delivered = await _history(store)
    assert len(delivered) == len({id_ for _, id_ in delivered}) == _COUNT
    assert await states(store) == {}
    first: dict[int, tuple[float, str | None]] = {}
    for id_, lane, began, _, is_delivered in sorted(sent, key=lambda one: one[2]):
        if is_delivered:
            first.setdefault(id_, (began, lane))
    assert _in_order([(lane, id_) for id_, (_, lane) in first.items()])
