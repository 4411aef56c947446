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
    """The edited arguments are those of another effect's approval in the run: its key."""

    key: Key


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a person's word, and the approval as it stands after it."""

    standing: Standing
    said: Weighed | SameAs


class Within(msgspec.Struct, frozen=True):
    """Where arguments name an effect: within a run, or (None) in all runs together."""

    run: str | None


class ApprovalStore(Protocol):
    """Approvals. One of a key and a round; an id never changes what it asks."""

    async def ask(self, tenant: TenantId, question: Question) -> Standing:
        """Find the approval of the question's key and round, or ask; earlier rounds that cover are taken back."""

    async def latest(self, tenant: TenantId, key: Key) -> Standing | None:
        """Return the last round about an effect."""

    async def get(self, tenant: TenantId, approval: UUID) -> Standing | None:
        """Find an approval."""

    async def decide(self, tenant: TenantId, approval: UUID, ballot: Ballot, within: Within | None) -> Told | None:
        """Weigh a person's word and write what it does, in one transaction; None where there is no such approval.

        Arguments that it puts in may be those of no other question about the tool `within` this (None: no matter).
        """

    async def cancel(self, tenant: TenantId, approval: UUID, by: str | None, reason: str) -> Told | None:
        """Take a question back; None where there is no such approval."""

    async def denied(self, tenant: TenantId, run: str, tool: str, digest: bytes) -> Approval | None:
        """Return the last denial of these arguments of a tool in a run."""

    async def edited(self, tenant: TenantId, within: Within, tool: str, digest: bytes) -> Approval | None:
        """Return the last approval within this that put these arguments in the place of others."""

    async def page(self, tenant: TenantId, chosen: ApprovalFilter) -> tuple[list[Approval], Instant, str | None]:
        """Return approvals, newest first, the database's time, and the cursor of the next page.

        Raises ValueError for a cursor that this store did not make.
        """
