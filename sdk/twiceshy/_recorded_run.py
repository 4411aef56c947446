"""A run that is recorded in this process: one log for all of its blocks, from its opening until the last is left."""

import threading
from typing import Final

from twiceshy._session import Session
from twiceshy._writer import Writer


class Recorded:
    """A run that is recorded here: its boundaries and its writer, and how many blocks are inside of it."""

    def __init__(self, run: str) -> None:
        self.run: Final = run
        self.blocks = 1
        self.was_opened = False
        self._settled = threading.Event()

    def open(self, session: Session, writer: Writer) -> None:
        """Let the blocks go on that wait for the opening."""
        self.session, self.writer = session, writer
        self.was_opened = True
        self._settled.set()

    def give_up(self) -> None:
        """Let the blocks that wait for the opening try it themselves."""
        self._settled.set()

    def wait(self, seconds: float) -> bool:
        """Wait until another block has opened the run, or has failed to."""
        return self._settled.wait(seconds)
