"""Write the page of the command line, printed from its commands: `python docs/make_command_reference.py`.

A test holds it. The help is laid out for a fixed width and without this machine's variables.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from twiceshy._commands import main

PAGE = Path(__file__).parent / "reference" / "command.md"
_WIDTH = 100
_INTRODUCTION = """# The command

Printed from the commands themselves, as `twiceshy COMMAND --help` shows them. Those that serve come with the server's
distribution; a command that looks at effects, runs and tools needs only the SDK, and a service or a database.

- **Exit codes**: 0 done; 1 refused by the service, unreachable, or a check of `doctor` failed; 2 wrongly used; 130
  stopped by Ctrl-C. `runs diff` and `runs replay` answer 1 for what differs as well, and `runs replay` 3 for what did
  not come to its end.
- **Where**: `--url` or `TWICESHY_URL` names a service, or a database that the command then opens itself, such as the
  `sqlite:///twiceshy.db` of an embedded guard.
- **Scripts**: every listing and `show` takes `--json`. What is not printed on a terminal is plain, and no line is
  wrapped or cut. Errors and progress go to standard error.
- **Shells**: `twiceshy completion --help` says how to have commands, options, states and tools completed.
"""


def command() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_sections("twiceshy", main, None)])


def _sections(name: str, command: click.Command, parent: click.Context | None) -> Iterator[str]:
    """Return the help of a command and of those below it, each under a heading."""
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=_WIDTH, max_content_width=_WIDTH, color=False
    )
    yield f"## `{context.command_path}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _sections(below, found, context)


if __name__ == "__main__":
    PAGE.write_text(command(), encoding="utf-8")
