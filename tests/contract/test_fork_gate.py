"""What a call in a fork hears when the record of what it is given expires under way."""

from uuid import UUID, uuid4

import pytest

from guard.core.effects import AttemptToken, Key, RunId
from guard.core.runs import Run
from guard.ports.forks import Given
from guard.ports.store import Store
from guard.probes.http import HttpProvider
from guard.service.outcomes import BeginOutcome, Granted, Refused, Stubbed
from guard.service.use_cases import UseCases
from guard.store.sql.tables import effects
from tests.contract.given import TENANT
from tests.contract.test_retention_store import aged
from twiceshy_contract.effects import BeginRequest, CommitRequest
from twiceshy_contract.forks import ForkRequest
from twiceshy_contract.tools import ToolDeclaration


async def begin(guard: UseCases, run: str, attempt: UUID) -> BeginOutcome:
    """Begin the only call of these tests."""
    return await guard.begin(TENANT, BeginRequest(tool="pay", run=run, arguments={"to": "ann"}, attempt=attempt))


@pytest.mark.parametrize("at", [0, 1])
async def test_an_effect_that_expires_while_it_is_given_has_no_outcome(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    give = store.forks.give

    async def give_late(fork: RunId, key: Key, origin: Key, token: AttemptToken) -> Given | None:
        await aged(database_url, effects, effects.c.key == origin, outcome=None, expired_at=1)
        return await give(fork, key, origin, token)

    async with UseCases(store, lambda: 0.5, HttpProvider({})) as guard:
        await store.tools.declare(TENANT, {"pay": ToolDeclaration()})
        grant = await begin(guard, "main", uuid4())
        assert isinstance(grant, Granted)
        done = CommitRequest(attempt=grant.token, fence=1, result="paid")
        await guard.commit(TENANT, grant.effect.intent.key, done)
        for name in ("early", "late"):
            assert isinstance(await guard.runs.fork(TENANT, "main", name, ForkRequest(fork=name, at=at)), Run)
        attempt = uuid4()
        assert isinstance(await begin(guard, "early", attempt), Stubbed)
        monkeypatch.setattr(store.forks, "give", give_late)
        answers = [await begin(guard, "late", uuid4()), await begin(guard, "early", attempt)]
    for answer in answers:
        assert isinstance(answer, Refused)
        assert answer.code == "run-suspended"
        assert "(rule: outcome unknown)" in answer.detail
