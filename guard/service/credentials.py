"""The credentials of forks: told to who makes a fork, and known again when a request brings one."""

from guard.core.credentials import credential_of, run_of_credential
from guard.core.effects import RunId, TenantId
from guard.core.runs import Run
from guard.ports.salts import SaltStore


class Credentials:
    """Knows credentials by the salts of their tenants."""

    def __init__(self, salts: SaltStore) -> None:
        self._salts = salts

    async def of(self, fork: Run) -> str:
        """Return the credential of a fork. Raises StoreUnavailable."""
        return credential_of(await self._salts.of(fork.tenant), fork.id)

    async def run_of(self, tenant: TenantId, text: str) -> RunId | None:
        """Return the fork that a credential drives; None for a forged one. Raises StoreUnavailable."""
        return run_of_credential(await self._salts.of(tenant), text)
