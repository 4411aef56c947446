"""The turn to write to a SQLite file that other processes write to as well.

SQLite lets write next whoever asks in the right moment, and its own waiting asks ten times a second at last: beside
a few busy processes one may miss every such moment for seconds. So the file is asked a thousand times a second here.
It counts as locked once nobody committed for two seconds: a program holds it then, and not a crowd.
"""

import sqlite3
import time
from typing import Final

from sqlalchemy import Connection

_STUCK_SECONDS: Final = 2.0
_LONGEST_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.001


def begin_immediate(driver: sqlite3.Connection) -> None:
    """Begin a transaction that writes, as soon as no other does; the connection's own `busy_timeout` should be 0.

    A transaction that read first and wrote later would be refused whenever another process wrote between.

    Raises sqlite3.OperationalError: SQLITE_BUSY where another transaction stood for two seconds, or where others were
    ahead for ten.
    """
    asked = time.monotonic()
    stuck, seen = asked + _STUCK_SECONDS, None
    while True:
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            now, found = time.monotonic(), _commits(driver)
            if found != seen:
                stuck, seen = now + _STUCK_SECONDS, found
            if now >= min(stuck, asked + _LONGEST_SECONDS):
                raise
        else:
            return
        time.sleep(_PAUSE_SECONDS)


def driver_of(connection: Connection) -> sqlite3.Connection:
    """Return the driver's own connection, in the same transaction."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise TypeError(driver)
    return driver


def _commits(driver: sqlite3.Connection) -> int | None:
    """Return a number that is another once another connection has committed; None where the file cannot be read."""
    try:
        return int(driver.execute("PRAGMA data_version").fetchone()[0])
    except sqlite3.OperationalError:
        return None
