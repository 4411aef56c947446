"""What the service needs of a database to ask persons and to hold what they say."""

from typing import Protocol
from uuid import UUID

import msgspec

from guard.core.approvals import Approval, Ballot, Question, Weighed
from guard.core.effects import Instant, Key, TenantId
from twiceshy_contract.approvals import ApprovalState


class ApprovalFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which approvals a listing shows; `after` is the last page's cursor, opaque to all but the store."""

    state: ApprovalState | None = None
    run: str | None = None
    tool: str | None = None
    limit: int = 50
    after: str | None = None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """An approval as it stands at the database's time `at`."""

    approval: Approval
    at: Instant


class SameAs(msgspec.Struct, frozen=True):
    """The edited arguments name another effect, or another was edited to them: its key."""

    key: Key


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a person's word, and the approval as it stands after it."""

    standing: Standing
    said: Weighed | SameAs


class ApprovalStore(Protocol):
    """Approvals. One of a key and a round; an id never changes what it asks."""

    async def ask(self, tenant: TenantId, question: Question) -> Standing:
        """Find the approval of the question's key and round, or ask; earlier rounds that cover are taken back."""

    async def latest(self, tenant: TenantId, key: Key) -> Standing | None:
        """Return the last round about an effect."""

    async def get(self, tenant: TenantId, approval: UUID) -> Standing | None:
        """Find an approval."""

    async def decide(self, tenant: TenantId, approval: UUID, ballot: Ballot, edits: int = 0) -> Told | None:
        """Weigh a person's word and write what it does, in one transaction; None where there is no such approval.

        There may be no effect of the key that its edit names, no question about it, and no more than so many `edits`
        that came to it. A lease of that key is granted before, or knows of the edit.
        """

    async def cancel(self, tenant: TenantId, approval: UUID, by: str | None, reason: str) -> Told | None:
        """Take a question back, an approved one as long as no attempt may have sent; None where there is none."""

    async def withdraw(self, tenant: TenantId, of: Key | str, by: str | None, reason: str) -> list[UUID]:
        """Take back what waits about an effect, or about all of a run (its name); return which."""

    async def denied(self, tenant: TenantId, run: str, tool: str, digest: bytes) -> Approval | None:
        """Return the last denial of these arguments of a tool in a run."""

    async def edited(self, tenant: TenantId, key: Key, digest: bytes) -> list[Approval]:
        """Return the approvals, last first, whose edits name this effect, or give it the arguments of this digest."""

    async def page(self, tenant: TenantId, chosen: ApprovalFilter) -> tuple[list[Approval], Instant, str | None]:
        """Return approvals, newest first, the database's time, and the cursor of the next page.

        Raises ValueError for a cursor that this store did not make.
        """
