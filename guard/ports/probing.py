"""How the service asks a provider what became of an effect."""

from collections.abc import Mapping
from typing import Protocol

from guard.core.probing import ProbeReply, ProbeRequest


class NoReply(Exception):
    """The provider gave no answer that can be read; the text says why."""


class Provider(Protocol):
    """Sends one request to wherever it names."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """What headers may hold besides, by the names of the service's environment."""

    async def ask(self, request: ProbeRequest) -> ProbeReply:
        """Send a request once; follow nothing and read no more than an answer may have. Raises NoReply."""
