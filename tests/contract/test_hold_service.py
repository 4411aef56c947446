"""What a process does for the holds of its effects by itself, on every store."""

import pytest
from msgspec.structs import replace

from guard.core.effects import Duration, Key
from guard.ports.holds import Placed
from guard.ports.steps import Replace
from guard.ports.store import StatementFailed, Store
from guard.service.holds import Holds
from tests.contract.given import TENANT, finish, insert, key, written
from tests.contract.given_holds import placed, state_of, wish
from twiceshy_contract.tools import ToolDeclaration


async def test_a_process_settles_the_hold_of_its_effect_at_once(store: Store) -> None:
    holds = Holds(store.holds)
    assert isinstance(await holds.claim(wish(1, key=key(1))), Placed)
    began = (await written(store, insert())).effect
    holds.written(began)
    await holds.close()
    assert (await _written_state(store)) == "held"
    holds.written((await written(store, finish())).effect)
    await holds.close()
    assert (await _written_state(store)) == "committed"


async def test_a_process_that_is_gone_leaves_its_holds_to_the_sweep_of_another(store: Store) -> None:
    await placed(store, wish(1, key=key(1), lasts=Duration(0)))
    await written(store, insert())
    await written(store, finish())
    assert (await _written_state(store)) == "held"
    assert await Holds(store.holds).run_once() == 1
    assert (await _written_state(store)) == "committed"
    assert await state_of(store, 1) == "committed"


async def test_a_loser_is_told_only_while_somebody_asks(store: Store) -> None:
    holds = Holds(store.holds)
    await holds.claim(wish(1, key=key(1)))
    await written(store, insert())
    assert await holds.wanted(key(1)) is None
    await holds.claim(wish(2, priority=3, key=key(2)))
    asked = await holds.wanted(key(1))
    assert asked is not None
    assert asked.rival is not None
    assert asked.rival.holder == "agent-2"
    assert await holds.wanted(key(2)) is None


@pytest.mark.parametrize(("seconds", "state"), [(3600, "held"), (0, "released")])
async def test_a_request_may_be_under_way_as_long_as_the_tool_says_today(
    store: Store, seconds: float, state: str
) -> None:
    await store.tools.declare(TENANT, {insert().intent.tool: ToolDeclaration(settle_seconds=seconds)})
    await placed(store, wish(1, key=key(1)))
    began = await written(store, insert())
    silent = replace(began.effect.life.attempts[-1], deadline=began.at)
    life = replace(began.effect.life, state="pending", attempts=(silent,))
    await written(store, Replace(seen=1, effect=replace(began.effect, life=life)))
    assert await state_of(store, 1) == state


class _Refusing:
    """A store that refuses to settle."""

    async def settle(self, key: Key) -> None:
        raise StatementFailed(f"no {key.hex()}")


async def test_what_a_store_refuses_to_settle_is_said_and_left_to_the_sweep(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds = Holds(store.holds)
    await holds.claim(wish(1, key=key(1)))
    await written(store, insert())
    monkeypatch.setattr(store.holds, "settle", _Refusing().settle)
    holds.written((await written(store, finish())).effect)
    await holds.close()
    assert "hold_not_settled" in caplog.text


async def _written_state(store: Store) -> str:
    hold = await store.holds.of_effect(key(1))
    assert hold is not None
    return hold.state
