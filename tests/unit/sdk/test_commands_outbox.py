"""`twiceshy outbox`: messages on the command line."""

import msgspec
import pytest

from tests.unit.sdk.commands import KEY, Asked, answering, run
from tests.unit.sdk.scripted import answered, problem
from twiceshy._commands import plans

ID = "00000000-0000-8000-8000-000000000001"
SUMMARY = {
    "id": ID, "epoch": 1, "state": "dead", "destination": "mail", "lane": "ann", "type": "booked",
    "recipient": "ann@example.com", "key": KEY, "run": "booking-42", "attempts": 8,
    "staged_at": "2026-10-12T14:00:00.000000Z", "due_at": None, "settled_at": None, "note": "550 no such mailbox",
    "receipt": None,
}  # fmt: skip
AT = "2026-10-12T14:00:00.000000Z"
CLOSED: dict[str, object] = {"state": "closed", "open_until": None, "held_until": None, "allowance": None}
QUEUE = ("pending", "in_flight", "dead", "unknown", "parked", "oldest_pending_seconds")
TRY = {"number": 1, "epoch": 1, "at": "2026-10-12T14:00:01.000000Z", "result": "permanent", "detail": "550 no such"}
VIEW = {
    **SUMMARY, "content_type": "message/rfc822", "headers": {"Subject": "Booked"}, "size": 12,
    "body": "Hello\nAnn \x1b[31m!", "tries": [TRY],
}  # fmt: skip


def test_messages_are_listed_with_why_they_stand() -> None:
    asked: Asked = []
    other = {**SUMMARY, "recipient": None, "note": None, "state": "pending"}
    handler = answering(asked, lambda *_: answered(200, {"items": [SUMMARY, other], "next": "x"}))
    result = run(
        handler, "outbox", "list", "--state", "dead", "--destination", "mail", "--run", "booking-42", "--limit", "2"
    )
    assert asked == [("GET", "/v1/outbox?state=dead&destination=mail&run=booking-42&limit=2", None)]
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[1] == [
        ID, "dead", "mail", "ann@example.com", "booked", "booking-42", "8", "2026-10-12T14:00:00Z", "550", "no", "such",
        "mailbox",
    ]  # fmt: skip
    assert lines[2][3] == "ann"
    assert "There are more" in result.output


def test_no_messages_say_so_and_json_is_the_services() -> None:
    empty = answered(200, {"items": [], "next": None})
    assert run(answering([], lambda *_: empty), "outbox", "list").output.startswith("No messages wait.")
    assert run(answering([], lambda *_: empty), "outbox", "list", "--state", "dead").output == "No messages.\n"
    listed = run(answering([], lambda *_: empty), "outbox", "list", "--json")
    assert msgspec.json.decode(listed.output) == {"items": [], "next": None}


def test_a_message_is_shown_with_what_to_do_next_its_tries_headers_and_body() -> None:
    result = run(answering([], lambda *_: answered(200, VIEW)), "outbox", "show", ID)
    for line in (
        f"message      {ID} (epoch 1)",
        "note         550 no such mailbox",
        f"`twiceshy outbox redrive {ID} --as retry --reason ...`",
        "Subject  Booked",
        "Body (message/rfc822, 12 bytes)\n  Hello\n  Ann \\x1b[31m!\n",
    ):
        assert line in result.output
    assert "permanent  550 no such" in result.output
    shown = run(answering([], lambda *_: answered(200, VIEW)), "outbox", "show", ID, "--json")
    assert msgspec.json.decode(shown.output) == VIEW


@pytest.mark.parametrize(
    ("state", "next_"),
    [
        ("unknown", "ask its receiver"),
        ("parked", "its note says why"),
        ("delivered", "--as anew"),
        ("sending", "is sen"),
    ],
)
def test_each_state_says_what_is_next(state: str, next_: str) -> None:
    result = run(answering([], lambda *_: answered(200, {**VIEW, "state": state})), "outbox", "show", ID)
    (line,) = [line for line in result.output.splitlines() if line.startswith("next ")]
    assert next_ in line


def test_one_message_is_sent_again() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"redriven": 1}))
    result = run(handler, "outbox", "redrive", ID, "--as", "retry", "--reason", "mended", "--by", "ann")
    assert asked == [("POST", "/v1/outbox/redrive", {"as": "retry", "reason": "mended", "by": "ann", "id": ID})]
    assert result.output == "1 message is to be sent again.\n"
    anew = run(handler, "outbox", "redrive", ID, "--as", "anew", "--reason", "lost")
    assert anew.output == "1 message is to be sent anew.\n"


def test_all_of_a_state_are_sent_again_and_why_some_are_left_is_said() -> None:
    asked: Asked = []
    left = {"redriven": 5, "left": 2, "reasons": ["Message 7 to mail is parked: still no sender."]}
    handler = answering(asked, lambda *_: answered(200, left))
    words = ("--state", "dead", "--destination", "mail", "--as", "retry", "--reason", "mended", "--limit", "5", "--yes")
    result = run(handler, "outbox", "redrive", *words)
    body = {"as": "retry", "reason": "mended", "state": "dead", "destination": "mail", "limit": 5}
    assert asked == [("POST", "/v1/outbox/redrive", body)]
    said = "5 messages are to be sent again.\n2 are left:\n  Message 7 to mail is parked: still no sender.\n"
    assert (result.exit_code, result.output) == (1, said)
    told = run(handler, "outbox", "redrive", *words, "--json")
    assert (told.exit_code, msgspec.json.decode(told.output)) == (1, left)


