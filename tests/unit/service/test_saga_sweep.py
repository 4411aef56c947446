"""The sweep of sagas: one that cannot be looked after stands in no other's way."""

import json
from unittest.mock import AsyncMock, create_autospec

import pytest

from guard.core.effects import TenantId
from guard.ports.sagas import SagaStore
from guard.ports.store import StoreUnavailable
from guard.service.saga_care import SagaSweep
from guard.service.sagas import Sagas

pytestmark = pytest.mark.anyio
NAMES = [(TenantId(1), name) for name in ("first", "bad", "last")]


def sweeping(error: Exception) -> tuple[SagaSweep, AsyncMock]:
    store = create_autospec(SagaStore, instance=True)
    store.restless.return_value = NAMES
    sagas = create_autospec(Sagas, instance=True)

    def look_after(_tenant: TenantId, name: str) -> None:
        if name == "bad":
            raise error

    sagas.look_after.side_effect = look_after
    return SagaSweep(store, sagas), sagas.look_after


async def test_a_saga_that_cannot_be_looked_after_is_logged_and_the_ones_behind_it_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sweep, looked_after = sweeping(TypeError("an expression that nobody foresaw"))
    assert await sweep.run_once() == 3
    assert [call.args for call in looked_after.await_args_list] == NAMES
    (said,) = [json.loads(record.getMessage()) for record in caplog.records]
    assert (said["event"], said["saga"]) == ("saga_not_looked_after", "bad")


async def test_a_database_that_is_away_ends_the_round(caplog: pytest.LogCaptureFixture) -> None:
    sweep, looked_after = sweeping(StoreUnavailable("away"))
    with pytest.raises(StoreUnavailable):
        await sweep.run_once()
    assert looked_after.await_count == 2
    assert not caplog.records
