"""A mail server in a process of its own: it writes each mail into a file before it says that it has it.

It may be told to fall silent after so many mails: from then on it keeps what comes, and answers nothing any more.
"""

import asyncio
import os
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path
from typing import Final, Self

from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.brokers import free_port

_NEVER: Final = 10**9


class MailKeeper:
    """One server; its port and its file are kept when it is killed and started again."""

    def __init__(self, path: Path) -> None:
        self.port = free_port()
        self._path = path
        self._process: subprocess.Popen[str] | None = None

    @property
    def subjects(self) -> list[str]:
        """What it was given, in order."""
        return self._path.read_text(encoding="ascii").splitlines()

    def start(self, silent_after: int | None = None) -> Self:
        """Start it, and wait until it listens."""
        silence = _NEVER if silent_after is None else silent_after
        command = [sys.executable, "-m", __name__, str(self.port), str(self._path), str(silence)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.hear("ready")
        return self

    def hear(self, word: str) -> None:
        """Wait until it says so: that it is `ready`, or has fallen `silent`."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word

    def kill(self) -> None:
        """Kill it as a power cut would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


class _Keeping:
    """Appends the subjects of mails to a file."""

    def __init__(self, path: str, silent_after: int) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._left = silent_after

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - the library's
        """Keep the mail, then answer, or never."""
        assert isinstance(envelope.content, bytes)
        os.write(self._file, f"{message_from_bytes(envelope.content)['Subject']}\n".encode("ascii"))
        os.fsync(self._file)
        self._left -= 1
        if self._left == 0:
            print("silent", flush=True)
        if self._left <= 0:
            await asyncio.Event().wait()
        return "250 2.0.0 kept"


async def _serve(port: int, path: str, silent_after: int) -> None:
    loop, keeping = asyncio.get_running_loop(), _Keeping(path, silent_after)
    server = await loop.create_server(lambda: SMTP(keeping, hostname="localhost", loop=loop), "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
