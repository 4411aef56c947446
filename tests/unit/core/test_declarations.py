"""Declarations before they are believed: what cannot be carried out is refused by its place, what lowers is named."""

from typing import Any

import msgspec
import pytest

from guard.core.declarations import asks_elsewhere, asks_fewer, lowered, refusals
from twiceshy_contract.tools import DeclaredBy, ToolDeclaration

ASKS = {"url": "https://pay.example/v1/charges/${downstream_key}", "applied": "status == `200`", "not_applied": "body"}
ROOM = {"name": "room-${arguments.room.name}", "start": "/start", "end": "/when/0/end"}


def declaration(**parts: Any) -> ToolDeclaration:
    """Read a declaration as it comes over the wire."""
    return msgspec.convert(parts, ToolDeclaration)


def refused(**parts: Any) -> list[tuple[str, str]]:
    """Return the places that are refused, and why."""
    return [(refusal.path, refusal.reason) for refusal in refusals("pay", declaration(**parts))]


def probe(**parts: Any) -> list[str]:
    """Return the places that are refused of a probe."""
    return [path for path, _ in refused(probe={**ASKS, **parts})]


def test_a_declaration_with_everything_in_it_is_taken() -> None:
    assert (
        refused(
            arguments={"content": ["/title"], "normalisers": {"/start": "utc"}},
            redacted=["/card"],
            approval={"when": "arguments.amount > `100`", "summary": "Pay ${arguments.amount} to ${arguments.to}"},
            compensation={
                "tool": "refund",
                "arguments": {"payment": "${result.id}", "lines": ["${arguments.to}", 1, None]},
            },
            probe={
                **ASKS,
                "method": "POST",
                "headers": {"Authorization": "Bearer ${env.TWICESHY_SECRET_PAY}", "X-Tab": "a\tb"},
                "body": {"key": "${downstream_key}"},
                "result": "body.charge",
                "echo": "body.key",
            },
            simulator={"result": {"id": "sim-${arguments.to}"}},
            resource={"name": "room-${arguments.room}", "start": "/start", "minutes": "/minutes"},
        )
        == []
    )


def test_a_resource_may_lie_beside_what_is_redacted() -> None:
    assert refused(resource=ROOM, redacted=["/room/pin", "/when/0/pin", "/title"]) == []


def test_the_defaults_are_taken() -> None:
    assert refused() == []


def test_every_wrong_part_is_named_at_once() -> None:
    wrong = refused(
        arguments={"content": ["/a"], "ignored": ["/a"]},
        approval={"when": "a ="},
        compensation={"tool": "pay", "arguments": {"a": {"b/c": ["${=}"]}}},
        simulator={"result": "${"},
        probe={**ASKS, "applied": "["},
    )
    assert [path for path, _ in wrong] == [
        "/arguments/ignored/0",
        "/approval/when",
        "/compensation/tool",
        "/compensation/arguments/a/b~1c/0",
        "/simulator/result",
        "/probe/applied",
    ]
    assert "no JMESPath expression" in wrong[1][1]
    assert "does not take itself back" in wrong[2][1]


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"approval": {"summary": "Pay ${to"}}, "/approval/summary"),
        ({"approval": {"summary": "Pay ${{a: b}}"}}, "/approval/summary"),
        ({"resource": {"name": "${)}", "start": "/a", "end": "/b"}}, "/resource/name"),
        ({"resource": {"name": "a", "start": "/a/*", "end": "/b"}}, "/resource/start"),
        ({"resource": {"name": "a", "start": "/a", "end": "/b/*/c"}}, "/resource/end"),
        ({"resource": {"name": "a", "start": "/a", "minutes": "/*"}}, "/resource/minutes"),
        ({"resource": ROOM, "redacted": ["/b", "/room"]}, "/resource/name"),
        ({"resource": ROOM, "redacted": ["/room/name/first"]}, "/resource/name"),
        ({"resource": ROOM, "redacted": ["/room/*"]}, "/resource/name"),
        ({"resource": ROOM, "redacted": ["/start"]}, "/resource/start"),
        ({"resource": ROOM, "redacted": ["/when/*/end"]}, "/resource/end"),
        ({"resource": {"name": "a", "start": "/a", "minutes": "/b"}, "redacted": ["/b"]}, "/resource/minutes"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_its_place(parts: dict[str, Any], place: str) -> None:
    assert [path for path, _ in refused(**parts)] == [place]


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@pay.example/",
        "https://user@pay.example/",
        "https://pay.example:99999/",
        "https://pay.example:/",
        "https://pay.example/#here",
        "https://pay.example/${key",
        "https://pay.example/${=}",
        "https://pay_example/",
        "https://-pay.example/",
        "https://pay.example\\@evil.example/",
        "https://[::1/",
        "https://[pay.example]/",
        "http://:80/",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    assert probe(url=url) == ["/probe/url"]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8080",
        "http://10.0.0.7/a?b=${key}&c=1",
        'https://[::1]:8443/${arguments."a b"}'.replace(" ", "_"),
        "https://pay.example./v1",
        "https://p/",
    ],
)
def test_an_address_is_taken(url: str) -> None:
    assert probe(url=url) == []


