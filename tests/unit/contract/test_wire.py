"""Bodies are read strictly into wire structs: no coercion, no unknown field, and every refusal names the field."""

import json
from collections.abc import Mapping
from typing import Literal

import msgspec
import pytest

from twiceshy_contract.effects import BeginRequest, CommitRequest, FailRequest, RenewRequest, ResolveRequest
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import FinishRunRequest
from twiceshy_contract.tools import ArgumentRoles, NormaliserWith, PlanRequest, ToolDeclaration
from twiceshy_contract.wire import CONTRACT_VERSION, read

TOKEN = "0192f5b0-7c3a-7000-8000-000000000001"
BEGIN = {"tool": "book", "arguments": {"a": 1}, "attempt": TOKEN, "run": "r"}
FAIL = {"attempt": TOKEN, "fence": 1, "kind": "unknown", "error": {"type": "E", "message": "m"}}
Message = type[msgspec.Struct]


def body(*parts: Mapping[str, object]) -> bytes:
    return json.dumps({name: value for part in parts for name, value in part.items()}).encode()


def refusal_of(text: bytes, message: Message, *, newer: bool = False) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(text, message, newer=newer)
    return caught.value


def test_a_begin_is_read_with_its_defaults() -> None:
    begin = read(body(BEGIN), BeginRequest)
    assert (begin.tool, begin.arguments, str(begin.attempt), begin.run) == ("book", {"a": 1}, TOKEN, "r")
    assert (begin.occurrence, begin.wait_seconds, begin.reopen) == (1, 0, False)
    assert (begin.step, begin.business_key, begin.lease_seconds, begin.worker) == (None, None, None, None)


def test_whole_numbers_are_good_where_seconds_are_asked_and_steps_are_numbers_or_texts() -> None:
    assert read(body(BEGIN, {"wait_seconds": 3}), BeginRequest).wait_seconds == 3
    assert read(body(BEGIN, {"step": 3}), BeginRequest).step == 3
    assert read(body(BEGIN, {"step": "3"}), BeginRequest).step == "3"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("occurrence", "1"),
        ("occurrence", True),
        ("occurrence", 1.0),
        ("occurrence", 0),
        ("occurrence", 1_000_001),
        ("occurrence", None),
        ("tool", 1),
        ("tool", ""),
        ("tool", "a/b"),
        ("tool", "a\n"),
        ("tool", "a\x00b"),
        ("tool", "x" * 201),
        ("run", 5),
        ("run", "a\x7f"),
        ("business_key", ""),
        ("business_key", "x" * 256),
        ("step", -1),
        ("step", 1.5),
        ("step", True),
        ("step", 2**53),
        ("step", ""),
        ("wait_seconds", "3"),
        ("wait_seconds", True),
        ("wait_seconds", 30.1),
        ("lease_seconds", 0.9),
        ("lease_seconds", 3600.1),
        ("reopen", 1),
        ("reopen", "true"),
        ("arguments", []),
        ("arguments", None),
        ("attempt", "x"),
        ("attempt", 5),
    ],
)
def test_a_field_of_a_wrong_type_or_out_of_bounds_is_refused_by_its_name(field: str, value: object) -> None:
    assert refusal_of(body(BEGIN, {field: value}), BeginRequest).path == f"/{field}"


@pytest.mark.parametrize("field", ["tool", "arguments", "attempt"])
def test_a_missing_field_is_named(field: str) -> None:
    refusal = refusal_of(body({name: value for name, value in BEGIN.items() if name != field}), BeginRequest)
    assert (refusal.path, refusal.reason) == (f"/{field}", "this field is missing")


@pytest.mark.parametrize(
    ("field", "path"), [("foo", "/foo"), ("a.b", "/a.b"), ("a`b", "/a`b"), ("x\n", "/x\n"), ("a/b", "/a~1b"), ("", "/")]
)
def test_an_unknown_field_is_named(field: str, path: str) -> None:
    refusal = refusal_of(body(BEGIN, {field: 1}), BeginRequest)
    assert (refusal.path, refusal.reason) == (path, "this field is not known")


@pytest.mark.parametrize(
    ("message", "text", "path"),
    [
        (FailRequest, body(FAIL, {"error": {"type": "E"}}), "/error/message"),
        (FailRequest, body(FAIL, {"error": {"type": "", "message": "m"}}), "/error/type"),
        (FailRequest, body(FAIL, {"error": {"type": "E", "message": 5}}), "/error/message"),
        (FailRequest, body(FAIL, {"kind": "maybe"}), "/kind"),
        (FailRequest, body(FAIL, {"fence": "1"}), "/fence"),
        (FailRequest, body(FAIL, {"fence": True}), "/fence"),
        (FailRequest, body(FAIL, {"fence": -1}), "/fence"),
        (FailRequest, body(FAIL, {"retry_after": "5"}), "/retry_after"),
        (CommitRequest, body({"attempt": TOKEN, "fence": 1}), "/result"),
        (RenewRequest, body({"attempt": TOKEN, "fence": 1.0}), "/fence"),
        (ResolveRequest, body({"as": "lost", "fence": 1, "reason": "x"}), "/as"),
        (ResolveRequest, body({"as_": "applied", "fence": 1, "reason": "x"}), "/as_"),
        (ResolveRequest, body({"as": "applied", "fence": 1, "reason": ""}), "/reason"),
        (ResolveRequest, body({"as": "applied", "fence": 1, "reason": "x", "as_of": "2026-10-12T14:00:00"}), "/as_of"),
        (FinishRunRequest, body({"as": "lost"}), "/as"),
        (ToolDeclaration, body({"class": "harmless"}), "/class"),
        (ToolDeclaration, body({"arguments": {"content": ["/a", "title"]}}), "/arguments/content/1"),
        (ToolDeclaration, body({"arguments": {"ignored": [5]}}), "/arguments/ignored/0"),
        (ToolDeclaration, body({"arguments": {"contents": []}}), "/arguments/contents"),
        (ToolDeclaration, body({"key": {"scope": "world"}}), "/key/scope"),
        (ToolDeclaration, body({"attempts": 0}), "/attempts"),
    ],
)
def test_a_place_inside_a_body_is_named_as_a_json_pointer(message: Message, text: bytes, path: str) -> None:
    assert refusal_of(text, message).path == path


