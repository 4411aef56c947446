"""Run migrations on the connection, and in the transaction, that `guard.store.sql.schema` hands over."""

from alembic import context
from sqlalchemy import Connection

from guard.store.sql import outbox_tables


def run() -> None:
    connection = context.config.attributes.get("connection")
    if not isinstance(connection, Connection):
        message = "Migrations run through `twiceshy migrate`, which brings the connection and the lock."
        raise TypeError(message)
    context.configure(connection=connection, target_metadata=outbox_tables.outbox.metadata)
    with context.begin_transaction():
        context.run_migrations()


run()
