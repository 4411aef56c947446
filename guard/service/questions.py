"""What is asked about effects follows what becomes of these: taken back with its effect or run, asked anew with it."""

import msgspec

from guard.core.effects import Duration, Effect, Key, TenantId
from guard.core.runs import Run
from guard.ports.approvals import ApprovalStore
from guard.service.bell import Bell
from guard.service.runs import Runs
from guard.service.waiting import Waiters
from twiceshy_contract.runs import RunState

_RUN_OVER = "its run is over"


class Questions:
    """Takes questions back that nobody need answer, and asks those anew that ran out."""

    def __init__(self, store: ApprovalStore, runs: Runs, waiters: Waiters, bell: Bell) -> None:
        self._store = store
        self._runs = runs
        self._waiters = waiters
        self._bell = bell

    async def withdraw(self, tenant: TenantId, of: Key | str, by: str | None, reason: str) -> None:
        """Take back what waits about an effect, or about all of a run. Who waits hears it. Raises StoreUnavailable."""
        for approval in await self._store.withdraw(tenant, of, by, reason):
            self._waiters.wake(approval.bytes)
            self._bell.ring()

    async def end_run(self, tenant: TenantId, name: str, state: RunState) -> Run | None:
        """End an open run, and what is asked about its effects. Raises StoreUnavailable."""
        run = await self._runs.end(tenant, name, state)
        if run is not None and run.ended_at is not None:
            await self.withdraw(tenant, name, None, _RUN_OVER)
        return run

    async def renew(self, effect: Effect) -> None:
        """Ask anew what nobody decided in time about an effect. Raises StoreUnavailable."""
        intent = effect.intent
        latest = await self._store.latest(intent.tenant, intent.key)
        if latest is None or latest.approval.state_at(latest.at) != "expired":
            return
        run = None if intent.run is None else await self._runs.get(intent.tenant, intent.run)
        if run is not None and run.ended_at is not None:
            return
        asked, expires_at = latest.approval, latest.approval.expires_at
        deadline = None if expires_at is None else Duration(expires_at - asked.asked_at)
        question = msgspec.structs.replace(asked.question, round=asked.question.round + 1, deadline=deadline)
        await self._store.ask(intent.tenant, question)
        self._bell.ring()
