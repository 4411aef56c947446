"""What a flow needs of its guard besides the driver: patience, clock, chance, heartbeat, spool, what is declared."""

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from twiceshy._answers import HeldDeclaration
from twiceshy._delivered import Deliveries
from twiceshy._heartbeat import Heartbeat
from twiceshy._lease import Clock, clock
from twiceshy._options import Limits, ToolSpec
from twiceshy._probes import Probe
from twiceshy._recorder import Recorder
from twiceshy._spool import Spool
from twiceshy._spooler import Spooler
from twiceshy._transports.base import Transport
from twiceshy.exceptions import EffectRef
from twiceshy_contract.tools import ToolDeclaration

_random: Final = secrets.SystemRandom()
_HOST: Final = socket.gethostname()[:150]


class GuardedFunction(msgspec.Struct, frozen=True):
    """A function behind the guard, as it is found by its tool's name."""

    spec: ToolSpec
    function: Callable[..., Any]
    is_async: bool


def home_of(function: Callable[..., Any]) -> str:
    """Return where a function is defined: what is defined there anew takes its place."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry was told of a tool, what it holds of it since, and when it said so."""

    said: ToolDeclaration
    held: HeldDeclaration
    at: float


class Environment:
    """The surroundings of every flow of one guard.

    `declared` holds what the registry says of each declared tool; until `reads_unasked_until`, reads run without being
    asked about, because it gave no answer. `deliveries` holds what each run's agent has been given,
    `tools` the functions behind the guard by their names and `probes` those beside them, `inner_doubts` in which inner
    effect the doubt of an effect began. `credentials` are those by which runs are driven that are forks, or below one,
    by the runs' names, and `credential` is the guard's own token where that is one; `held_in_forks` is what the
    registry says to such a credential, which declares nothing. `told_of_threads` are tools of which it was said that
    their calls come from threads that see no run.
    """

    def __init__(
        self,
        url: str,
        transport: Transport,
        limits: Limits,
        *,
        clock: Clock = clock,
        chance: Callable[[], float] = _random.random,
        spool: Path | None = None,
    ) -> None:
        self.url = url
        self.transport = transport
        self.limits = limits
        self.clock = clock
        self.chance = chance
        self.credential: str | None = None
        self.credentials: dict[str, str] = {}
        self.held_in_forks: dict[tuple[str, str], Declared] = {}
        self.heartbeat = Heartbeat(transport, clock, self.credentials)
        self.spooler = None if spool is None else Spooler(Spool(spool, url), transport, clock, chance)
        self.recorder = Recorder(transport, url, spool, chance)
        self.declared: dict[str, Declared] = {}
        self.reads_unasked_until = 0.0
        self.deliveries = Deliveries()
        self.checked: set[str] = set()
        self.told_of_threads: set[str] = set()
        self.inner_doubts: dict[str, EffectRef] = {}
        self.tools: dict[str, GuardedFunction] = {}
        self.probes: dict[str, Probe] = {}

    def credential_of(self, run: str | None) -> str | None:
        """Return the credential by which a run is driven; None for an ordinary one. All are where it is the guard's."""
        return None if run is None else self.credentials.get(run, self.credential)

    def drive_by(self, run: str, credential: str | None) -> None:
        """Let a run be driven by a credential from now on, where there is one."""
        if credential is not None:
            self.credentials[run] = credential

    @property
    def worker(self) -> str:
        """How this process is called in the record."""
        return f"{_HOST}:{os.getpid()}"
