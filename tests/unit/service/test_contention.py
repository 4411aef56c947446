"""Contention in one process: the last minutes count, and no more keys than may be."""

from guard.core.effects import TenantId
from guard.service.contention import MOST_KEYS, Contention
from tests.unit.service.test_records import effect

TENANT = TenantId(1)


async def begins(contention: Contention) -> list[int]:
    return [hot.begins for hot in (await contention.hottest(TENANT, 10)).keys]


async def test_begins_of_the_last_five_minutes_are_counted() -> None:
    now = [0.0]
    contention = Contention(clock=lambda: now[0])
    for minute in range(5):
        now[0] = 60.0 * minute
        contention.count(effect(1))
    assert await begins(contention) == [5]
    now[0] = 60.0 * 7
    assert await begins(contention) == [2]
    now[0] = 60.0 * 10
    assert await begins(contention) == []


async def test_another_tenant_s_keys_are_not_shown_and_the_hottest_come_first() -> None:
    contention = Contention()
    for number, times in ((1, 2), (2, 3), (3, 1)):
        for _ in range(times):
            contention.count(effect(number))
    assert await begins(contention) == [3, 2, 1]
    assert (await contention.hottest(TenantId(2), 10)).keys == ()
    assert (await contention.hottest(TENANT, 1)).counted_in == "process"


async def test_a_minute_has_no_more_keys_than_may_be() -> None:
    contention = Contention()
    for number in range(MOST_KEYS + 10):
        contention.count(effect(number))
    contention.count(effect(1))
    found = await contention.hottest(TENANT, 2 * MOST_KEYS)
    assert (len(found.keys), found.keys[0].begins) == (MOST_KEYS, 2)
