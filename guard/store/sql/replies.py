"""Mail that came in: kept once by its Message-ID, beside the mail that it answers."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, TenantId
from guard.core.inbound_mail import Inbound
from guard.ports.replies import Reply, ReplyFilter, Taken
from guard.store.sql.cursors import AfterReply, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import new_id
from guard.store.sql.outbox_tables import mails, replies

_MAIL: Final = msgspec.json.Decoder(Inbound)
_OF_MAIL: Final = (mails.c.mail_id, mails.c.message, mails.c.thread, mails.c.thread_name, mails.c.run_id, mails.c.run)


class SqlReplies:
    """The port's replies over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def take(self, tenant: TenantId, mail: Inbound, answers: Sequence[str]) -> Taken:
        """Keep a mail once, beside what it answers: the first of these ids that names mail, else a thread's root."""
        body = msgspec.json.encode(mail)

        def work(connection: Connection, at: Instant) -> Taken:
            known = _select_known(connection, tenant, mail.digest)
            if known is not None:
                return Taken(reply=known, was_known=True)
            answered = _select_answered(connection, tenant, answers)
            row = {"id": new_id(at), "tenant": tenant, "digest": mail.digest, "mail_id": mail.message_id,
                   "received_at": at, "body": body, **answered}  # fmt: skip
            is_new = _insert(connection, row)
            kept = _select_known(connection, tenant, mail.digest)
            if kept is None:
                raise LookupError("a reply that was just kept is gone")
            return Taken(reply=kept, was_known=not is_new)

        return await self._database.write(work)

    async def page(self, tenant: TenantId, chosen: ReplyFilter) -> tuple[list[Reply], str | None]:
        """Return replies and the cursor of the next page. Raises ValueError for a foreign cursor."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterReply | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of replies before.")
        last = None if place is None else place.reply
        found = await self._database.read(lambda connection: _select_page(connection, tenant, chosen, last))
        if len(found) <= chosen.limit:
            return found, None
        return found[: chosen.limit], cursor_of(AfterReply(found[chosen.limit - 1].id))

    async def newest(self, tenant: TenantId, thread: str) -> str | None:
        """Return the Message-ID of the newest mail that came in to a thread, by its root."""
        return await self._database.read(lambda connection: _select_newest(connection, tenant, thread))


def _reply_of(row: sa.Row[Any]) -> Reply:
    return Reply(
        id=row.id,
        mail=_MAIL.decode(row.body),
        received_at=Instant(row.received_at),
        message=row.message,
        run=row.run,
        thread=row.thread_name,
    )


def _select_known(connection: Connection, tenant: TenantId, digest: bytes) -> Reply | None:
    """Select the reply of a Message-ID."""
    row = connection.execute(sa.select(replies).where(replies.c.tenant == tenant, replies.c.digest == digest)).first()
    return None if row is None else _reply_of(row)


def _select_answered(connection: Connection, tenant: TenantId, answers: Sequence[str]) -> dict[str, Any]:
    """Select what the first of these ids answers that names a mail, else the newest mail of the first thread."""
    if not answers:
        return {}
    sent = connection.execute(sa.select(*_OF_MAIL).where(mails.c.tenant == tenant, mails.c.mail_id.in_(answers)))
    found = {row.mail_id: row for row in sent}
    named = next((found[name] for name in answers if name in found), None)
    if named is None:
        newest = sa.select(*_OF_MAIL).where(mails.c.tenant == tenant).order_by(mails.c.staged_at.desc()).limit(1)
        rows = (connection.execute(newest.where(mails.c.thread == name)).first() for name in answers)
        named = next((row for row in rows if row is not None), None)
    if named is None:
        return {}
    return {name: getattr(named, name) for name in ("message", "thread", "thread_name", "run_id", "run")}


def _insert(connection: Connection, row: dict[str, Any]) -> bool:
    """Add a reply unless one of its Message-ID is there, and say whether it was added."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(replies).values(row).on_conflict_do_nothing(index_elements=("tenant", "digest"))
    return bool(connection.execute(statement).rowcount == 1)


def _select_page(connection: Connection, tenant: TenantId, chosen: ReplyFilter, last: UUID | None) -> list[Reply]:
    """Select the replies that come next, one more than the page holds."""
    order = replies.c.id if chosen.oldest_first else replies.c.id.desc()
    statement = sa.select(replies).where(replies.c.tenant == tenant).order_by(order).limit(chosen.limit + 1)
    if chosen.run is not None:
        statement = statement.where(replies.c.run_id == chosen.run)
    if chosen.thread is not None:
        statement = statement.where(replies.c.thread_name == chosen.thread)
    if chosen.is_matched is not None:
        is_matched = replies.c.message.is_not(None)
        statement = statement.where(is_matched if chosen.is_matched else ~is_matched)
    if last is not None:
        statement = statement.where(replies.c.id > last if chosen.oldest_first else replies.c.id < last)
    return [_reply_of(row) for row in connection.execute(statement)]


def _select_newest(connection: Connection, tenant: TenantId, thread: str) -> str | None:
    """Select the Message-ID of the newest reply of a thread."""
    statement = sa.select(replies.c.mail_id).where(replies.c.tenant == tenant, replies.c.thread == thread)
    return connection.execute(statement.order_by(replies.c.id.desc()).limit(1)).scalar()
