"""The outbox's frozen rows: bytes, names, copies of mail, and what cannot be rendered."""

import hashlib
from collections.abc import Mapping
from uuid import RFC_4122

import msgspec
import pytest

from guard.core.effects import Instant, Key, TenantId
from guard.core.mail import mail_id, thread_root
from guard.core.outbox import RAW, Place, Sender, Standing, check_fit, message_id, render_anew, rendered
from guard.core.plain import plain
from twiceshy_contract.destinations import Destination, LogDestination, SmtpDestination, WebhookDestination
from twiceshy_contract.messages import Mail, Message
from twiceshy_contract.refusals import JsonValue, Refusal

KEY = Key(bytes(range(32)))
SENDER = Sender(tenant=TenantId(1), at=Instant(1_760_000_000_000_000))
SMTP = SmtpDestination(
    host="mail.example", sender="Desk <desk@shop.example>", senders={"refunds": "Refunds <refunds@pay.example>"}
)


def _places(**settings: Destination) -> Mapping[str, Place]:
    return {
        name: Place(id=number, name=name, state="active", settings=one)
        for number, (name, one) in enumerate(settings.items(), 1)
    }


PLACES = _places(hook=WebhookDestination(url="https://shop.example/hook"), mail=SMTP, log=LogDestination())


def test_a_payload_is_frozen_as_plain_json_and_keeps_what_its_tags_say() -> None:
    payload = {"total": {"$dec": "10.10"}, "id": {"$int": "9007199254740993"}, "$$ref": [1.0, {"$dt": "2026-11-30"}]}
    message = Message(destination="hook", payload=payload | {"$$ref": [1.5]}, type="order.created", lane="42")
    (row,) = rendered([message], KEY, PLACES, SENDER, strict=True)
    assert row.body == b'{"total":"10.10","id":"9007199254740993","$ref":[1.5]}'
    assert (row.content_type, row.destination_id, row.destination) == ("application/json", 1, "hook")
    assert (row.type, row.lane, row.recipient, row.parked, row.mail_id) == ("order.created", "42", None, None, None)
    assert (row.delay, row.not_after) == (0, 3_600_000_000)


@pytest.mark.parametrize(
    ("tagged", "expected"),
    [
        ({"$b64": "AAE="}, "AAE="),
        ({"$uuid": "12345678-1234-5678-1234-567812345678"}, "12345678-1234-5678-1234-567812345678"),
        ([{"$$a": {"$$b": None}}, True], [{"$a": {"$b": None}}, True]),
        ("text", "text"),
    ],
)
def test_tagged_json_loses_its_tags_and_nothing_else(tagged: JsonValue, expected: JsonValue) -> None:
    assert plain(tagged) == expected


def test_a_text_is_frozen_as_its_bytes_with_its_headers() -> None:
    message = Message(destination="log", text="grüß", headers={"X-Kind": "note"}, delay_seconds=2, not_after_seconds=0)
    (row,) = rendered([message], KEY, PLACES, SENDER, strict=True)
    assert (row.body, row.content_type) == ("grüß".encode(), "text/plain; charset=utf-8")
    assert (row.headers, row.delay, row.not_after) == (b'{"X-Kind":"note"}', 2_000_000, 0)


def test_a_message_is_named_by_its_effect_its_place_and_its_copy() -> None:
    hashed = hashlib.sha256(b"twiceshy/message" + b"\x00\x00\x00\x20" + KEY + b"0/0").hexdigest()
    named = message_id(KEY, 0)
    assert (named.version, named.variant) == (8, RFC_4122)
    assert (named.hex[:12], named.hex[13:16], named.hex[17:]) == (hashed[:12], hashed[13:16], hashed[17:32])
    assert len({message_id(KEY, 0), message_id(KEY, 1), message_id(KEY, 0, 1), message_id(KEY[:31], 0)}) == 4


def test_mail_is_one_row_for_every_recipient_with_the_same_bytes() -> None:
    mail = Mail(to=("a@x.example", "b@x.example"), cc=("a@x.example",), bcc=("c@x.example",), subject="Hi", text="Yo")
    first, second = Message(destination="hook", payload=1), Message(destination="mail", mail=mail)
    _, *copies = rendered([first, second], KEY, PLACES, SENDER, strict=True)
    assert [row.recipient for row in copies] == ["a@x.example", "b@x.example", "c@x.example"]
    assert [row.message for row in copies] == [message_id(KEY, 1, copy) for copy in range(3)]
    assert [row.mail_id for row in copies] == [mail_id(f"{row.message}.1") for row in copies]
    assert len({row.body for row in copies}) == 1
    assert b"From: Desk <desk@shop.example>" in copies[0].body
    assert (copies[0].thread, copies[0].thread_name) == (None, None)


