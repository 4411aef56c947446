"""Signatures are those of Standard Webhooks, as its own library verifies them; a secret that is none is refused."""

import base64
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from outbox_relay.signatures import signatures, signing_key
from outbox_relay.sinks.base import SinkRefused

OLD = "whsec_" + base64.b64encode(b"o" * 24).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 64).decode()
BODY = '{"total": "12,50 €"}'


def headers_of(*secrets: str, at: str | None = None) -> dict[str, str]:
    timestamp = at or str(int(time.time()))
    keys = [signing_key(secret, "env:TWICESHY_SECRET_X") for secret in secrets]
    signature = signatures(keys, "message.1", timestamp, BODY.encode())
    return {"webhook-id": "message.1", "webhook-timestamp": timestamp, "webhook-signature": signature}


def test_the_signature_of_a_known_content_is_the_known_one() -> None:
    # The example of the specification, 1.0.0.
    key = signing_key("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "x")
    signature = signatures(
        [key], "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", "1649367553", b'{"email":"test@example.com","username":"test_user"}'
    )
    assert signature == "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_a_receiver_that_has_one_of_the_live_secrets_verifies(secret: str) -> None:
    Webhook(secret).verify(BODY, headers_of(OLD, NEW), json_parse=False)


def test_a_receiver_that_has_another_secret_does_not_verify() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(BODY, headers_of(NEW), json_parse=False)


def test_each_secret_signs_once_in_the_order_in_which_they_are_named() -> None:
    both = headers_of(OLD, NEW, at="5")["webhook-signature"]
    assert both == f"{headers_of(OLD, at='5')['webhook-signature']} {headers_of(NEW, at='5')['webhook-signature']}"


def test_a_secret_without_the_padding_of_base64_is_the_same_secret() -> None:
    padded = "whsec_" + base64.b64encode(b"o" * 25).decode()
    assert padded.endswith("==")
    assert signing_key(padded.rstrip("="), "x") == signing_key(padded, "x") == b"o" * 25


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ("b29vb29vb29vb29vb29vb29vb29vb29v", "begins with whsec_"),
        ("whpk_b29vb29vb29vb29vb29vb29vb29vb29v", "begins with whsec_"),
        ("whsec_", "holds 0 bytes; a signing secret holds 24 to 64"),
        ("whsec_" + base64.b64encode(b"o" * 23).decode(), "holds 23 bytes"),
        ("whsec_" + base64.b64encode(b"o" * 65).decode(), "holds 65 bytes"),
        ("whsec_not base64 at all!", "is not whsec_ and then base64"),
        ("whsec_ä", "is not whsec_ and then base64"),
    ],
)
def test_what_is_no_signing_secret_is_refused_by_its_name_and_never_said(secret: str, said: str) -> None:
    with pytest.raises(SinkRefused) as refused:
        signing_key(secret, "env:TWICESHY_SECRET_HOOK")
    text = str(refused.value)
    assert text.startswith("The secret env:TWICESHY_SECRET_HOOK ")
    assert said in text
    assert "openssl rand -base64 32" in text
    assert "b29vb29vb29v" not in text
    assert "not base64 at all" not in text
