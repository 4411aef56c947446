"""An address is denied by what it is and by what it stands for, and allowed by an operator's list alone."""

import ipaddress

import pytest

from outbox_relay.networks import Networks, networks_of

DENIED = {
    "0.0.0.0": "unspecified",  # noqa: S104 - an address to be denied
    "0.1.2.3": "this network",
    "10.0.0.0": "private",
    "10.255.255.255": "private",
    "100.64.0.1": "shared by carriers (CGNAT)",
    "100.100.100.200": "shared by carriers (CGNAT)",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "a cloud's own service",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.192": "reserved for protocols",
    "192.0.2.1": "documentation",
    "192.88.99.1": "a 6to4 relay",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "198.19.255.255": "benchmarking",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "::8.8.8.8": "v4-compatible",
    "::ffff:8.8.8.8": "v4-mapped",
    "::ffff:0:8.8.8.8": "v4-translated",
    "64:ff9b::8.8.8.8": "NAT64",
    "64:ff9b:1::8.8.8.8": "local NAT64",
    "100::1": "discard",
    "2001::1": "Teredo",
    "2001:20::1": "reserved for protocols",
    "2001:db8::1": "documentation",
    "2002:808:808::1": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "fc00::1": "private (ULA)",
    "fd00:ec2::254": "private (ULA)",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
}
PUBLIC = (
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450::1",
)


@pytest.mark.parametrize("address", DENIED)
def test_what_is_not_public_is_denied_by_its_name(address: str) -> None:
    refusal = Networks().refusal(address)
    assert refusal is not None
    assert f"is not dialled ({DENIED[address]}" in refusal


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_may_be_dialled(address: str) -> None:
    assert Networks().refusal(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::127.0.0.1",
        "2002:7f00:1::1",
        "2001:0:7f00:1:0:0:f7f7:f7f7",
        "2001:0:808:808:0:0:80ff:fffe",
    ],
)
def test_an_address_that_stands_for_a_denied_one_is_denied_also_where_its_network_is_allowed(address: str) -> None:
    plain = ipaddress.IPv6Address(address)
    carrier = networks_of(str(ipaddress.IPv6Network((int(plain) >> 96 << 96, 32))))
    refusal = carrier.refusal(address)
    assert refusal == (
        f"{plain} is not dialled (stands for 127.0.0.1: loopback). "
        "An operator allows it with TWICESHY_RELAY_ALLOW=127.0.0.1/32"
    )


def test_a_mapped_address_is_denied_also_where_what_it_stands_for_is_allowed() -> None:
    refusal = networks_of("127.0.0.0/8").refusal("::ffff:127.0.0.1")
    assert refusal is not None
    assert "v4-mapped" in refusal
    assert "loopback" not in refusal


def test_what_a_refusal_says_an_operator_does_is_enough() -> None:
    for address in DENIED:
        refusal = Networks().refusal(address)
        assert refusal is not None
        assert networks_of(refusal.rpartition("TWICESHY_RELAY_ALLOW=")[2]).refusal(address) is None


def test_an_allowed_network_is_allowed_and_its_neighbour_is_not() -> None:
    networks = networks_of("10.1.0.0/16, 127.0.0.1/32,fd00::/8")
    assert networks.refusal("10.1.255.255") is None
    assert networks.refusal("127.0.0.1") is None
    assert networks.refusal("fd12::1") is None
    assert networks.refusal("10.2.0.0") is not None
    assert networks.refusal("127.0.0.2") is not None
    assert networks.refusal("fc12::1") is not None


@pytest.mark.parametrize("text", ["", "  ", ","])
def test_an_empty_list_allows_nothing(text: str) -> None:
    assert networks_of(text) == Networks()


def test_an_address_alone_is_a_network_of_one() -> None:
    assert networks_of("10.0.0.7") == networks_of("10.0.0.7/32")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("localhost", "'localhost' is not a network. Write addresses, not names, each with its length"),
        ("10.0.0.0/8,10.0.0.1/33", "'10.0.0.1/33' is not a network. Write addresses"),
        (
            "10.1.2.3/8",
            "'10.1.2.3/8' is not a network. It has bits behind its length; the network that holds it is 10.0.0.0/8",
        ),
        ("0177.0.0.1/32", "'0177.0.0.1/32' is not a network"),
        ("10.0.0.0/8 127.0.0.1", "is not a network"),
    ],
)
def test_what_is_no_network_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="TWICESHY_RELAY_ALLOW: ") as refused:
        networks_of(text)
    assert said in str(refused.value)
