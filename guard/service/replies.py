"""Mail that comes in: kept beside the run whose mail it answers, and told when the run is shown."""

from msgspec.structs import replace

from guard.core.effects import TenantId
from guard.core.inbound_mail import Inbound, our_ids
from guard.ports.replies import Reply, ReplyFilter, ReplyStore, Taken
from guard.service.outcomes import Refused
from guard.service.runs import Runs, no_run


class Replies:
    """Taking and listing mail that comes in."""

    def __init__(self, store: ReplyStore, runs: Runs) -> None:
        self._store = store
        self._runs = runs

    async def take(self, tenant: TenantId, mail: Inbound) -> Taken:
        """Keep a mail once; one that answers nothing from here is kept as well. Raises StoreUnavailable."""
        return await self._store.take(tenant, mail, our_ids(mail))

    async def page(self, tenant: TenantId, chosen: ReplyFilter, run: str | None) -> tuple[list[Reply], str | None]:
        """Return replies, of a run where one is named, and the cursor of the next page. Raises ValueError."""
        if run is None:
            return await self._store.page(tenant, chosen)
        found = await self.page_of_run(tenant, chosen, run)
        return ([], None) if isinstance(found, Refused) else found

    async def page_of_run(
        self, tenant: TenantId, chosen: ReplyFilter, run: str
    ) -> tuple[list[Reply], str | None] | Refused:
        """Return the replies to a run and the cursor of the next page. Raises ValueError for a foreign cursor."""
        known = await self._runs.find(tenant, run)
        if known is None:
            return no_run(run)
        return await self._store.page(tenant, replace(chosen, run=known.id))
