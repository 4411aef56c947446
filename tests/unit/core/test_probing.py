"""What a probe sends, and what its provider's answer proves: everything else leaves the doubt as it is."""

from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Effect, Instant, Intent, Key, RunId, TenantId
from guard.core.keys import downstream_key
from guard.core.probing import (
    Applied,
    NotApplied,
    ProbeReply,
    Unproven,
    pause,
    read_reply,
    request_of,
    room,
    secrets_in,
    without_secrets,
)
from tests.unit.core.lives import IN_DOUBT
from twiceshy_contract.policies import HttpProbe
from twiceshy_contract.refusals import JsonValue, Refusal

ARGUMENTS = {"order": "A/7 b", "amount": 5, "note": "", "dots": "..", "card": "[redacted]", "line": "a\nb"}
INTENT = Intent(
    key=Key(b"\x01" * 32),
    tenant=TenantId(1),
    run_id=RunId(UUID(int=7)),
    run="order-1042",
    step=3,
    tool="pay",
    tool_version=1,
    rule="once",
    caller_step=None,
    business_key=None,
    occurrence=1,
    generation=1,
    identity_digest=b"i",
    arguments_digest=b"a",
    arguments=msgspec.json.encode(ARGUMENTS),
    worker=None,
    began_at=Instant(0),
)
EFFECT = Effect(version=2, intent=INTENT, life=IN_DOUBT)
OURS = downstream_key(INTENT.key, 0)
PROBE = HttpProbe(
    url="https://bank.example/payments?key=${downstream_key}",
    applied="body.status == 'paid'",
    not_applied="body.status == 'unknown'",
    result="body.payment",
)


def sent(probe: HttpProbe, effect: Effect = EFFECT) -> tuple[str, dict[str, str], bytes | None]:
    request = request_of(probe, effect, {"TWICESHY_SECRET_BANK": "s3cret", "PATH": "/bin"})
    return request.url, request.headers, request.body


def read(body: object, status: int = 200, probe: HttpProbe = PROBE) -> Applied | NotApplied | Unproven:
    text = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return read_reply(probe, EFFECT, ProbeReply(status=status, headers={"x-key": OURS}, body=text))


def why(finding: Applied | NotApplied | Unproven) -> str:
    assert isinstance(finding, Unproven), finding
    return finding.reason


def test_a_request_is_filled_in_from_what_is_known_of_the_effect() -> None:
    probe = HttpProbe(
        method="POST",
        url="https://bank.example/${tool}/${run}/${step}",
        headers={"Authorization": "Bearer ${env.TWICESHY_SECRET_BANK}", "X-Key": "${key}"},
        body={"order": "${arguments.order}", "amount": "${arguments.amount}", "sent": "${downstream_key}"},
        applied="body.paid",
        not_applied="body.none",
    )
    url, headers, body = sent(probe)
    assert url == "https://bank.example/pay/order-1042/3"
    assert headers == {
        "Authorization": "Bearer s3cret",
        "X-Key": INTENT.key.hex(),
        "Content-Type": "application/json",
    }
    assert msgspec.json.decode(body or b"") == {"order": "A/7 b", "amount": 5, "sent": OURS}
    assert request_of(probe, EFFECT, {"TWICESHY_SECRET_BANK": "s"}).timeout_seconds == 5


def test_a_content_type_that_is_declared_stays() -> None:
    probe = replace(PROBE, method="POST", headers={"content-type": "application/vnd.bank+json"}, body={})
    assert sent(probe)[1] == {"content-type": "application/vnd.bank+json"}


def test_a_value_in_an_address_stays_one_part_of_it() -> None:
    probe = replace(PROBE, url="https://bank.example/orders/${arguments.order}?amount=${arguments.amount}")
    assert sent(probe)[0] == "https://bank.example/orders/A%2F7%20b?amount=5"


