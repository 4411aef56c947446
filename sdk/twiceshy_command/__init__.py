"""The entry of the command `twiceshy`: a Ctrl-C ends it with one line, even while it is being loaded.

It is a package of its own so that something stands before the first module of Twiceshy is loaded.
"""

import sys


def main() -> None:
    """Load the command and call it."""
    try:
        from twiceshy._commands import main as command

        command(prog_name="twiceshy")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        sys.exit(130)
