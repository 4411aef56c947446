"""What is redacted of a call in a log is in no part of what is kept, and the call is known when it comes again."""

import hashlib

import msgspec
import pytest

from guard.core.payloads import Blob
from guard.core.recording import Log, Written, rule, written
from guard.core.redacted_events import Secrecy, left_out, redacted_intent, tools_of, written_redacted
from twiceshy_contract.events import Delivery, Event, EventKind, Intent
from twiceshy_contract.refusals import Refusal

A, B, C, D = (letter * 64 for letter in "abcd")
PAY = Secrecy(places={"pay": ["/card"]}, salt=b"salt")


def call(arguments: object, name: str = "pay", kind: EventKind = "tool_call") -> Intent:
    return Intent(seq=1, at=0, kind=kind, name=name, digest=A, arguments=arguments)


def kept(event: Intent | Delivery, *places: str) -> Written:
    return written_redacted(event, Secrecy(places={"pay": places}, salt=b"salt"))


def is_known(first: Written, again: Written) -> bool:
    return rule(Log(head=1, epoch=1), 1, [again], {1: first.imprint}).__class__.__name__ == "Addition"


def test_only_guarded_calls_are_of_a_tool() -> None:
    events: list[Event] = [
        call({}),
        call({}, name="ask", kind="llm_call"),
        Delivery(seq=2, at=0, intent=1, outcome="result"),
    ]
    assert tools_of(events) == {"pay"}


def test_what_is_redacted_is_in_neither_the_arguments_nor_the_digest() -> None:
    text = b'{"card":"[redacted]","to":"bob"}'
    event = redacted_intent(call({"to": "bob", "card": "secret"}), ["/card"])
    assert (event.arguments, event.digest) == (
        {"to": "bob", "card": "[redacted]"},
        hashlib.sha256(text).hexdigest(),
    )


@pytest.mark.parametrize("arguments", [{"to": "bob"}, {"to": "bob", "card": "[redacted]"}, msgspec.UNSET])
def test_a_call_that_has_nothing_to_redact_is_kept_as_it_came(arguments: object) -> None:
    event = call(arguments)
    assert redacted_intent(event, ["/card"]) is event
    assert redacted_intent(event, []) is event


@pytest.mark.parametrize("member", [{"$blob": B}, {"$list": B}])
def test_a_member_that_is_kept_by_its_content_is_left_out_whole_where_a_path_leads_into_it(member: object) -> None:
    event = redacted_intent(call({"people": member, "to": "bob"}), ["/people/*/pin"])
    assert event.arguments == {"people": "[redacted]", "to": "bob"}


def test_what_its_sender_has_redacted_is_kept_by_its_content_and_no_secret_beside_it_is() -> None:
    event = msgspec.structs.replace(
        call({"people": {"$list": B}, "card": {"$blob": D}, "pin": {"$blob": C}}), redacted=("/card", "/people/*/pin")
    )
    kept = redacted_intent(event, ["/card", "/people/*/pin", "/pin"])
    assert kept.arguments == {"people": {"$list": B}, "card": "[redacted]", "pin": "[redacted]"}


@pytest.mark.parametrize("arguments", [{"$blob": B}, ["secret"], "secret"])
def test_arguments_that_are_no_object_are_left_out_whole(arguments: object) -> None:
    assert redacted_intent(call(arguments), ["/card/number", "/*/pin"]).arguments == {"card": "[redacted]"}


def test_what_is_no_guarded_call_is_not_redacted() -> None:
    for event in (call({"card": "1"}, kind="custom"), Delivery(seq=2, at=0, intent=1, outcome="result", value="1")):
        assert written_redacted(event, PAY) == written(event)


def test_a_call_that_is_sent_again_is_known_whatever_is_redacted_by_then() -> None:
    event = call({"to": "bob", "card": "1"})
    for first, then in [((), ("/card",)), (("/card",), ()), (("/card",), ("/card", "/to"))]:
        assert is_known(kept(event, *first), kept(event, *then))
    exported = msgspec.json.decode(kept(event, "/card").body, type=Intent)
    assert is_known(kept(event, "/card"), kept(exported, "/card"))
    assert is_known(kept(event, "/card"), kept(exported, "/card", "/to"))


def test_another_call_of_the_same_number_is_not_known() -> None:
    event, other = call({"to": "bob", "card": "1"}), call({"to": "eve", "card": "1"})
    assert not is_known(kept(event), kept(other))
    assert not is_known(kept(event, "/card"), kept(other, "/card"))
    assert not kept(event).is_known_by(None)
    assert not written(event).is_known_by(written(other).imprint)


def test_what_is_kept_to_know_a_call_again_cannot_be_guessed_without_the_secret() -> None:
    event = call({"to": "bob", "card": "1"})
    imprint = kept(event, "/card").imprint
    assert hashlib.sha256(written(event).body).digest() not in imprint
    assert imprint[32:] != written_redacted(event, Secrecy(places=PAY.places, salt=b"other")).imprint[32:]


def test_only_texts_that_nothing_else_names_are_left_out() -> None:
    blobs = {
        A: Blob({"items": [{"$blob": B}, {"$blob": C}], "after": D}),
        B: Blob("secret"),
        C: Blob("told"),
        D: Blob({"items": []}),
    }
    event = call({"card": {"$list": A}, "note": {"$blob": C}})
    assert left_out([event], [kept(event, "/card")], blobs) == {A, B, D}
    assert left_out([event], [kept(event)], blobs) == set()
    assert left_out([event], [kept(event, "/card")], {}) == set()


def test_texts_that_go_before_their_event_are_not_judged() -> None:
    assert left_out([], [], {B: Blob("for later")}) == set()


def test_a_reference_that_is_none_is_named_even_where_it_is_left_out() -> None:
    event = call({"card": {"$blob": "no digest"}})
    with pytest.raises(Refusal) as refused:
        left_out([event], [kept(event, "/card")], {B: Blob(1)})
    assert refused.value.path == "/events/0/arguments/card/$blob"
