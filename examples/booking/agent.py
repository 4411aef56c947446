"""The agent of the example: a process that books one room, and that can be told when to be killed."""

import os
import signal
import sys

import click

from examples.booking.tools import Booking, book, define
from examples.provider_client import PROVIDER_VARIABLE, Provider
from twiceshy import Guard, Rejected, SagaOver

TAKEN_BACK = 3
"""The exit code that says that the booking failed and nothing of it is left."""


class MortalProvider(Provider):
    """The provider of an agent that is killed right after the provider has done an action, before it can tell."""

    def __init__(self, url: str, dies_after: str | None) -> None:
        super().__init__(url)
        self._dies_after = dies_after

    def do(self, action: str, **arguments: object) -> dict[str, str]:
        """Do something, and die of it where that is wished."""
        answer = super().do(action, **arguments)
        click.echo(f"{action}: {answer['id']}")
        if action == self._dies_after:
            sys.stdout.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


@click.command()
@click.argument("saga")
@click.option("--dies-after", help="The action after which it is killed.")
def main(*, saga: str, dies_after: str | None) -> None:
    """Book a room in the saga SAGA."""
    guard = Guard()
    tools = define(guard, MortalProvider(os.environ[PROVIDER_VARIABLE], dies_after))
    booking: Booking = {"room": "12", "night": "2026-10-12", "cents": 9900}
    try:
        with guard:
            click.echo(f"booked: {book(guard, tools, saga, booking)}")
    except Rejected as refusal:
        notes = getattr(refusal, "__notes__", [])
        click.echo(f"refused: {refusal}")
        click.echo(notes[-1] if notes else "")
        sys.exit(TAKEN_BACK)
    except SagaOver as over:
        click.echo(f"over: {over}")
        sys.exit(TAKEN_BACK)


if __name__ == "__main__":
    main()
