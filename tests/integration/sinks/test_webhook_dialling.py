"""No webhook reaches into a network that no operator allowed, however its address is spelled, found or changed."""

import pytest

from outbox_relay.networks import Networks, networks_of
from outbox_relay.sinks.base import Delivered, Permanent, Retryable
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import OK, Names, Webhooks, answering, receiver

NOWHERE = Networks()
SPELLINGS = (
    "127.0.0.1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST",
    "0.0.0.0",  # noqa: S104 - an address to be denied
    "0",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.000.000.001",
    "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::1%25lo]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
)


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_of_this_machine_is_dialled(
    host: str, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK)) as there:
        sink = webhooks.open(there.url(host), NOWHERE)
        result = await sink.send(make_outgoing())
        reached = await sink.check()
    assert isinstance(result, Permanent), result
    assert result.why.startswith("blocked: ")
    assert not reached.ok
    assert reached.detail == result.why
    assert there.connections == 0


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("10.0.0.7", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "shared by carriers (CGNAT)"),
        ("2002:a00:7::1", "6to4, stands for 10.0.0.7: private"),
        ("64:ff9b::a00:7", "NAT64, stands for 10.0.0.7: private"),
        ("fd00::7", "private (ULA)"),
    ],
)
async def test_a_name_that_leads_inward_is_blocked_and_the_operator_is_told_what_allows_it(
    address: str, why: str, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    sink = webhooks.open("https://inward.example/", NOWHERE, resolver=Names((address,)))
    result = await sink.send(make_outgoing())
    assert isinstance(result, Permanent)
    assert f"blocked: {address} is not dialled ({why}). " in result.why
    assert f"TWICESHY_RELAY_ALLOW={address}/" in result.why


async def test_a_name_that_rebinds_is_judged_each_time_it_is_dialled(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(("127.0.0.1",), ("127.0.0.2",))
    monkeypatch.setattr("outbox_relay.posting.DNS_SECONDS", 0)
    async with receiver(answering(OK)) as there:
        sink = webhooks.open(there.url("rebinds.example"), networks_of("127.0.0.1/32"), resolver=names)
        assert (await sink.check()).ok
        result = await sink.send(make_outgoing())
    assert isinstance(result, Permanent)
    assert result.why.startswith("blocked: 127.0.0.2 is not dialled (loopback)")
    assert names.asked == 2
    assert there.requests == []


async def test_of_several_addresses_only_those_are_dialled_that_may_be(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK)) as there:
        names = Names(("10.0.0.7", "fd00::7", "127.0.0.1"))
        sink = webhooks.open(there.url("several.example"), networks_of("127.0.0.1/32"), resolver=names)
        assert await sink.send(make_outgoing()) == Delivered(receipt="200: ok")


async def test_where_the_address_that_may_be_dialled_is_down_the_blocked_one_is_told_besides(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK)) as there:
        url = there.url("several.example")
    sink = webhooks.open(url, networks_of("127.0.0.1/32"), resolver=Names(("10.0.0.7", "127.0.0.1")))
    result = await sink.send(make_outgoing())
    assert isinstance(result, Retryable)
    assert result.is_unreachable
    assert "Nothing was sent. Besides, 10.0.0.7 is not dialled (private)." in result.why


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1"])
async def test_what_an_operator_allows_is_dialled(host: str, webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async with receiver(answering(OK)) as there:
        result = await webhooks.open(there.url(host), networks_of("127.0.0.1/32")).send(make_outgoing())
    assert result == Delivered(receipt="200: ok")


async def test_no_proxy_of_the_environment_is_asked(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with receiver(answering(OK)) as proxy, receiver(answering(OK)) as there:
        for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(variable, proxy.url())
        assert await webhooks.open(there.url()).send(make_outgoing()) == Delivered(receipt="200: ok")
    assert proxy.connections == 0


async def test_a_host_that_is_no_name_is_refused_for_good(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    result = await webhooks.open("http://a..b/", NOWHERE).send(make_outgoing())
    assert result == Permanent(why="blocked: the request cannot be made, its host is no name. Nothing was sent.")
