"""The timeline of a run: one card a call, in words of people."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.call_logs import Writing, head
from twiceshy._in_brief import brief, returned
from twiceshy._recording import Recording
from twiceshy._timeline import Card, cards, duration, text_of, timeline
from twiceshy_contract.events import Delivery, Event, EventKind, Intent


def told(kind: EventKind, name: str, arguments: dict[str, Any], value: Any, **more: Any) -> str:
    writing = Writing()
    writing.call(kind, name, arguments, value, **more)
    (card,) = cards(writing.recording())
    return card.sentence


CHAT = {
    "model": "gpt-x",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Risk?"}],
}
WANTED = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "lookup", "arguments": '{"jurisdiction": "GB-SCT"}'}},
]}}]}  # fmt: skip
BLOCKS = {"role": "assistant", "content": [
    {"type": "text", "text": "Let me look."}, {"type": "tool_use", "name": "lookup", "input": {"code": 7}},
]}  # fmt: skip
ITEMS = {"output": [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Low."}]},
                    {"type": "function_call", "name": "flag", "arguments": "not json"}]}  # fmt: skip

SENTENCES: list[tuple[EventKind, str, dict[str, Any], Any, str]] = [
    ("tool_call", "lookup", {"jurisdiction": "GB-SCT"}, [],
     "Called lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list)."),
    ("tool_call", "pay", {"to": "bob", "cents": {"$dec": "12.50"}}, "ref-1",
     "Called pay with to 'bob', cents 12.50; it returned 'ref-1'."),
    ("tool_call", "ping", {}, None, "Called ping; it returned nothing."),
    ("tool_call", "book", {"at": {"$dt": "2026-10-12T14:00:00+00:00"}}, {"id": 4, "room": {"name": "Oslo"}},
     "Called book with at 2026-10-12 14:00:00Z; it returned {id: 4, room: {name: 'Oslo'}}."),
    ("llm_call", "gpt-x", CHAT, {"choices": [{"message": {"role": "assistant", "content": "Low risk."}}]},
     "Asked gpt-x with 2 messages, the last by user: 'Risk?'; it answered 'Low risk.'."),
    ("llm_call", "gpt-x", CHAT, WANTED,
     "Asked gpt-x with 2 messages, the last by user: 'Risk?'; it asked for lookup(jurisdiction 'GB-SCT')."),
    ("llm_call", "claude-x", {"prompt": "Risk?"}, BLOCKS,
     "Asked claude-x 'Risk?'; it said 'Let me look.' and asked for lookup(code 7)."),
    ("llm_call", "gpt-x", {"input": "Risk?"}, ITEMS, "Asked gpt-x 'Risk?'; it said 'Low.' and asked for flag."),
    ("llm_call", "own", {"text": "Risk?"}, {"risk": "low"}, "Asked own with text 'Risk?'; it answered {risk: 'low'}."),
    ("llm_call", "own", {"text": "Risk?"}, "low", "Asked own with text 'Risk?'; it answered 'low'."),
    ("time", "now", {}, {"$dt": "2026-10-12T14:00:00+00:00"}, "Read the clock: 2026-10-12 14:00:00Z."),
    ("random", "random", {}, 0.25, "Drew a random number: 0.25."),
    ("uuid", "uuid4", {}, {"$uuid": "5a4bb3d1-1c3f-4a51-9a8e-000000000001"},
     "Drew a random UUID: 5a4bb3d1-1c3f-4a51-9a8e-000000000001."),
    ("sleep", "sleep", {"seconds": 1.5}, None, "Slept for 1.5 s."),
    ("human", "ask", {"question": "Sign it?"}, "yes", "Asked a person 'Sign it?'; the answer was 'yes'."),
    ("child_run", "review", {}, 3, "Started the run review; it came to 3."),
    ("custom", "read_queue", {"args": [1, 2]}, "",
     "Passed read_queue with args [1, 2]; it returned nothing (empty text)."),
]  # fmt: skip


SENT = {"method": "POST", "url": "https://api.example/v1/orders", "headers": {"accept": "*/*"}, "sku": "A1"}


def event(body: dict[str, Any]) -> str:
    return f"data: {msgspec.json.encode(body).decode()}\n\n"


def stream(*chunks: Any, end: str = "complete") -> dict[str, Any]:
    return {"stream": {"chunks": [[at, chunk] for at, chunk in enumerate(chunks)], "end": end}}


def choice(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta}]}


WANTS = {"index": 0, "function": {"name": "lookup", "arguments": '{"code"'}}
MORE = {"index": 0, "function": {"arguments": ": 7}"}}
EXCHANGES: list[tuple[EventKind, dict[str, Any], Any, str]] = [
    ("custom", SENT, {"status": 201, "headers": {}, "body": {"id": 4}},
     "Sent POST https://api.example/v1/orders with sku 'A1'; the answer was 201: {id: 4}."),
    ("llm_call", CHAT, {"status": 429, "headers": {}, "body": "slow down"},
     "Asked x with 2 messages, the last by user: 'Risk?'; the answer was 429: 'slow down'."),
    ("llm_call", CHAT, {"status": 200, "headers": {}, "body": '{"choices": [{"message": {"content": "Low."}}]}'},
     "Asked x with 2 messages, the last by user: 'Risk?'; it answered 'Low.'."),
    ("llm_call", {"prompt": "Risk?"}, stream("Lo", "w.", end="stopped"),
     "Asked x 'Risk?'; it answered 'Low.' in 2 pieces, and the code read no further."),
    ("llm_call", {"prompt": "Risk?"}, stream(choice(content="Lo"), choice(content="w."), choice()),
     "Asked x 'Risk?'; it answered 'Low.' in 3 pieces."),
    ("llm_call", {"prompt": "Risk?"},
     stream(event(choice(tool_calls=[WANTS])), event(choice(tool_calls=[MORE])), "data: [DONE]\n\n"),
     "Asked x 'Risk?'; it asked for lookup(code 7) in 3 pieces."),
    ("llm_call", {"prompt": "Risk?"},
     stream({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "name": "lookup"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me look."}},
            {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"code": 7}'}}),
     "Asked x 'Risk?'; it said 'Let me look.' and asked for lookup(code 7) in 3 pieces."),
    ("llm_call", {"prompt": "Risk?"},
     stream({"type": "response.output_text.delta", "delta": "Lo"}, {"type": "response.completed", "response": ITEMS}),
     "Asked x 'Risk?'; it said 'Low.' and asked for flag in 2 pieces."),
    ("custom", {}, stream({"row": 1}, end="cut"), "Passed x; it answered in one piece, and was cut off."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "arguments", "value", "sentence"), EXCHANGES)
def test_an_exchange_over_http_and_a_stream_are_told_by_what_was_said(
    kind: EventKind, arguments: dict[str, Any], value: Any, sentence: str
) -> None:
    assert told(kind, "x", arguments, value) == sentence


@pytest.mark.parametrize(("kind", "name", "arguments", "value", "sentence"), SENTENCES)
def test_a_call_is_one_sentence(
    kind: EventKind, name: str, arguments: dict[str, Any], value: Any, sentence: str
) -> None:
    assert told(kind, name, arguments, value) == sentence


@pytest.mark.parametrize(
    ("outcome", "sentence"),
    [
        ("cancelled", "Called pay with cents 5; it was cancelled."),
        ("expired", "Called pay with cents 5; its time ran out before an outcome was there."),
        ("unknown", "Called pay with cents 5; nobody knows whether it happened (an error that was not kept)."),
    ],
)
def test_a_call_without_a_result_says_how_it_ended(outcome: str, sentence: str) -> None:
    assert told("tool_call", "pay", {"cents": 5}, None, outcome=outcome) == sentence


def test_a_call_that_failed_names_the_error_and_one_that_never_ended_says_so() -> None:
    writing = Writing()
    failed = writing.asked("tool_call", "pay", {"cents": 5})
    writing.failed(failed, "shop.bank.Refused", "no\nfunds \x1b[31m")
    writing.asked("sleep", "sleep", {"seconds": 2.0})
    one, other = cards(writing.recording())
    assert one.sentence == "Called pay with cents 5; it failed with Refused: no⏎funds \\x1b[31m."
    assert (one.marks, one.outcome) == (("error",), "error")
    assert other.sentence == "Slept for 2.0 s; no outcome reached the code."
    assert (other.marks, other.delivery, other.took, other.outcome) == (("open",), None, None, None)


def test_a_timeline_shows_numbers_durations_marks_and_who_was_answered_first() -> None:
    writing = Writing()
    slow = writing.asked("tool_call", "slow", {}, scope="review")
    fast = writing.asked("tool_call", "fast", {}, counterfactual=True)
    writing.gave(fast, 1, took=900, source="simulator", counterfactual=True)
    writing.gave(slow, [], took=2_400_000, source="recorded")
    assert "\n".join(timeline(cards(writing.recording()))).splitlines() == [
        "    1  tool_call  2.4 s  answered at 4  in review  empty  recorded",
        "       Called slow; it returned nothing (empty list).",
        "    2  tool_call  900 µs  simulated  counterfactual",
        "       Called fast; it returned 1.",
    ]


def test_only_the_calls_between_two_events_are_shown() -> None:
    writing = Writing()
    for name in "abcd":
        writing.tool(name)
    recording = writing.recording()
    assert [card.name for card in cards(recording, first=4, last=5)] == ["b", "c"]
    assert [card.name for card in cards(recording, first=7)] == ["d"]


def test_payloads_are_cut_on_their_line_and_whole_where_they_are_asked_for() -> None:
    writing = Writing()
    long = "x" * 500
    writing.tool("save", {"text": long, "to": "a\x1b"}, {"id": 1})
    (card,) = cards(writing.recording())
    assert card.sentence == f"Called save with text '{'x' * 71}…', to 'a\\x1b'; it returned {{id: 1}}."
    assert card.arguments is card.value is msgspec.UNSET
    (whole,) = cards(writing.recording(), whole=True)
    assert (whole.arguments, whole.value) == ({"text": long, "to": "a\x1b"}, {"id": 1})
    assert text_of(whole).splitlines()[2:] == [
        "       arguments:",
        "         {",
        f'           "text": "{long}",',
        '           "to": "a\\u001b"',
        "         }",
        "       value:",
        "         {",
        '           "id": 1',
        "         }",
    ]


def test_what_became_of_an_effect_later_stands_below_its_call() -> None:
    writing = Writing()
    writing.tool("pay", {}, None, outcome="unknown")
    (card,) = cards(writing.recording(), notes={1: ("later resolved as applied",)})
    assert text_of(card, ">> ").splitlines() == [
        ">>     1  tool_call  1.5 ms  unknown",
        "          Called pay; nobody knows whether it happened (an error that was not kept).",
        "          later resolved as applied",
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "nothing"), ("", "nothing (empty text)"), ([], "nothing (empty list)"), ({}, "nothing (empty object)"),
        (0, "0"), (False, "false"), (True, "true"), ({"$b64": "AAECAw=="}, "bytes AAECAw=="),
        ({"$b64": "AAECAwQFBgcICQoLDA0ODw=="}, "16 bytes"), ({"$$int": "mine"}, "{$int: 'mine'}"),
        ({"$dt": "never"}, "{$dt: 'never'}"), (list(range(9)), "[0, 1, 2, 3, 4, 5, … 3 more]"),
        ({"$opaque": {"type": "shop.Cart", "reason": "it is open"}}, "a shop.Cart that was not kept (it is open)"),
    ],
)  # fmt: skip
def test_a_value_is_said_briefly_and_never_guessed(value: Any, said: str) -> None:
    assert returned(value) == said


def test_a_large_value_stays_on_its_line() -> None:
    deep: Any = {f"member{n}": {"list": list(range(500)), "text": "y" * 9000} for n in range(300)}
    assert len(brief(deep)) < 200


@pytest.mark.parametrize(
    ("micros", "said"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1_500, "1.5 ms"),
        (999_999, "1 s"),
        (12_340_000, "12.3 s"),
        (200_000_000, "3 min 20 s"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(micros: int, said: str) -> None:
    assert duration(micros) == said


class ManyEvents(Sequence[Event]):
    """Events that are made when they are asked for, so that only a whole list of them would take memory."""

    def __len__(self) -> int:
        return 10_000

    def __getitem__(self, at: Any) -> Any:
        if at % 2 == 0:
            return Intent(seq=at + 1, at=0, kind="tool_call", name=f"tool{at}", digest="0" * 64)
        return Delivery(seq=at + 1, at=0, intent=at, outcome="result", value=at)


def test_a_long_log_streams() -> None:
    recording = Recording.from_events(head(), ManyEvents())
    made: Iterator[Card] = cards(recording)
    assert next(made).name == "tool0"
    assert sum(1 for _ in timeline(made)) == 4_999
