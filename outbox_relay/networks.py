"""Which addresses a message may be sent to: none inside a network, unless an operator names that network.

A name may mean another address every time it is asked, so an address is judged where it is dialled. An IPv6 address
that stands for an IPv4 address is judged as both.
"""

import ipaddress
from collections.abc import Iterator
from typing import Final

import msgspec

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

VARIABLE: Final = "TWICESHY_RELAY_ALLOW"
"""The environment variable in which an operator names the networks that may be dialled nevertheless."""

_DENIED: Final[tuple[tuple[Network, str], ...]] = tuple(
    (ipaddress.ip_network(network), reason)
    for network, reason in (
        ("0.0.0.0/32", "unspecified"),
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by carriers (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's own service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "a 6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "v4-compatible"),
        ("::ffff:0:0/96", "v4-mapped"),
        ("::ffff:0:0:0/96", "v4-translated"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "reserved for protocols"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private (ULA)"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
"""What is denied and why, the first that fits."""
_PUBLIC_V6: Final = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is handed out to the public; what is outside is denied, named above or not."""
_EMBEDDING: Final = tuple(
    ipaddress.IPv6Network(network)
    for network in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""Networks whose addresses end in the IPv4 address that they stand for."""


class Networks(msgspec.Struct, frozen=True):
    """The networks that an operator allows besides the public ones."""

    allowed: tuple[Network, ...] = ()

    def refusal(self, literal: str) -> str | None:
        """Say why the address is not dialled, and how an operator allows it. None: it may be dialled.

        `literal` is what a socket is given: an address, with a zone or without.
        """
        address = ipaddress.ip_address(literal.partition("%")[0])
        refused = [(part, why) for part in _meanings(address) if (why := self._why_not(part))]
        if not refused:
            return None
        reasons = ", ".join(why if part == address else f"stands for {part}: {why}" for part, why in refused)
        entries = ",".join(f"{part}/{part.max_prefixlen}" for part, _ in refused)
        return f"{address} is not dialled ({reasons}). An operator allows it with {VARIABLE}={entries}"

    def _why_not(self, address: Address) -> str | None:
        if any(address in network for network in self.allowed):
            return None
        why = next((why for network, why in _DENIED if address in network), None)
        if why is None and address.version == 6 and address not in _PUBLIC_V6:
            return "reserved"
        return why


def networks_of(text: str) -> Networks:
    """Read a list of networks, separated by commas, such as `10.0.0.0/8,127.0.0.1/32`. Raises ValueError."""
    return Networks(tuple(_network(part.strip()) for part in text.split(",") if part.strip()))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {text!r} is not a network. {_advice(text)}") from error


def _advice(text: str) -> str:
    try:
        return (
            f"It has bits behind its length; the network that holds it is {ipaddress.ip_network(text, strict=False)}."
        )
    except ValueError:
        return "Write addresses, not names, each with its length: 10.0.0.0/8, 127.0.0.1/32 or fd00::/8."


def _meanings(address: Address) -> Iterator[Address]:
    """Yield the address, and every IPv4 address that it stands for."""
    yield address
    if isinstance(address, ipaddress.IPv4Address):
        return
    if any(address in network for network in _EMBEDDING) and int(address) > 1:
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