def test_the_arguments_that_an_approver_put_in_place_are_the_ones_that_are_asked_about() -> None:
    probe = replace(PROBE, url="https://bank.example/${arguments.order}")
    edited = replace(EFFECT, edited=b'{"order":"B"}')
    assert sent(probe, edited)[0] == "https://bank.example/B"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"url": "https://bank.example/${arguments.nothing}"}, "/url"),
        ({"url": "https://bank.example/${arguments.note}"}, "/url"),
        ({"url": "https://bank.example/${arguments.dots}"}, "/url"),
        ({"url": "https://bank.example/${arguments.card}"}, "/url"),
        ({"url": "https://bank.example/${env.TWICESHY_SECRET_BANK}"}, "/url"),
        ({"headers": {"X-Key": "${env.PATH}"}}, "/headers/X-Key"),
        ({"headers": {"X-Key": "${env.TWICESHY_SECRET_NONE}"}}, "/headers/X-Key"),
        ({"headers": {"X-Card": "${arguments.card}"}}, "/headers/X-Card"),
        ({"headers": {"X-Line": "${arguments.line}"}}, "/headers/X-Line"),
        ({"body": {"to": ["${arguments.nothing}"]}}, "/body/to/0"),
        ({"body": {"secret": "${env.TWICESHY_SECRET_BANK}"}}, "/body/secret"),
        ({"body": {"card": "number ${arguments.card}"}}, "/body"),
    ],
)
def test_a_question_that_would_be_another_one_is_not_asked(changes: dict[str, object], place: str) -> None:
    with pytest.raises(Refusal) as refused:
        sent(msgspec.structs.replace(PROBE, **changes))
    assert refused.value.path == place


def test_exactly_one_of_applied_and_not_applied_is_believed() -> None:
    assert read({"status": "paid", "payment": {"id": 7}}) == Applied({"id": 7})
    assert read({"status": "unknown"}) == NotApplied()
    assert why(read({"status": "pending"})).endswith("says neither")
    both = replace(PROBE, not_applied="body.status == 'paid' && status == `200`")
    assert "both" in why(read({"status": "paid"}, probe=both))


@pytest.mark.parametrize("value", [1, "true", "paid", [True], None])
def test_only_the_value_true_is_a_yes(value: object) -> None:
    probe = replace(PROBE, applied="body.paid", not_applied="body.none")
    assert "neither" in why(read({"paid": value, "none": False}, probe=probe))


@pytest.mark.parametrize("status", [100, 301, 302, 304, 308, 401, 403, 407, 408, 425, 429, 500, 502, 503, 599, 600])
def test_a_redirect_a_closed_door_and_a_broken_provider_prove_nothing(status: int) -> None:
    probe = replace(PROBE, applied="status != `0`", not_applied="status == `0`")
    assert why(read({"status": "paid"}, status, probe)) == f"status {status} proves nothing"


def test_a_status_that_says_so_is_proof_without_a_body() -> None:
    probe = HttpProbe(url="https://a", method="HEAD", applied="status == `200`", not_applied="status == `404`")
    assert read(b"", 200, probe) == Applied()
    assert read(b"<html>not found</html>", 404, probe) == NotApplied()
    sliced = replace(probe, applied="status == `200` && !(headers.list[0:1])")
    assert read(b"", 200, sliced) == Applied()
    assert "is not the JSON" in why(read(b"", 200, replace(probe, echo="body.key")))


@pytest.mark.parametrize("expression", ["!body.payment", "!@.body", "!values(@)[0]", "length(*) == `2`", "[body][0].x"])
def test_an_answer_that_is_no_json_proves_nothing_where_an_expression_reads_it(expression: str) -> None:
    probe = replace(PROBE, not_applied=expression)
    for garbage in (b"<html>not found</html>", b"", b"{", b'{"a":1,"a":2}', b"\xff"):
        assert "is not the JSON" in why(read(garbage, 404, probe))


def test_an_expression_that_fails_proves_nothing() -> None:
    assert "fails" in why(read({"status": "paid"}, probe=replace(PROBE, not_applied="abs(body.status) > `1`")))


def test_an_answer_about_another_key_proves_nothing() -> None:
    probe = replace(PROBE, echo="body.key")
    assert read({"status": "paid", "key": OURS}, probe=probe) == Applied()
    assert read({"status": "unknown", "key": OURS}, probe=probe) == NotApplied()
    for other in (OURS[:-1], None, 7):
        assert "another key" in why(read({"status": "paid", "key": other}, probe=probe))
    assert read({"status": "unknown"}, probe=replace(PROBE, echo='headers."x-key"')) == NotApplied()


