"""The lock on a spool file: its owner holds it for life, so that a lock that can be taken proves the owner dead.

It is `flock`: the system lets it go with the process, however that ends, and no process id is ever trusted. Where a
system has none, nothing is kept and nothing is adopted: an outcome that nobody could ever adopt is not safe on disk.
"""

import errno
import os
from typing import Literal

try:
    import fcntl
except ImportError:  # Windows
    HAS_LOCKS = False
else:
    HAS_LOCKS = True

Owner = Literal["alive", "dead", "unknown"]


def take(file: int) -> bool:
    """Take the lock of an open file, without waiting. False where somebody else holds it. Raises OSError."""
    if not HAS_LOCKS:
        raise OSError(errno.ENOTSUP, "this system has no locks that end with their process (flock)")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def owner(path: str | os.PathLike[str]) -> Owner:
    """Tell whether a process holds a file's lock. Nothing is changed."""
    if not HAS_LOCKS:
        return "unknown"
    file = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return "alive"
    finally:
        os.close(file)
    return "dead"