def test_mail_of_a_thread_names_its_root_and_the_newest_that_came_in() -> None:
    root = thread_root(TenantId(1), "mail", "case-7")
    message = Message(destination="mail", mail=Mail(to=("a@x.example",), subject="Hi", text="Yo", thread="case-7"))
    answered = msgspec.structs.replace(SENDER, answers={root: "<their-id@x.example>"})
    (row,) = rendered([message], KEY, PLACES, answered, strict=True)
    assert (row.thread, row.thread_name) == (root, "case-7")
    assert root.encode() in row.body
    assert b"their-id@x.example" in row.body


@pytest.mark.parametrize(
    ("agent", "named", "sender"),
    [
        (None, None, b"Desk <desk@shop.example>"),
        ("refunds", None, b"Refunds <refunds@pay.example>"),
        (None, "refunds", b"Refunds <refunds@pay.example>"),
        ("someone", None, b"Desk <desk@shop.example>"),
    ],
)
def test_mail_is_from_the_agent_of_its_run_where_it_has_an_identity(
    agent: str | None, named: str | None, sender: bytes
) -> None:
    mail = Mail(to=("a@x.example",), subject="Hi", html="<p>Yo</p>", sender=named)
    of_agent = msgspec.structs.replace(SENDER, agent=agent)
    (row,) = rendered([Message(destination="mail", mail=mail)], KEY, PLACES, of_agent, strict=True)
    assert b"From: " + sender in row.body


_MAIL = Mail(to=("a@x.example",), subject="Hi", text="Yo")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (Message(destination="nowhere", payload=1), "no destination is named 'nowhere'"),
        (Message(destination="gone", payload=1), "no destination is named 'gone'"),
        (Message(destination="mail", payload=1), "mail sends mail: give the message a `mail`"),
        (Message(destination="hook", mail=_MAIL), "hook is a webhook, which takes no `mail`"),
        (
            Message(destination="mail", mail=msgspec.structs.replace(_MAIL, sender="nobody")),
            "mail has no sender 'nobody'",
        ),
    ],
)
def test_what_cannot_be_rendered_is_refused_before_anything_happened_and_parked_after(
    message: Message, why: str
) -> None:
    gone = Place(id=9, name="gone", state="removed", settings=LogDestination())
    places = {**PLACES, "gone": gone}
    good = Message(destination="log", text="fine")
    with pytest.raises(Refusal) as caught:
        rendered([good, message], KEY, places, SENDER, strict=True)
    assert caught.value.reason.startswith(why)
    assert caught.value.path == "/messages/1/destination"
    kept, parked = rendered([good, message], KEY, places, SENDER, strict=False)
    assert (kept.parked, kept.destination_id) == (None, 3)
    assert parked.parked is not None
    assert parked.parked.startswith(why)
    assert (parked.destination_id, parked.content_type) == (None, RAW)
    assert msgspec.json.decode(parked.body, type=Message) == message


def test_a_payload_that_is_not_tagged_json_is_refused_with_its_place() -> None:
    with pytest.raises(Refusal) as caught:
        rendered([Message(destination="hook", payload={"a": {"$when": "now"}})], KEY, PLACES, SENDER, strict=False)
    assert caught.value.path.startswith("/messages/0/payload/a")


def test_an_effect_stages_a_hundred_messages_at_the_most() -> None:
    many = tuple(f"a{number}@x.example" for number in range(100))
    crowd = Message(destination="mail", mail=msgspec.structs.replace(_MAIL, to=many))
    assert len(rendered([crowd], KEY, PLACES, SENDER, strict=True)) == 100
    with pytest.raises(Refusal, match="100 messages at the most"):
        rendered([crowd, Message(destination="log", text="one")], KEY, PLACES, SENDER, strict=True)


def _standing(message: Message) -> Standing:
    return Standing(
        id=1,
        message=message_id(KEY, 3),
        epoch=1,
        effect=KEY,
        run_id=None,
        run=None,
        destination_id=None,
        destination=message.destination,
        lane=None,
        type=None,
        recipient=None,
        content_type=RAW,
        headers={},
        body=msgspec.json.encode(message),
        staged_at=SENDER.at,
        state="parked",
        attempts=0,
        note="no destination",
    )


def test_a_message_that_was_kept_as_it_is_can_be_rendered_later() -> None:
    row = _standing(Message(destination="log", payload={"$$a": 1}))
    (anew,) = render_anew(row, PLACES["log"], KEY, SENDER)
    assert (anew.message, anew.body, anew.destination_id) == (row.message, b'{"$a":1}', 3)
    with pytest.raises(Refusal, match="give the message a `mail`"):
        render_anew(row, PLACES["mail"], KEY, SENDER)


def test_whether_messages_fit_is_said_without_rendering_them() -> None:
    check_fit([Message(destination="hook", payload=1), Message(destination="log", text="t")], PLACES)
    with pytest.raises(Refusal, match="no destination is named 'nope'") as refused:
        check_fit([Message(destination="hook", payload=1), Message(destination="nope", payload=1)], PLACES)
    assert refused.value.steps == ("messages", 1, "destination")
