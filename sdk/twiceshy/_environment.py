"""What a flow needs of its guard besides the driver: patience, clock, chance, heartbeat, spool, what is declared."""

import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from twiceshy._heartbeat import Heartbeat
from twiceshy._lease import Clock, clock
from twiceshy._options import Limits
from twiceshy._spool import Spool
from twiceshy._spooler import Spooler
from twiceshy._transports.base import Transport
from twiceshy.exceptions import EffectRef
from twiceshy_contract.names import EffectClass

_random: Final = secrets.SystemRandom()
_HOST: Final = socket.gethostname()[:150]


class Environment:
    """The surroundings of every flow of one guard.

    `classes` holds each declared tool's class, `inner_doubts` in which inner effect the doubt of an effect began.
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
        self.heartbeat = Heartbeat(transport, clock)
        self.spooler = None if spool is None else Spooler(Spool(spool, url), transport, clock, chance)
        self.classes: dict[str, EffectClass] = {}
        self.checked: set[str] = set()
        self.inner_doubts: dict[str, EffectRef] = {}

    @property
    def worker(self) -> str:
        """How this process is called in the record."""
        return f"{_HOST}:{os.getpid()}"
