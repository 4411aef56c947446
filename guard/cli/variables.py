"""The environment of the server's verbs: a variable that looks like a setting and is none stops them."""

import os

import click

from twiceshy_contract.variables import refusal_of_unknown


def refuse_unknown_variables() -> None:
    """Check the names of all variables. Raises click.UsageError, which exits with 2."""
    refusal = refusal_of_unknown(os.environ)
    if refusal is not None:
        raise click.UsageError(refusal)