def test_a_result_that_is_missing_or_that_no_record_takes_does_not_unsay_that_it_was_applied() -> None:
    assert read({"status": "paid"}) == Applied()
    assert read({"status": "paid", "payment": 1e400}) == Applied()
    assert read({"status": "paid"}, probe=replace(PROBE, result=None)) == Applied()
    assert read({"status": "paid"}, probe=replace(PROBE, result="abs('x')")) == Applied()


def test_each_question_waits_twice_as_long_as_the_one_before_and_five_minutes_at_most() -> None:
    assert [pause(tries) // SECOND for tries in (0, 1, 2, 3, 9, 10, 1000)] == [1, 1, 2, 4, 256, 300, 300]


def test_a_provider_knows_no_tags_and_what_looks_like_one_is_kept_as_it_is() -> None:
    assert read({"status": "paid", "payment": {"$int": "5", "a": {"$unknown": 1}}}) == Applied(
        {"$$int": "5", "a": {"$$unknown": 1}}
    )
    asked = replace(PROBE, applied="body.\"$state\" == 'paid'")
    assert read({"$state": "paid", "payment": {"$dec": "5"}}, probe=asked) == Applied({"$$dec": "5"})
    assert read({"status": "paid", "payment": 10**20}) == Applied({"$int": "100000000000000000000"})


def test_a_provider_is_sent_plain_values() -> None:
    arguments = {"amount": {"$dec": "5000.10"}, "id": {"$uuid": "0192f5b0-7c3a-7000-8000-000000000001"}}
    tagged = replace(EFFECT, edited=msgspec.json.encode(arguments))
    probe = replace(
        PROBE,
        method="POST",
        url="https://bank.example/${arguments.amount}/${arguments.id}",
        body={"amount": "${arguments.amount}", "id": "${arguments.id}"},
    )
    url, _, body = sent(probe, tagged)
    assert url == "https://bank.example/5000.10/0192f5b0-7c3a-7000-8000-000000000001"
    assert msgspec.json.decode(body or b"") == {"amount": 5000.1, "id": "0192f5b0-7c3a-7000-8000-000000000001"}


def test_a_secret_that_was_sent_is_kept_nowhere_when_it_comes_back() -> None:
    probe = replace(PROBE, headers={"Authorization": "Bearer ${env.TWICESHY_SECRET_BANK}"})
    secrets = {"TWICESHY_SECRET_BANK": "s3cret", "TWICESHY_SECRET_LONG": "Bearer s3cret", "TWICESHY_SECRET_NONE": ""}
    sent_secrets = secrets_in(request_of(probe, EFFECT, secrets), secrets | {"TWICESHY_SECRET_OTHER": "paid"})
    assert sent_secrets == ("Bearer s3cret", "s3cret")
    answer: JsonValue = {"s3cret": ["Bearer s3cret!", "paid", 5, None]}
    hidden = {"[secret]": ["[secret]!", "paid", 5, None]}
    assert without_secrets(Applied(answer), sent_secrets) == Applied(hidden)
    assert without_secrets(Unproven("it said s3cret"), sent_secrets) == Unproven("it said [secret]")
    assert without_secrets(Applied(), sent_secrets) == Applied()
    assert without_secrets(NotApplied(), sent_secrets) == NotApplied()


def test_a_tool_has_two_questions_under_way_and_one_while_its_provider_is_silent() -> None:
    assert [room(0, of_the_tool, is_silent=False) for of_the_tool in (0, 1, 2, 3)] == [2, 1, 0, 0]
    assert [room(0, of_the_tool, is_silent=True) for of_the_tool in (0, 1, 2)] == [1, 0, 0]


def test_a_tool_with_nothing_under_way_finds_room_beside_any_number_that_hang() -> None:
    """Of 64 places 16 are kept: those who hang, or have one, do not get them."""
    assert [room(busy, 0, is_silent=True) for busy in (47, 48, 60)] == [1, 0, 0]
    assert [room(busy, 1, is_silent=False) for busy in (47, 48, 60)] == [1, 0, 0]
    assert [room(busy, 0, is_silent=False) for busy in (46, 47, 48, 63, 64)] == [2, 1, 1, 1, 0]
