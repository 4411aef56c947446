"""The addresses of a host, judged for a client that makes its sockets by itself.

All of them are judged, not only the one that is dialled: which of them a client takes is the client's own choice.
"""

import ipaddress

from outbox_relay.names import literal, look_up
from outbox_relay.networks import Networks


class HostRefused(Exception):
    """An address of a host is not dialled. The text says why, and how an operator allows it."""


class HostUnknown(Exception):
    """A host has no address, as far as is known just now."""


async def judged_addresses(host: str, port: int, networks: Networks) -> tuple[str, ...]:
    """Return all addresses of a host, each of which may be dialled. Raises HostRefused, HostUnknown.

    The caller bounds the time.
    """
    addresses = await _addresses(host, port)
    for address in addresses:
        refusal = networks.refusal(address)
        if refusal is not None:
            raise HostRefused(refusal if address == host else f"{host}: {refusal}")
    return addresses


async def _addresses(host: str, port: int) -> tuple[str, ...]:
    try:
        return (str(ipaddress.ip_address(host)),)
    except ValueError:
        pass  # a name, or an address in another spelling, which the system reads
    try:
        found = await look_up(host, port)
    except (OSError, ValueError) as error:
        raise HostUnknown(f"{host} has no address: {error}") from error
    return tuple(dict.fromkeys(literal(address) for *_, address in found))
