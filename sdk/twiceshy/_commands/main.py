"""The group that holds all commands. Those of entry points load when they are called, so none breaks another.

Exit codes: 0 done, 1 refused, unreachable or failed, 2 wrongly used, 130 stopped by Ctrl-C.
"""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import metadata
from typing import Any, Final

import click

from twiceshy._commands.approvals import approvals
from twiceshy._commands.completion import completion
from twiceshy._commands.contention import contention
from twiceshy._commands.destinations import destinations
from twiceshy._commands.doctor import doctor
from twiceshy._commands.effects import effects
from twiceshy._commands.flags import flags
from twiceshy._commands.groups import Group
from twiceshy._commands.holds import holds
from twiceshy._commands.keys import keys
from twiceshy._commands.outbox import outbox
from twiceshy._commands.policy import policy
from twiceshy._commands.runs import runs
from twiceshy._commands.sagas import sagas
from twiceshy._commands.spool import spool
from twiceshy._commands.tools import tools

GROUP: Final = "twiceshy.commands"
INTERRUPTED: Final = 130


class Commands(Group):
    """Own commands first, then those of the entry points `twiceshy.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name all commands without loading any."""
        return sorted({*super().list_commands(ctx), *(point.name for point in _entry_points())})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; what is broken about it is said only to who calls it."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        point = next((point for point in _entry_points() if point.name == cmd_name), None)
        return None if point is None else _loaded(point)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C ends it with one line, also where a question was asked."""
        _write_what_can_be_written()
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo("Stopped.", err=True)
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:  # whoever read the output has seen enough
            _forget_what_is_left()
            ctx.exit(0)
        except OSError as error:
            _forget_what_is_left()
            raise click.ClickException(f"The output cannot be written: {error.strerror or error}.") from error


def _forget_what_is_left() -> None:
    """Let what nobody can read go nowhere, so that the interpreter's end does not try to write it once more."""
    with suppress(OSError, ValueError):  # an output that is no file has nothing left
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _write_what_can_be_written() -> None:
    """Let a character that the output's encoding lacks be written out instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _entry_points() -> Iterator[metadata.EntryPoint]:
    yield from metadata.entry_points(group=GROUP)


def _loaded(point: metadata.EntryPoint) -> click.Command:
    try:
        command = point.load()
    except Exception as error:  # noqa: BLE001 - whatever another distribution's import raises
        return _broken(point, f"{type(error).__name__}: {error}")
    if not isinstance(command, click.Command):
        return _broken(point, f"{point.value} is no command")
    return command


def _broken(point: metadata.EntryPoint, why: str) -> click.Command:
    def fail() -> None:
        raise click.ClickException(f"`twiceshy {point.name}` cannot be loaded ({why}). Reinstall what provides it.")

    return click.Command(
        point.name,
        callback=fail,
        short_help=f"(cannot be loaded: {why})",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    )


@click.group(cls=Commands)
@click.version_option(package_name="twiceshy", prog_name="twiceshy")
def main() -> None:
    """Twiceshy: when an action must not happen twice."""


for command in (
    approvals, completion, contention, destinations, doctor, effects, flags, holds, keys, outbox, policy, runs, sagas,
    spool, tools,
):  # fmt: skip
    main.add_command(command)
