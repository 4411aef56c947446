"""`twiceshy tools`: the registry on the command line."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.scripted import answered, problem
from twiceshy._commands.declarations import changes, normalisers_of
from twiceshy._transports.base import Reply
from twiceshy_contract.tools import ToolDeclaration

DEFAULTS: dict[str, Any] = {
    "class": "side_effect", "key": {"rule": "once", "scope": "run", "window_seconds": None},
    "arguments": {"identity": [], "content": [], "ignored": [], "normalisers": {}},
    "lease_seconds": 30, "attempts": 5, "backoff_seconds": 1, "provider_window_seconds": None, "declared_by": "person",
    "provider_key_header": None, "retention_seconds": None, "repeat": "replay", "on_doubt": None, "share": None,
    "loop_limit": None, "redacted": [], "settle_seconds": 10, "fork": "auto", "approval": None, "compensation": None,
    "probe": None, "simulator": None, "resource": None, "sink": None,
}  # fmt: skip

RULED: dict[str, Any] = {"approval": {"quorum": 2, "four_eyes": True}, "loop_limit": 3}


def held(version: int = 1, **more: object) -> dict[str, Any]:
    return {
        "name": "pay", "version": version, "digest": "0f" * 32, "declared_at": "2026-10-12T14:00:00.123456Z",
        "declaration": {**DEFAULTS, **more},
    }  # fmt: skip


def test_tools_are_listed_a_line_each() -> None:
    body = {"items": [held(declared_by="code"), {**held(3, **{"class": "idempotent", **RULED}), "name": "send_mail"}]}
    result = run(answering([], lambda *_: answered(200, body)), "tools", "list")
    assert [line.split() for line in result.output.splitlines()[1:]] == [
        ["pay", "1", "side_effect", "once", "code", "2026-10-12T14:00:00Z", "-"],
        ["send_mail", "3", "idempotent", "once", "person", "2026-10-12T14:00:00Z", "approval,", "loop_limit"],
    ]
    as_json = run(answering([], lambda *_: answered(200, body)), "tools", "list", "--json")
    assert msgspec.json.decode(as_json.output) == body


def test_an_empty_registry_says_so() -> None:
    assert (
        "No tools are declared" in run(answering([], lambda *_: answered(200, {"items": []})), "tools", "list").output
    )


def test_a_tool_is_shown_with_its_roles_and_what_a_later_service_adds() -> None:
    asked: Asked = []
    roles = {
        "identity": [],
        "content": ["/a", "/b"],
        "ignored": [],
        "normalisers": {"/to": "email", "/t": ["nfc", "url"]},
    }
    body = held(arguments=roles, novelty=[1])
    result = run(answering(asked, lambda *_: answered(200, body)), "tools", "show", "pay %?")
    assert asked == [("GET", "/v1/tools/pay%20%25%3F", None)]
    told = dict(line.split(maxsplit=1) for line in result.output.splitlines())
    assert (told["content"], told["normalisers"], told["novelty"]) == ("/a, /b", "/to=email, /t=nfc, url", "1")
    assert result.output.splitlines()[4].split() == ["key", "rule", "once"]


def test_the_rules_of_a_tool_are_shown_with_all_that_they_say() -> None:
    result = run(answering([], lambda *_: answered(200, held(**RULED))), "tools", "show", "pay")
    told = dict(line.split(maxsplit=1) for line in result.output.splitlines())
    assert (told["approval"], told["loop_limit"], told["probe"]) == ("quorum=2, four_eyes=true", "3", "-")


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["show", "pay", "--version", "2"], "/pay?version=2"),
        (["show", "pay", "--at", "2026-10-12T14:00:00+02:00"], "/pay?at=2026-10-12T14%3A00%3A00%2B02%3A00"),
        (["list", "--at", "2026-10-12T14:00:00Z"], "?at=2026-10-12T14%3A00%3A00Z"),
    ],
)
def test_the_past_is_asked_for_by_version_and_by_instant(words: list[str], query: str) -> None:
    asked: Asked = []
    body = {"items": []} if words[0] == "list" else held(2)
    result = run(answering(asked, lambda *_: answered(200, body)), "tools", *words)
    assert (result.exit_code, asked) == (0, [("GET", f"/v1/tools{query}", None)])


def test_a_version_and_an_instant_are_not_asked_for_together() -> None:
    asked: Asked = []
    words = ["tools", "show", "pay", "--version", "2", "--at", "2026-10-12T14:00:00Z"]
    result = run(answering(asked, lambda *_: answered(200, held(2))), *words)
    assert (result.exit_code, asked) == (2, [])


def test_versions_are_listed_with_each_term_in_which_they_held() -> None:
    asked: Asked = []
    first, second, third = (f"2026-10-1{day}T14:00:00.000001Z" for day in (2, 3, 4))
    old = [{"since": first, "until": second}, {"since": third, "until": None}]
    body = {
        "items": [
            {**held(2, **{"class": "read"}), "declared_by": "hint", "terms": [{"since": second, "until": third}]},
            {**held(1), "declared_by": "person", "terms": old},
        ]
    }
    result = run(answering(asked, lambda *_: answered(200, body)), "tools", "versions", "pay")
    assert asked == [("GET", "/v1/tools/pay/versions", None)]
    assert [line.split() for line in result.output.splitlines()[1:]] == [
        ["2", "read", "hint", "2026-10-13T14:00:00Z", "2026-10-14T14:00:00Z", "0f0f0f0f0f0f"],
        ["1", "side_effect", "person", "2026-10-14T14:00:00Z", "now", "0f0f0f0f0f0f"],
        ["1", "side_effect", "person", "2026-10-12T14:00:00Z", "2026-10-13T14:00:00Z", "0f0f0f0f0f0f"],
    ]
    as_json = run(answering([], lambda *_: answered(200, body)), "tools", "versions", "pay", "--json")
    assert msgspec.json.decode(as_json.output) == body


def test_what_is_said_goes_over_what_holds() -> None:
    asked: Asked = []
    roles = {"identity": [], "content": ["/title"], "ignored": ["/why"], "normalisers": {}}
    before = held(attempts=9, arguments=roles, declared_by="code")
    after = held(2, attempts=9, lease_seconds=60.0, arguments={**roles, "content": ["/note", "/body"]})
    handler = answering(asked, lambda method, _: answered(200, before if method == "GET" else after))
    words = ["--content", "/note", "--content", "/body", "--lease-seconds", "60"]
    result = run(handler, "tools", "declare", "pay", *words)
    assert result.exit_code == 0, result.output
    assert asked[1] == ("PUT", "/v1/tools/pay", after["declaration"])
    assert result.output.splitlines() == [
        "Tool pay is at version 2 (was 1).",
        "  content: -/title +/note +/body",
        "  lease_seconds: 30 → 60.0",
        "  declared_by: code → person",
    ]


def test_anew_forgets_what_held() -> None:
    asked: Asked = []
    before, after = held(attempts=9), held(2, **{"class": "idempotent"})
    handler = answering(asked, lambda method, _: answered(200, before if method == "GET" else after))
    result = run(handler, "tools", "declare", "pay", "--anew", "--class", "idempotent")
    assert asked[1][2] == {"class": "idempotent", "declared_by": "person"}
    assert result.output.splitlines()[1:] == ["  class: side_effect → idempotent", "  attempts: 9 → 5"]


def test_a_tool_that_nobody_declared_is_compared_with_the_defaults() -> None:
    asked: Asked = []
    after = held(key={"rule": "business_key", "scope": "run", "window_seconds": None})
    handler = answering(asked, lambda method, _: problem("not-found", 404) if method == "GET" else answered(200, after))
    result = run(handler, "tools", "declare", "pay", "--key", "business_key")
    assert asked[1][2] == {"key": {"rule": "business_key"}, "declared_by": "person"}
    assert result.output.splitlines() == [
        "Tool pay is at version 1 (nobody had declared it).",
        "  key rule: once → business_key",
        "  all else: the defaults",
    ]


def test_the_same_again_changes_nothing_and_says_so() -> None:
    result = run(answering([], lambda *_: answered(200, held(4))), "tools", "declare", "pay")
    assert result.output == "Tool pay is declared like this already: version 4 holds, nothing changed.\n"


@pytest.mark.parametrize("source", ["file", "-"])
def test_a_whole_declaration_comes_from_a_file_and_is_a_persons(source: str, tmp_path: Path) -> None:
    asked: Asked = []
    declaration = {"class": "idempotent", "attempts": 2, "declared_by": "code"}
    path = tmp_path / "pay.json"
    path.write_bytes(msgspec.json.encode(declaration))
    handler = answering(asked, lambda *_: answered(200, held()))
    words = ["tools", "declare", "pay", "--file", str(path) if source == "file" else "-", "--json"]
    result = run(handler, *words, input=path.read_text())
    assert result.exit_code == 0, result.output
    assert asked[1][2] == {**declaration, "declared_by": "person"}
    assert msgspec.json.decode(result.output) == held()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("{", "is not JSON"),
        ("[]", "is not a declaration"),
        ('{"attempts": 0}', "is not a declaration at /attempts"),
        ('{"a": 1, "a": 2}', "is not JSON"),
        ("\x00", "is not JSON"),
    ],
)
def test_a_file_that_is_no_declaration_is_refused_before_anything_is_asked(
    content: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "pay.json"
    if content is not None:
        path.write_text(content)
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, held())), "tools", "declare", "pay", "--file", str(path))
    assert (result.exit_code, asked) == (2, [])
    assert message in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--content", "title"], "at /arguments/content/0"),
        (["--attempts", "0"], "at /attempts"),
        (["--lease-seconds", "nan"], "at /lease_seconds"),
        (["--class", "harmless"], "'harmless'"),
        (["--normaliser", "/to"], "is not /path=name"),
        (["--normaliser", "/to=emial"], "at /arguments/normalisers"),
        (["--normaliser", "/to={"], "is not JSON behind its `=`"),
        (["--file", "x.json", "--content", "/a"], "leave out the options"),
        (["--contnet", "/a"], "--content"),
    ],
)
def test_a_wrong_declaration_asks_nothing_and_exits_with_2(words: list[str], message: str) -> None:
    asked: Asked = []
    result = run(answering(asked, lambda *_: answered(200, held())), "tools", "declare", "pay", *words)
    assert (result.exit_code, asked) == (2, [])
    assert message in result.output


def test_normalisers_are_names_names_with_a_value_and_json_and_several_in_order() -> None:
    given = ["/a=email", "/b=phone:DE", '/c={"alias": {"x=y": "u1"}}', "/a=nfc", '/d=["nfc", "url"]']
    assert normalisers_of(given) == {
        "/a": ["email", "nfc"], "/b": {"phone": "DE"}, "/c": {"alias": {"x=y": "u1"}}, "/d": ["nfc", "url"],
    }  # fmt: skip


def test_a_declaration_that_equals_the_defaults_changed_nothing() -> None:
    assert changes(None, DEFAULTS) == []
    assert msgspec.json.decode(msgspec.json.encode(ToolDeclaration())) == DEFAULTS


def test_a_refusal_of_the_service_names_the_place() -> None:
    errors = [{"path": "/arguments/ignored/0", "message": "it is content as well"}]

    def answers(method: str, _: str) -> Reply:
        return answered(200, held()) if method == "GET" else problem("invalid-request", 400, errors=errors)

    result = run(answering([], answers), "tools", "declare", "pay", "--content", "/a", "--ignored", "/a")
    assert result.exit_code == 1
    assert "/arguments/ignored/0: it is content as well" in result.output
