"""Secrets by their names: read from the environment or a file when they are used, never kept in a row.

Whoever declares a destination chooses the name and the receiver. So a file is read only where an operator keeps secrets
and nothing else: below the folders of `TWICESHY_SECRET_FILES`, wherever its name leads.
"""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from outbox_relay.sinks.base import SinkRefused

ReadSecret = Callable[[str], str]
"""Returns the secret of a name. Raises SinkRefused."""

FOLDERS_VARIABLE: Final = "TWICESHY_SECRET_FILES"
"""The environment variable in which an operator names the folders of secrets."""
DEFAULT_FOLDER: Final = "/run/secrets"
MAX_SECRET_BYTES: Final = 2**16
_SOMEBODY_ELSES: Final = "kubernetes.io"
"""What a pod has in the default folder: the token of its account at the cluster, which is no secret of a receiver."""
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def secret_reader(environment: Mapping[str, str]) -> ReadSecret:
    """Return what reads `env:NAME` from this environment and `file:/path` from its folders, anew each time."""

    def read(name: str) -> str:
        kind, _, place = name.partition(":")
        if kind == "env":
            found = environment.get(place, "")
            if not found:
                raise SinkRefused(f"The secret {name} is not set: give the relay an environment variable {place}.")
            return found
        folders = secret_folders(environment)
        found = _file(Path(place), folders) or ""
        if not found:
            raise SinkRefused(
                f"The secret {name} cannot be read as a secret: put it below {' or '.join(map(str, folders))}, as a "
                f"file of at most {MAX_SECRET_BYTES // 1024} KiB of text that the relay can read, or name its folder "
                f"in {FOLDERS_VARIABLE}."
            )
        return found

    return read


def secret_folders(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders whose files are secrets."""
    named = environment.get(FOLDERS_VARIABLE) or DEFAULT_FOLDER
    return tuple(Path(folder) for folder in named.split(os.pathsep) if folder)


def _file(place: Path, folders: Sequence[Path]) -> str | None:
    """Return the text of a file that may be read as a secret; why another may not is told to nobody."""
    try:
        leads_to = place.resolve(strict=True)
        if not any(_is_below(leads_to, folder) for folder in folders):
            return None
        descriptor = os.open(leads_to, _READ)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_SECRET_BYTES:
                return None
            read = os.read(descriptor, MAX_SECRET_BYTES + 1)
        finally:
            os.close(descriptor)
        return read.decode().strip() if len(read) <= MAX_SECRET_BYTES else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: links that lead in a circle
        return None


def _is_below(place: Path, folder: Path) -> bool:
    home = folder.resolve()
    if not place.is_relative_to(home):
        return False
    return str(folder) != DEFAULT_FOLDER or _SOMEBODY_ELSES not in place.relative_to(home).parts
