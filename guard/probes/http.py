"""Providers over HTTP, and the secrets that a probe's headers may hold.

The client is loaded with the first probe: most services never send one, and it would take a fifth of their start.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from guard.core.probing import ProbeReply, ProbeRequest
from twiceshy_contract.variables import SECRET_PREFIX

if TYPE_CHECKING:
    from guard.probes.client import Client


class HttpProvider:
    """Sends probes from one event loop; what a header may hold besides comes from the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.secrets: Final = {name: value for name, value in environment.items() if name.startswith(SECRET_PREFIX)}
        self._client: Client | None = None

    async def ask(self, request: ProbeRequest) -> ProbeReply:
        """Send a request once; follow nothing and read no more than an answer may have. Raises NoReply."""
        if self._client is None:
            from guard.probes.client import Client

            self._client = Client()
        return await self._client.ask(request)

    async def close(self) -> None:
        """Close what is open."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
