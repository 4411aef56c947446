"""Try a database as a user without privileges, in a process of its own: embedded, then by `twiceshy serve`."""

import os
import sys

from click.testing import CliRunner

from guard.cli.serve import serve
from guard.embedded import open_app  # noqa: F401  all is imported before the right to read the installation is given up
from twiceshy import Guard, SetupError

NOBODY = 65534


def main(database: str) -> None:
    """Print what both say."""
    guard = Guard(database, spool=None)

    @guard.tool
    def pay() -> None:
        print("paid")

    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        with guard.run("r"):
            pay()
    except SetupError as error:
        print(error)
    done = CliRunner().invoke(serve, ["--database", database, "--port", "0"])
    print(done.exit_code, done.output)


if __name__ == "__main__":
    main(sys.argv[1])
