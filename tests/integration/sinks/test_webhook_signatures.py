"""What is sent proves who sent it, is the same on every try, and nothing in it can be passed off as ours."""

import base64
import time
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbox_relay.sinks import webhook
from outbox_relay.sinks.base import Delivered, Retryable, SinkRefused
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import OK, Received, Webhooks, answering, receiver, status

OLD = "whsec_" + base64.b64encode(b"old secret" * 3).decode()
NEW = "whsec_" + base64.b64encode(b"new secret" * 3).decode()
A, B = "env:TWICESHY_SECRET_A", "env:TWICESHY_SECRET_B"


def verifies(received: Received, secret: str) -> bool:
    try:
        Webhook(secret).verify(received.body, received.headers, json_parse=False)
    except WebhookVerificationError:
        return False
    return True


async def test_each_live_secret_signs_so_that_an_old_receiver_still_verifies(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, environment: dict[str, str]
) -> None:
    environment |= {"TWICESHY_SECRET_A": OLD, "TWICESHY_SECRET_B": NEW}
    async with receiver(answering(OK)) as there:
        await webhooks.open(there.url(), secrets=(A, B)).send(make_outgoing(body="{'€': 1}".encode()))
    assert verifies(there.requests[0], OLD)
    assert verifies(there.requests[0], NEW)
    assert not verifies(there.requests[0], "whsec_" + base64.b64encode(b"another" * 4).decode())


async def test_a_try_after_a_rotation_is_signed_with_the_secrets_of_then(
    webhooks: Webhooks,
    make_outgoing: MakeOutgoing,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook, "SECRETS_SECONDS", 0)
    environment["TWICESHY_SECRET_FILES"] = str(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text(OLD + "\n")
    outgoing = make_outgoing()
    async with receiver(answering(status(500), OK)) as there:
        sink = webhooks.open(there.url(), secrets=(f"file:{secret}",))
        await sink.send(outgoing)
        secret.write_text(NEW)
        await sink.send(outgoing)
    assert [verifies(received, OLD) for received in there.requests] == [True, False]
    assert [verifies(received, NEW) for received in there.requests] == [False, True]


async def test_every_try_has_the_same_identity_and_bytes_and_its_own_time(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, environment: dict[str, str]
) -> None:
    environment["TWICESHY_SECRET_A"] = OLD
    outgoing = make_outgoing(epoch=3, at=1_800_000_000_999_999)
    async with receiver(answering(status(500), OK)) as there:
        sink = webhooks.open(there.url(), secrets=(A,))
        await sink.send(outgoing)
        await sink.send(make_outgoing(message=outgoing.message, epoch=3, number=2, at=1_800_000_060_000_000))
    first, second = there.requests
    assert first.headers["webhook-id"] == first.headers["idempotency-key"] == f"{outgoing.message}.3"
    assert first.headers["webhook-timestamp"] == "1800000000"
    assert second.headers["webhook-timestamp"] == "1800000060"
    assert first.body == second.body == outgoing.body
    differ = {name for name in first.headers if first.headers[name] != second.headers[name]}
    assert differ == {"webhook-timestamp", "webhook-signature"}


async def test_without_secrets_a_message_is_named_and_not_signed(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    outgoing = make_outgoing()
    before = int(time.time())
    async with receiver(answering(OK)) as there:
        await webhooks.open(there.url()).send(outgoing)
    received = there.requests[0]
    assert received.line == "POST /hook?a=1 HTTP/1.1"
    assert before <= int(received.headers.pop("webhook-timestamp")) <= int(time.time())
    assert received.headers == {
        "host": f"127.0.0.1:{there.port}",
        "user-agent": "twiceshy/0.1.0",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": "11",
        "webhook-id": outgoing.identity,
        "idempotency-key": outgoing.identity,
        "twiceshy-type": "order.created",
        "x-trace": "abc",
    }


async def test_the_headers_of_a_message_stand_over_those_of_its_destination_and_secret_ones_over_both(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, environment: dict[str, str]
) -> None:
    environment["TWICESHY_SECRET_A"] = "Bearer s3cret"
    outgoing = make_outgoing(
        headers={"x-own": "message", "authorization": "none", "CONTENT-TYPE": "application/cloudevents+json"}
    )
    async with receiver(answering(OK)) as there:
        sink = webhooks.open(
            there.url(), headers={"X-Own": "destination", "X-All": "yes"}, secret_headers={"Authorization": A}
        )
        assert await sink.send(outgoing) == Delivered(receipt="200: ok")
    headers = there.requests[0].headers
    assert headers["x-own"] == "message"
    assert headers["x-all"] == "yes"
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["content-type"] == "application/cloudevents+json"


async def test_a_message_cannot_say_what_only_the_relay_says(webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    forged = (
        "Webhook-Id", "webhook-signature", "WEBHOOK-TIMESTAMP", "idempotency-key", "Twiceshy-Type", "Host",
        "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Upgrade",
    )  # fmt: skip
    outgoing = make_outgoing(headers=dict.fromkeys(forged, "7"))
    async with receiver(answering(OK)) as there:
        assert await webhooks.open(there.url()).send(outgoing) == Delivered(receipt="200: ok")
    headers = there.requests[0].headers
    assert headers["webhook-id"] == headers["idempotency-key"] == outgoing.identity
    assert headers["twiceshy-type"] == "order.created"
    assert headers["host"] == f"127.0.0.1:{there.port}"
    assert headers["content-length"] == "11"
    assert headers.keys().isdisjoint({"webhook-signature", "transfer-encoding", "connection", "expect", "upgrade"})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "ftp://x.example/"}, "begins with neither http://host nor https://host"),
        ({"url": "https:///path"}, "begins with neither"),
        ({"url": "//x.example/"}, "begins with neither"),
        ({"url": "https://[::1"}, "cannot be read"),
        ({"url": "https://x.example:99999/"}, "cannot be read"),
        ({"url": "https://user:pass@x.example/"}, "holds a user or a password"),
        ({"headers": {"Webhook-Id": "1"}}, "The header Webhook-Id of hook is set by the relay alone"),
        ({"headers": {"content-length": "1"}}, "The header content-length of hook"),
        ({"secret_headers": {"Idempotency-Key": A}}, "The header Idempotency-Key of hook"),
        ({"secrets": (A,)}, "is not set"),
        ({"secrets": (B,)}, "begins with whsec_"),
        ({"secret_headers": {"Authorization": "env:TWICESHY_SECRET_LINES"}}, "on one line"),
    ],
)
async def test_a_destination_that_cannot_be_sent_to_is_refused_when_it_is_opened(
    settings: dict[str, Any], said: str, webhooks: Webhooks, environment: dict[str, str]
) -> None:
    environment |= {"TWICESHY_SECRET_B": "plain", "TWICESHY_SECRET_LINES": "a\nX: s3cret"}
    with pytest.raises(SinkRefused) as refused:
        webhooks.open(**{"url": "https://x.example/"} | settings)
    assert said in str(refused.value)
    assert "s3cret" not in str(refused.value)
    assert "pass@" not in str(refused.value)