def test_a_probe_that_no_answer_could_satisfy_is_refused() -> None:
    assert probe(not_applied=ASKS["applied"]) == ["/probe/not_applied"]


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
def test_a_header_of_the_connection_is_refused(name: str) -> None:
    assert probe(headers={name: "x"}) == [f"/probe/headers/{name}"]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: b", "a\x00", "${"])
def test_a_header_that_is_no_line_is_refused(value: str) -> None:
    assert probe(headers={"X-Key": value}) == ["/probe/headers/X-Key"]


@pytest.mark.parametrize("part", ["applied", "not_applied", "result", "echo"])
def test_every_reading_of_an_answer_is_an_expression(part: str) -> None:
    assert probe(**{part: "a b"}) == [f"/probe/{part}"]


def test_the_body_of_a_probe_is_a_template() -> None:
    assert probe(method="POST", body={"a": ["${a b}"]}) == ["/probe/body/a/0"]


@pytest.mark.parametrize("by", ["code", "hint"])
def test_only_a_person_makes_the_service_send_requests(by: DeclaredBy) -> None:
    ((place, reason),) = refused(probe=ASKS, declared_by=by)
    assert place == "/probe"
    assert "a person declares a probe over HTTP" in reason


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ({}, {}, ()),
        ({"class": "side_effect"}, {"class": "idempotent"}, ("/class",)),
        ({"class": "read"}, {"class": "side_effect"}, ()),
        ({"repeat": "replay"}, {"repeat": "ask"}, ("/repeat",)),
        ({"repeat": "ask"}, {"repeat": "allow"}, ("/repeat",)),
        ({"repeat": "allow"}, {"repeat": "replay"}, ()),
        ({"fork": "deny"}, {"fork": "auto"}, ("/fork",)),
        ({"fork": "live"}, {"fork": "auto"}, ()),
        ({"approval": {}}, {}, ("/approval",)),
        ({}, {"approval": {}}, ()),
        ({"approval": {"quorum": 2}}, {"approval": {"quorum": 1}}, ("/approval",)),
        ({"approval": {"quorum": 1}}, {"approval": {"quorum": 2}}, ()),
        ({"approval": {}}, {"approval": {"four_eyes": False}}, ("/approval",)),
        ({"approval": {}}, {"approval": {"when": "a"}}, ("/approval",)),
        ({"approval": {"when": "a"}}, {"approval": {"when": "b"}}, ("/approval",)),
        ({"approval": {"when": "a"}}, {"approval": {"when": "a"}}, ()),
        ({"approval": {"when": "a"}}, {"approval": {}}, ()),
        ({"resource": {"name": "a", "start": "/a", "end": "/b"}}, {}, ("/resource",)),
        ({"loop_limit": 3}, {"loop_limit": 4}, ("/loop_limit",)),
        ({"loop_limit": 3}, {}, ("/loop_limit",)),
        ({"loop_limit": 3}, {"loop_limit": 2}, ()),
        ({}, {"loop_limit": 2}, ()),
        ({"redacted": ["/a", "/b"]}, {"redacted": ["/b"]}, ("/redacted",)),
        ({"redacted": ["/a"]}, {"redacted": ["/b", "/a"]}, ()),
        ({"settle_seconds": 10}, {"settle_seconds": 9}, ("/settle_seconds",)),
        ({"settle_seconds": 10}, {"settle_seconds": 11}, ()),
        ({}, {"provider_window_seconds": 60}, ("/provider_window_seconds",)),
        ({"provider_window_seconds": 60}, {"provider_window_seconds": 61}, ("/provider_window_seconds",)),
        ({"provider_window_seconds": 60}, {}, ()),
        ({"repeat": "ask"}, {"class": "read", "repeat": "allow"}, ("/class", "/repeat")),
    ],
)
def test_what_guards_less_than_before_is_named(
    before: dict[str, Any], after: dict[str, Any], parts: tuple[str, ...]
) -> None:
    assert lowered(declaration(**before), declaration(**after)) == parts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"approval": {}}, {}),
        ({"approval": {"quorum": 2}}, {"approval": {}}),
        ({"approval": {}}, {"approval": {}, "class": "read"}),
        ({"repeat": "ask"}, {"repeat": "allow"}),
    ],
)
def test_less_is_asked_where_calls_run_without_a_person_that_needed_one(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert asks_fewer(declaration(**before), declaration(**after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"approval": {}, "class": "read"}, {"approval": {}, "class": "read"}),
        ({"repeat": "ask"}, {"repeat": "replay"}),
        ({"approval": {"when": "arguments.big"}}, {"approval": {}}),
        ({}, {"class": "read"}),
    ],
)
def test_as_much_is_asked_where_no_call_runs_that_did_not(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert not asks_fewer(declaration(**before), declaration(**after))


def test_a_probe_that_is_new_or_other_asks_elsewhere() -> None:
    asking, other = declaration(probe=ASKS), declaration(probe={**ASKS, "url": "https://elsewhere.example/"})
    assert asks_elsewhere(None, asking)
    assert asks_elsewhere(declaration(), asking)
    assert asks_elsewhere(asking, other)
    assert not asks_elsewhere(asking, declaration(probe=ASKS, attempts=2))
    assert not asks_elsewhere(asking, declaration())
