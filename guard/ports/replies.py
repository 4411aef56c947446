"""What the service needs of a database to keep mail that comes in."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from guard.core.effects import Instant, RunId, TenantId
from guard.core.inbound_mail import Inbound


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that came in, and what it answers where that is known: the message, its run, its thread by its name."""

    id: UUID
    mail: Inbound
    received_at: Instant
    message: UUID | None = None
    run: str | None = None
    thread: str | None = None


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that is kept now, and whether one of its Message-ID was kept before: then it is that one."""

    reply: Reply
    was_known: bool


class ReplyFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which replies a listing shows, newest first unless `oldest_first`; `after` is the last page's cursor."""

    run: RunId | None = None
    thread: str | None = None
    is_matched: bool | None = None
    oldest_first: bool = False
    limit: int = 50
    after: str | None = None


class ReplyStore(Protocol):
    """Mail that came in."""

    async def take(self, tenant: TenantId, mail: Inbound, answers: Sequence[str]) -> Taken:
        """Keep a mail once, beside what it answers: the first of these ids that names mail, else a thread's root."""

    async def page(self, tenant: TenantId, chosen: ReplyFilter) -> tuple[list[Reply], str | None]:
        """Return replies and the cursor of the next page. Raises ValueError for a foreign cursor."""

    async def newest(self, tenant: TenantId, thread: str) -> str | None:
        """Return the Message-ID of the newest mail that came in to a thread, by its root."""