async def test_a_secret_that_is_gone_when_a_message_is_sent_is_told_and_the_message_is_tried_again(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "SECRETS_SECONDS", 0)
    environment["TWICESHY_SECRET_A"] = OLD
    async with receiver(answering(OK)) as there:
        sink = webhooks.open(there.url(), secrets=(A,))
        environment.clear()
        result = await sink.send(make_outgoing())
        reached = await sink.check()
    assert isinstance(result, Retryable)
    assert result.why.startswith(f"The secret {A} is not set")
    assert (reached.ok, reached.detail) == (False, result.why)
    assert there.connections == 0


@pytest.mark.parametrize(
    ("settings", "capability"),
    [
        ({}, "sends_blindly"),
        ({"secrets": (A,)}, "deduplicates"),
        ({"deduplicates": True}, "deduplicates"),
        ({"secrets": (A,), "deduplicates": False}, "sends_blindly"),
    ],
)
async def test_a_receiver_of_signed_webhooks_drops_what_it_knows_unless_told_otherwise(
    settings: dict[str, Any], capability: str, webhooks: Webhooks, environment: dict[str, str]
) -> None:
    environment["TWICESHY_SECRET_A"] = OLD
    assert webhooks.open("https://x.example/", **settings).capability == capability


async def test_a_check_dials_and_sends_nothing(webhooks: Webhooks, environment: dict[str, str]) -> None:
    environment["TWICESHY_SECRET_A"] = OLD
    async with receiver(answering(OK)) as there:
        reached = await webhooks.open(there.url("localhost"), secrets=(A,)).check()
    assert reached.ok
    assert reached.detail == (
        f"localhost answers at 127.0.0.1, port {there.port}, without TLS; a message is signed with 1 secret."
    )
    assert there.requests == []
