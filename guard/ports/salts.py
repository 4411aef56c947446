"""What the service needs of a database to name things under a secret of their tenant."""

from typing import Protocol

from guard.core.effects import TenantId


class SaltStore(Protocol):
    """Salts; one that was drawn never changes."""

    async def of(self, tenant: TenantId) -> bytes:
        """Return the salt of a tenant, drawn at first use. Raises LookupError where there is no such tenant."""
