"""A request is believed where a live secret signed it lately, and for no other reason."""

import base64

import pytest

from guard.settings import Settings, SettingsRefused, inbound_secrets_of
from guard.web.signed import Signed
from outbox_relay.signatures import signatures

OLD, NEW, OTHER = (bytes([number]) * 24 for number in (1, 2, 3))
NOW = 1_700_000_000.9
BODY = '{"subject":"Grüße"}'.encode()


def signed(key: bytes = NEW, at: object = int(NOW), identity: str = "msg_1", body: bytes = BODY) -> dict[str, str]:
    signature = signatures([key], identity, str(at), body)
    return {"webhook-id": identity, "webhook-timestamp": str(at), "webhook-signature": signature}


def misfit(headers: dict[str, str], body: bytes = BODY) -> str | None:
    return Signed([OLD, NEW], lambda: NOW).misfit(headers, body)


@pytest.mark.parametrize("key", [OLD, NEW])
def test_every_live_secret_signs(key: bytes) -> None:
    assert misfit(signed(key)) is None


def test_one_good_signature_of_several_is_enough() -> None:
    headers = signed()
    headers["webhook-signature"] = f"v1a,AAAA v1,!!! v1,AAAA nonsense {headers['webhook-signature']}"
    assert misfit(headers) is None


def test_a_signature_is_of_this_body_id_and_time_by_a_live_secret() -> None:
    wrong = "No secret of the service made its signature"
    assert misfit(signed(OTHER)) == wrong
    assert misfit(signed(), BODY + b" ") == wrong
    assert misfit(signed() | {"webhook-id": "msg_2"}) == wrong
    assert misfit(signed() | {"webhook-timestamp": str(int(NOW) + 1)}) == wrong


@pytest.mark.parametrize(("off", "is_taken"), [(-300, True), (-301, False), (300, True), (302, False)])
def test_a_signature_holds_for_five_minutes_either_way(off: int, *, is_taken: bool) -> None:
    assert (misfit(signed(at=int(NOW) + off + (off < 0))) is None) == is_taken


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_request_without_a_part_of_its_signature_is_told_which_there_are(name: str) -> None:
    headers = signed()
    del headers[name]
    assert misfit(headers) == "It is not signed: send `webhook-id`, `webhook-timestamp` and `webhook-signature`"


@pytest.mark.parametrize(
    "headers", [signed(at="soon"), signed(at="1" * 13), signed(at="-1"), signed(identity="x" * 501)]
)
def test_what_no_signature_has_is_refused(headers: dict[str, str]) -> None:
    assert str(misfit(headers)).startswith("Its `webhook-timestamp` is no number of seconds")


def test_without_secrets_nobody_signs() -> None:
    assert (Signed().has_secrets, Signed([OLD]).has_secrets) == (False, True)
    assert Signed((), lambda: NOW).misfit(signed(), BODY) is not None


def test_secrets_are_read_as_standard_webhooks_write_them() -> None:
    written = ", ".join(f"whsec_{base64.b64encode(secret).decode()}" for secret in (OLD, b"x" * 25)).replace("=", "")
    assert inbound_secrets_of(written) == (OLD, b"x" * 25)
    assert inbound_secrets_of(" , ") == ()
    assert Settings().inbound_secrets == ()


@pytest.mark.parametrize("text", ["secret", "whsec_", "whsec_!", "whsec_AAAA", "sec_" + "A" * 32, "whsec_" + "A" * 88])
def test_what_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(SettingsRefused, match="TWICESHY_INBOUND_SECRETS holds secrets of 24 to 64 bytes"):
        inbound_secrets_of(text)