@pytest.mark.parametrize("text", [b"[]", b"5", b"null", b'"x"'])
@pytest.mark.parametrize("newer", [False, True])
def test_a_body_that_is_no_object_is_refused_at_the_top(text: bytes, newer: Literal[False, True]) -> None:
    assert refusal_of(text, BeginRequest, newer=newer).path == ""


def test_what_strict_json_refuses_is_refused_here() -> None:
    assert refusal_of(b'{"tool": "a", "tool": "b"}', BeginRequest).path == "/tool"
    assert refusal_of(b'{"arguments": {"a": NaN}}', BeginRequest).path == "/arguments/a"


def test_a_body_of_a_newer_contract_passes_over_fields_that_are_not_known() -> None:
    assert CONTRACT_VERSION == 5
    assert read(body(BEGIN, {"foo": [1]}), BeginRequest, newer=True).tool == "book"


def test_a_body_of_a_newer_contract_is_no_less_strict_with_the_fields_that_are_known() -> None:
    assert refusal_of(body(BEGIN, {"foo": 1, "occurrence": "1"}), BeginRequest, newer=True).path == "/occurrence"
    assert refusal_of(b'{"foo": 1}', BeginRequest, newer=True).path == "/tool"


@pytest.mark.parametrize("name", ["x` - at `$.arguments", "x` - at `$.y", "`", "$.", "]"])
def test_a_newer_fields_name_is_only_a_name(name: str) -> None:
    body = msgspec.json.encode({**BEGIN, name: 1})
    assert read(body, BeginRequest, newer=True) == read(msgspec.json.encode(BEGIN), BeginRequest)
    with pytest.raises(Refusal):
        read(body, BeginRequest)


def test_newer_fields_are_passed_over_at_every_depth() -> None:
    body = {
        "class": "idempotent",
        "later": 1,
        "arguments": {"later": 2, "normalisers": {"/a": {"phone": "DE", "x": 1}}},
    }
    read_ = read(msgspec.json.encode(body), ToolDeclaration, newer=True)
    assert read_ == ToolDeclaration(
        class_="idempotent", arguments=ArgumentRoles(normalisers={"/a": NormaliserWith(phone="DE")})
    )


def test_many_newer_fields_cost_one_look_each() -> None:
    body = {**BEGIN, **{f"later {number}": number for number in range(20_000)}}
    assert read(msgspec.json.encode(body), BeginRequest, newer=True).tool == BEGIN["tool"]


def test_what_is_wrong_beside_newer_fields_is_still_refused() -> None:
    with pytest.raises(Refusal) as caught:
        read(msgspec.json.encode({**BEGIN, "later": 1, "tool": 7}), BeginRequest, newer=True)
    assert caught.value.path == "/tool"


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"tools": {"a": {}, "pay": {"attempts": 0}, "z": {}}}, "/tools/pay/attempts"),
        ({"tools": {"a": {}, "p/q": {}}}, "/tools/p~1q"),
        ({"tools": {"pay": {"arguments": {"normalisers": {"/a": "utc", "/to": "emial"}}}}}, "normalisers/~1to"),
        ({"tools": {"pay": {"arguments": {"normalisers": {"/to": {"alias": {"x": 1, "y": 1.5}}}}}}}, "~1to/alias/y"),
        ({"tools": {"pay": {"arguments": {"normalisers": {"/a": ["utc", "nope"]}}}}}, "normalisers/~1a/1"),
        ({"tools": {"pay": {"arguments": {"normalisers": {"/a": "utc", "b": "utc"}}}}}, "normalisers/b"),
        ({"tools": {"pay": 3}}, "/tools/pay"),
    ],
)
def test_a_wrong_member_of_an_object_with_names_of_its_own_is_named(value: object, place: str) -> None:
    assert refusal_of(json.dumps(value).encode(), PlanRequest).path.endswith(place)


def test_a_wrong_pointer_and_a_wrong_name_are_refused_in_words() -> None:
    pointer = refusal_of(b'{"arguments": {"content": ["title"]}}', ToolDeclaration)
    assert pointer.reason == "this is not a JSON Pointer, such as /title or /lines/*/sku"
    name = refusal_of(b'{"compensation": {"tool": "a/b"}}', ToolDeclaration)
    assert name.reason == "this is not a name: it has no control characters and no slashes"
