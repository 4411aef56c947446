"""What every store must do with flags."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from guard.core.effects import Evidence, Instant, TenantId
from guard.core.flags import Flag, RaisedFlag
from guard.ports.flags import FlagFilter
from guard.ports.steps import Replace
from guard.ports.store import Store
from tests.contract.given import FIRST, TENANT, insert, key, written

LOOP = Flag(kind="loop", subject="booking-42", detail="It asks again and again.", run="booking-42", tool="hold")
DOUBLE = Flag(kind="double", subject="k1", detail="Perhaps twice.", key=key(1))


async def test_a_flag_is_raised_once_of_a_kind_for_a_subject(store: Store) -> None:
    await store.flags.raise_all(TENANT, [LOOP])
    await store.flags.raise_all(TENANT, [DOUBLE, LOOP, LOOP])
    await store.flags.raise_all(TENANT, [])
    flags = await _all(store)
    assert {(flag.flag.kind, flag.flag.subject) for flag in flags} == {("loop", "booking-42"), ("double", "k1")}
    assert {flag.flag for flag in flags} == {LOOP, DOUBLE}
    assert all(flag.state == "open" and flag.at > 0 for flag in flags)
    assert await store.flags.count_open(TENANT) == 2


async def test_flags_belong_to_their_tenant(store: Store) -> None:
    await store.flags.raise_all(TENANT, [LOOP])
    await store.flags.raise_all(TenantId(2), [LOOP])
    (ours,) = await _all(store)
    assert await store.flags.close(TenantId(2), ours.id, None, "not theirs") is None
    assert await store.flags.count_open(TENANT) == 1
    assert await store.flags.count_open(TenantId(3)) == 0


async def test_a_flag_is_closed_once_and_stays_closed(store: Store) -> None:
    await store.flags.raise_all(TENANT, [LOOP])
    (raised,) = await _all(store)
    closed = await store.flags.close(TENANT, raised.id, "ada", "the run was ended")
    assert closed is not None
    assert (closed.state, closed.closed_by, closed.reason) == ("closed", "ada", "the run was ended")
    assert closed.closed_at is not None
    assert closed.closed_at >= raised.at
    assert await store.flags.close(TENANT, raised.id, "bob", "seen as well") == closed
    await store.flags.raise_all(TENANT, [LOOP])
    assert await _all(store) == [closed]
    assert await store.flags.count_open(TENANT) == 0
    assert await store.flags.close(TENANT, UUID(int=1), None, "there is none") is None


async def test_pages_show_the_newest_flags_first(store: Store) -> None:
    for number in range(5):
        await store.flags.raise_all(TENANT, [Flag(kind="loop", subject=str(number), detail="It goes in circles.")])
    await store.flags.raise_all(TENANT, [DOUBLE])
    newest = (await _all(store))[0]
    await store.flags.close(TENANT, newest.id, None, "seen")
    assert await _paged(store, FlagFilter(limit=4)) == [["k1", "4", "3", "2"], ["1", "0"]]
    assert await _paged(store, FlagFilter(limit=6)) == [["k1", "4", "3", "2", "1", "0"]]
    assert await _paged(store, FlagFilter(state="open", limit=5)) == [["4", "3", "2", "1", "0"]]
    assert await _paged(store, FlagFilter(state="closed")) == [["k1"]]
    assert await _paged(store, FlagFilter(kind="loop", state="closed")) == [[]]
    for foreign in ("x", "cgAAAAAAAAAAAAAAAAAAAAA"):
        with pytest.raises(ValueError, match="cursor"):
            await store.flags.page(TENANT, FlagFilter(after=foreign))


async def test_evidence_without_a_flag_is_found(store: Store) -> None:
    proof = Evidence(at=Instant(5), token=FIRST, kind="success", body=b'{"result":1}')
    for number in (1, 2, 3):
        began = (await written(store, insert(number))).effect
        await written(store, Replace(seen=1, effect=began, evidence=(proof,) * (number - 1)))
    assert await store.flags.unflagged(10) == [key(2), key(3)]
    assert await store.flags.unflagged(1) == [key(2)]
    for subject in ("2", "3"):
        flag = Flag(kind="contradiction", subject=subject, detail="It is contradicted.", key=key(int(subject)))
        await store.flags.raise_all(TENANT, [flag])
    assert await store.flags.unflagged(10) == [key(3)]


async def _all(store: Store) -> list[RaisedFlag]:
    flags, after = await store.flags.page(TENANT, FlagFilter())
    assert after is None
    return flags


async def _paged(store: Store, chosen: FlagFilter) -> list[list[str]]:
    pages: list[list[str]] = []
    after: str | None = None
    while True:
        wanted = FlagFilter(kind=chosen.kind, state=chosen.state, limit=chosen.limit, after=after)
        flags, after = await store.flags.page(TENANT, wanted)
        pages.append([flag.flag.subject for flag in flags])
        if after is None:
            return pages


async def test_a_flag_whose_cause_is_gone_is_closed_by_itself_and_open_again_once_it_is_back(store: Store) -> None:
    stuck = Flag(kind="saga-stuck", subject="trip/k1/1", detail="It was refused.", run="trip", key=key(1))
    others = [
        replace(stuck, subject="Trip/k1/1"),
        replace(stuck, subject="trip-7/k1/1"),
        replace(LOOP, subject="trip/"),
    ]
    await store.flags.raise_all(TENANT, [stuck, *others, stuck])
    await store.flags.settle(TenantId(2), "saga-stuck", "trip/", "not theirs")
    assert await store.flags.count_open(TENANT) == 4
    await store.flags.settle(TENANT, "saga-stuck", "trip/", "the saga goes on")
    (closed,) = (flag for flag in await _all(store) if flag.state == "closed")
    assert (closed.flag, closed.closed_by, closed.reason) == (stuck, "twiceshy", "the saga goes on")
    back = replace(stuck, detail="It was refused again.")
    await store.flags.raise_all(TENANT, [back])
    assert await store.flags.count_open(TENANT) == 4
    assert [flag.flag for flag in await _all(store) if flag.flag.subject == "trip/k1/1"] == [back]


async def test_a_flag_that_a_person_closed_stays_closed(store: Store) -> None:
    await store.flags.raise_all(TENANT, [LOOP])
    (raised,) = await _all(store)
    await store.flags.close(TENANT, raised.id, None, "seen")
    await store.flags.raise_all(TENANT, [LOOP])
    assert await store.flags.count_open(TENANT) == 0
