"""The stage of the demo: the guard's service and the calendar as processes of their own, and agents to send on it."""

import sqlite3
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from guard.demo.holds import CALENDAR_VARIABLE, Calendar
from guard.demo.http import JsonService
from guard.demo.processes import Child, ChildFailed, Children

START_SECONDS: Final = 30.0
_WORK_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.01
_HOLDS: Final = msgspec.json.Decoder(tuple[int, ...])


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One accident, once: the run that the agent works in, and the time that it books."""

    run: str
    start_time: str
    guarded: bool


class Agent:
    """An agent's process. It stands ready and waits for the word."""

    def __init__(self, child: Child) -> None:
        self._child = child
        child.line(START_SECONDS)

    def go(self) -> None:
        """Let it work."""
        self._child.say("go")

    def told(self) -> tuple[int, ...]:
        """Wait until it has done, and return the holds that it was told of."""
        line = self._child.line(_WORK_SECONDS)
        self._child.wait(_WORK_SECONDS)
        return _HOLDS.decode(line)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._child.kill()


class Stage:
    """What an accident needs: a calendar that can fail, its file, the guard, and agents."""

    def __init__(self, children: Children, guard_url: str, calendar_url: str, calendar_file: Path) -> None:
        self.guard: Final = JsonService(guard_url)
        self.calendar: Final = Calendar(calendar_url)
        self._file = calendar_file
        self.children: Final = children
        self._environment = {"TWICESHY_URL": guard_url, CALENDAR_VARIABLE: calendar_url}

    def agent(self, scene: Scene, *options: str) -> Agent:
        """Start an agent for a scene."""
        return self._agent(scene, options, self._environment)

    def agent_of(self, guard_url: str, scene: Scene, environment: Mapping[str, str]) -> Agent:
        """Start an agent for a scene that another guard than the stage's is asked for."""
        return self._agent(scene, (), {**self._environment, "TWICESHY_URL": guard_url, **environment})

    def _agent(self, scene: Scene, options: Sequence[str], environment: Mapping[str, str]) -> Agent:
        given = [*options, *(["--guarded"] if scene.guarded else []), scene.run, scene.start_time]
        command = [sys.executable, "-m", "guard.demo.agent", *given]
        return Agent(self.children.start("The agent", command, environment))

    def booked(self, start_time: str) -> tuple[int, ...]:
        """Read from the calendar's own file which holds there are at a time."""
        with closing(sqlite3.connect(f"{self._file.as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT id FROM holds WHERE start_time = ? ORDER BY id", (start_time,))
            return tuple(number for (number,) in rows)

    def see_booked(self, start_time: str) -> None:
        """Wait until the file has a hold at a time."""
        until = time.monotonic() + _WORK_SECONDS
        while not self.booked(start_time):
            if time.monotonic() > until:
                raise ChildFailed(f"The agent booked nothing at {start_time} in {_WORK_SECONDS:.0f} seconds.")
            time.sleep(_POLL_SECONDS)


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """Start the service and the calendar in a folder, and end every process afterwards. Raises ChildFailed."""
    calendar_file = folder / "calendar.db"
    serve = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", f"sqlite:///{folder / 'guard.db'}"]
    with Children(folder) as children:
        guard = children.start("The guard's service", serve)
        keep_calendar = [sys.executable, "-m", "guard.demo.calendar", str(calendar_file)]
        calendar = children.start("The calendar", keep_calendar)
        yield Stage(children, address_of(guard), address_of(calendar), calendar_file)


def address_of(child: Child) -> str:
    """Read the address that a service says it serves once it does."""
    line = child.line(START_SECONDS)
    address = next((word for word in line.split() if word.startswith("http://")), None)
    if address is None:
        raise ChildFailed(f"{child.name} said no address: {line}")
    return address
