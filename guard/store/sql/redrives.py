"""What goes along when messages are sent again or rendered at last: the ids of mail, and what an effect has staged.

A message whose effect was taken back is not sent again under its first epoch: a relay would withdraw it. A later epoch
is a person's own effect, which no saga takes back.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant
from guard.core.mail import mail_id
from guard.core.outbox import FIRST_EPOCH, Staged
from guard.ports.outbox import Redrive
from guard.store.sql.codes import PARKED, STEP_STATE_CODES
from guard.store.sql.outbox_rows import staged_row
from guard.store.sql.outbox_tables import mails, outbox, stagings
from guard.store.sql.policy_tables import saga_steps

TAKEN_BACK: Final = "its effect was taken back: send it `anew`, a second effect, if the world should have it still"
_RENDERED: Final = "it was rendered when its destination could take it: redrive it"
_is_compensated: Final = sa.exists().where(
    saga_steps.c.key == outbox.c.effect, saga_steps.c.state == STEP_STATE_CODES["compensated"]
)
WITHHELD: Final = sa.and_(outbox.c.epoch == FIRST_EPOCH, _is_compensated)
"""Said of a message whose effect was taken back, and which nobody has sent anew."""


def is_withheld(connection: Connection, row: sa.Row[Any], wish: Redrive) -> bool:
    """Select whether a message could only be sent anew, and that is not wished."""
    statement = sa.select(sa.exists().where(outbox.c.id == row.id, WITHHELD))
    return not wish.anew and bool(connection.execute(statement).scalar())


def insert_mails_anew(connection: Connection, at: Instant, rows: Sequence[sa.Row[Any]]) -> None:
    """Add the ids under which mail is sent in its next epoch, in the thread that it belongs to."""
    wanted = {mail_id(f"{row.message}.{row.epoch}"): row for row in rows if row.recipient is not None}
    found = connection.execute(sa.select(mails).where(mails.c.mail_id.in_(wanted))).all() if wanted else ()
    values = []
    for mail in found:
        epoch = wanted[mail.mail_id].epoch + 1
        next_id = mail_id(f"{mail.message}.{epoch}")
        values.append({**mail._mapping, "mail_id": next_id, "epoch": epoch, "staged_at": at})  # noqa: SLF001
    _insert(connection, values)


def insert_rendered(
    connection: Connection, at: Instant, place: sa.Row[Any], rows: Sequence[Staged], wish: Redrive | None
) -> None:
    """Add rendered messages in the place of one: the first has its id, by which lanes go. They wait without a wish."""
    note = _RENDERED if wish is None else wish.note
    for number, row in enumerate(rows):
        values = staged_row(row, place, note, Instant(at + row.delay))
        values |= {} if number else {"id": place.id}
        values |= {} if wish is not None else {"state": PARKED, "in_lane": False}
        connection.execute(sa.insert(outbox).values(**values))
    insert_mails(connection, at, place, rows)
    if wish is not None and wish.anew:
        of_rows = outbox.c.message.in_([row.message for row in rows])
        insert_mails_anew(connection, at, connection.execute(sa.select(outbox).where(of_rows)).all())
        connection.execute(sa.update(outbox).where(of_rows).values(epoch=outbox.c.epoch + 1))


def insert_mails(connection: Connection, at: Instant, place: sa.Row[Any], rows: Sequence[Staged]) -> None:
    """Add the ids of mail that could not be rendered when it was staged."""
    named = [row for row in rows if row.mail_id is not None]
    whose = {"tenant": place.tenant, "run_id": place.run_id, "run": place.run, "epoch": place.epoch, "staged_at": at}
    of_mail = ("mail_id", "message", "thread", "thread_name", "destination", "recipient")
    _insert(connection, [{**whose, **{name: getattr(row, name) for name in of_mail}} for row in named])


def replace_staged(connection: Connection, place: sa.Row[Any], messages: Sequence[UUID]) -> None:
    """Write down which messages stand in the place of one that an effect has staged."""
    of_effect = stagings.c.effect == place.effect
    ids = connection.execute(sa.select(stagings.c.messages).where(of_effect).with_for_update()).scalar()
    if ids is None:
        return
    whole = [ids[start : start + 16] for start in range(0, len(ids), 16)]
    now = [own for id_ in whole for own in ([one.bytes for one in messages] if id_ == place.message.bytes else [id_])]
    connection.execute(sa.update(stagings).where(of_effect).values(messages=b"".join(now)))


def _insert(connection: Connection, values: Sequence[dict[str, Any]]) -> None:
    """Add ids of mail that are not there yet."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    if values:
        connection.execute(dialect.insert(mails).values(values).on_conflict_do_nothing(index_elements=("mail_id",)))
