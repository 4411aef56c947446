"""`twiceshy migrate`: the database's schema, brought to this version."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import click

from guard import preparation
from guard.cli.variables import refuse_unknown_variables
from guard.ports.store import StoreUnavailable
from guard.settings import DEFAULT_DATABASE
from guard.store.sql.refusals import DatabaseRefused

DATABASE_OPTION = click.option(
    "--database",
    default=DEFAULT_DATABASE,
    show_default=True,
    envvar="TWICESHY_DATABASE",
    show_envvar=True,
    help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME.",
)


@contextmanager
def said_plainly() -> Iterator[None]:
    """Turn what is wrong with a database into one clear line and exit code 1."""
    try:
        yield
    except DatabaseRefused as error:
        raise click.ClickException(str(error)) from error
    except StoreUnavailable as error:
        raise click.ClickException(f"{str(error).rstrip('.')}. Check --database, and that the server runs.") from error


@click.command()
@DATABASE_OPTION
def migrate(database: str) -> None:
    """Bring the database's schema to this version; safe to repeat."""
    refuse_unknown_variables()
    with said_plainly():
        revision = asyncio.run(preparation.migrate(database))
    click.echo(f"The schema is at {revision}.")