@pytest.mark.parametrize(("answer", "code", "sent"), [("y", 0, 1), ("n", 1, 0)])
def test_many_are_sent_anew_only_once_a_person_agreed(
    answer: str, code: int, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "is_anybody_there", lambda: True)
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"redriven": 3}))
    words = ("--state", "unknown", "--as", "anew", "--reason", "lost")
    result = run(handler, "outbox", "redrive", *words, input=f"{answer}\n")
    assert (result.exit_code, len(asked)) == (code, sent)
    assert "Send up to 1000 unknown messages anew?" in result.output
    assert ("Nothing was sent again." in result.output) == (code == 1)


@pytest.mark.parametrize(("as_", "said"), [("anew", "anew"), ("retry", "again")])
def test_where_nobody_can_be_asked_many_are_sent_with_yes_alone(as_: str, said: str) -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"redriven": 3}))
    words = ("--state", "unknown", "--as", as_, "--reason", "lost")
    refused = run(handler, "outbox", "redrive", *words)
    assert (refused.exit_code, asked) == (2, [])
    assert "add --yes" in refused.output
    assert run(handler, "outbox", "redrive", *words, "--json").exit_code == 2
    assert run(handler, "outbox", "redrive", *words, "--yes").output == f"3 messages are to be sent {said}.\n"


@pytest.mark.parametrize(
    ("stands", "said"),
    [
        ({"state": "paused", "note": "paused by ann: moving"}, "mail is paused (paused by ann: moving); `twiceshy des"),
        ({"breaker": {**CLOSED, "state": "open", "open_until": AT}}, "the breaker of mail is open until 2026-10-12T14"),
        ({"breaker": {**CLOSED, "held_until": AT}}, "mail asked to be left alone until 2026-10-12T14:00:00Z"),
        ({}, None),
    ],
)
def test_what_a_pending_message_waits_for_is_said(stands: dict[str, object], said: str | None) -> None:
    place = {
        "name": "mail", "version": 1, "state": "active", "note": None, "declared_at": AT, "settings": {"kind": "log"},
        "breaker": CLOSED, "queue": dict.fromkeys(QUEUE, 0), **stands,
    }  # fmt: skip
    handler = answering([], lambda _, path: answered(200, place if "mail" in path else {**VIEW, "state": "pending"}))
    lines = [line for line in run(handler, "outbox", "show", ID).output.splitlines() if line.startswith("waits for")]
    assert ([said in line for line in lines] if said else lines) == ([True] if said else [])


def test_a_message_is_named_by_its_epoch_too_and_an_older_one_is_not_acted_on() -> None:
    asked: Asked = []
    handler = answering(asked, lambda method, _: answered(200, VIEW if method == "GET" else {"redriven": 1}))
    words = ("--as", "retry", "--reason", "r")
    assert run(handler, "outbox", "redrive", f"{ID}.1", *words).exit_code == 0
    assert asked[-1][2]["id"] == ID
    assert run(handler, "outbox", "show", f"{ID}.1").exit_code == 0
    for command in (("redrive", f"{ID}.0", *words), ("cancel", f"{ID}.2", "--reason", "r")):
        refused = run(handler, "outbox", *command)
        assert (refused.exit_code, "its epoch is 1 by now" in " ".join(refused.output.split())) == (2, True)
        assert asked[-1][0] == "GET"


def test_a_message_is_taken_back() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {**VIEW, "state": "cancelled"}))
    result = run(handler, "outbox", "cancel", ID, "--reason", "wrong address")
    assert asked == [("POST", f"/v1/outbox/{ID}/cancel", {"reason": "wrong address"})]
    assert result.output == f"Message {ID} to mail is cancelled.\n"
    told = run(handler, "outbox", "cancel", ID, "--reason", "wrong address", "--json")
    assert msgspec.json.decode(told.output)["state"] == "cancelled"


def test_what_the_service_refuses_is_one_sentence() -> None:
    refused = problem("message-state", 409, detail="Message 1 is sending: it can be taken back no more.")
    result = run(answering([], lambda *_: refused), "outbox", "cancel", ID, "--reason", "r")
    assert (result.exit_code, "it can be taken back no more" in result.output) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "7"), "'7' is no message: name its id, a UUID, or id.epoch"),
        (("cancel", f"{ID}.x", "--reason", "r"), "is no message"),
        (("list", "--state", "gone"), "is not one of"),
        (("list", "--destination", "a b"), "is not the name of a destination"),
        (("redrive", "--as", "retry", "--reason", "r"), "Name one MESSAGE, or all of a --state."),
        (("redrive", ID, "--state", "dead", "--as", "retry", "--reason", "r"), "Name one MESSAGE"),
        (("redrive", ID, "--destination", "m", "--as", "retry", "--reason", "r"), "goes with --state only"),
        (("redrive", ID, "--as", "again", "--reason", "r"), "is not one of"),
        (("redrive", ID, "--as", "retry"), "Missing option '--reason'"),
        (("redriv", ID), "Did you mean 'redrive'?"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(words: tuple[str, ...], said: str) -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(500, {})), "outbox", *words)
    assert (result.exit_code, asked) == (2, [])
    assert said in result.output
