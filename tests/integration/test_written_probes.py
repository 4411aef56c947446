"""A probe is checked where it is written, and a worker where it starts: not when the first doubt comes."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.integration.paying import Bank, Guards
from tests.service import ServiceProcess
from twiceshy import DoubtfulEffect, SetupError, Unproven


@pytest.fixture
def guards(service: ServiceProcess) -> Iterator[Guards]:
    with ExitStack() as stack:
        yield Guards(service.url, stack)


def test_a_probe_that_cannot_be_asked_is_refused_where_it_is_written(guards: Guards, run: str) -> None:
    guard, pay = guards.paying(Bank(), run, is_probed=False)

    async def awaited(_: DoubtfulEffect) -> Unproven:
        return Unproven()

    def of_another_call(_: DoubtfulEffect, order: str) -> Unproven:
        return Unproven(order)

    def of_nothing() -> Unproven:
        return Unproven()

    def by_name(*, effect: DoubtfulEffect) -> Unproven:
        return Unproven(effect.key)

    wrong: list[tuple[Any, str]] = [
        (awaited, "Write both in the same way"),
        (of_another_call, "takes order, and the tool has no such argument"),
        (of_nothing, "takes the effect first"),
        (by_name, "takes the effect first, by its position"),
        ("look", "give a function"),
    ]
    for function, words in wrong:
        with pytest.raises(SetupError, match=words):
            pay.probe(function)
    with pytest.raises(SetupError, match="timeout_seconds"):
        pay.probe(timeout_seconds=-1)(lambda _: Unproven())
    with pytest.raises(SetupError, match="blocks, and nothing can cut it off after 5 s"):
        pay.probe(timeout_seconds=5)(lambda _: Unproven())
    with pytest.raises(SetupError, match="No tool of this guard has a probe"):
        guard.probe_once()
    pay.probe(lambda _: Unproven())
    with pytest.raises(SetupError, match="limit"):
        guard.probe_once(limit=0)
