"""What starts agents that are killed, and those that go on in their place: a process that is spoken to line by line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]
_AT_ONCE = 20


class Keepers:
    """Starts agents that are killed, and those that go on."""

    def __init__(self, module: str, *words: str) -> None:
        command = [sys.executable, "-m", f"tests.acceptance.{module}", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT)

    def play(self, moments: dict[str, int]) -> list[dict[str, Any]]:
        """Play stories, by their names, whose first agent is killed at a moment; return how their agents ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        waiting = list(moments.items())
        ended: list[dict[str, Any]] = []
        under_way = 0
        while waiting or under_way:
            while waiting and under_way < _AT_ONCE:
                name, moment = waiting.pop()
                self.process.stdin.write(f"{name} {moment}\n")
                under_way += 1
            self.process.stdin.flush()
            ended.append(json.loads(self.process.stdout.readline()))
            under_way -= 1
        return ended

    def end(self) -> None:
        """End the process, which has no children any more."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
