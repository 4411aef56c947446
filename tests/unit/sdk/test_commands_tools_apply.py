"""`twiceshy tools apply`: a file is checked whole, planned, agreed to, and applied at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.scripted import answered, problem
from tests.unit.sdk.test_commands_tools import DEFAULTS, held
from twiceshy._commands import plans
from twiceshy._transports.base import Reply

TWO = """\
tools:
  pay:
    attempts: 9
    class: idempotent   # was a side effect
  send_mail: {approval: {when: "arguments.amount > `100`"}}
"""
DECLARED = {
    "pay": {"attempts": 9, "class": "idempotent", "declared_by": "person"},
    "send_mail": {"approval": {"when": "arguments.amount > `100`"}, "declared_by": "person"},
}


def item(name: str, change: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "change": change, "before": None, "version": 1, "declaration": DEFAULTS, **more}


CHANGED = item(
    "pay",
    "changed",
    before=held(3),
    version=4,
    declaration={**DEFAULTS, "class": "idempotent", "attempts": 9},
    lowered=["/class"],
)
PLAN = {"items": [CHANGED, item("send_mail", "new", declaration={**DEFAULTS, "loop_limit": 3})]}


def applied(text: str, *words: str, asked: Asked, plan: Any = PLAN, folder: Path) -> Result:
    path = folder / "tools.yaml"
    path.write_text(text)
    return run(answering(asked, lambda *_: answered(200, plan)), "tools", "apply", str(path), *words)


def test_the_plan_is_shown_and_applied_as_it_was_seen(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(TWO, "--yes", asked=asked, folder=tmp_path)
    assert result.exit_code == 0, result.output
    assert asked == [
        ("POST", "/v1/tools/plan", {"tools": DECLARED}),
        ("POST", "/v1/tools/apply", {"tools": DECLARED, "seen": {"pay": 3, "send_mail": 0}}),
    ]
    assert result.output.splitlines() == [
        "~ pay: version 4, instead of 3",
        "  ! class: side_effect → idempotent  (guards less than before)",
        "    attempts: 5 → 9",
        "+ send_mail: new, version 1",
        "    loop_limit: - → 3",
        "1 new, 1 changed, 0 unchanged. 1 guarded less than before.",
        "Applied.",
    ]


def test_a_dry_run_shows_the_plan_and_writes_nothing(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(TWO, "--dry-run", "--yes", asked=asked, folder=tmp_path)
    assert (result.exit_code, [path for _, path, _ in asked]) == (0, ["/v1/tools/plan"])
    assert result.output.endswith("This is a dry run: nothing was applied.\n")


def test_what_changes_nothing_is_not_applied_and_nobody_is_asked(tmp_path: Path) -> None:
    asked: Asked = []
    same = item("pay", "unchanged", before=held(3), version=3)
    result = applied("tools: {pay: {}}", asked=asked, folder=tmp_path, plan={"items": [same]})
    assert (result.exit_code, [path for _, path, _ in asked]) == (0, ["/v1/tools/plan"])
    assert result.output.splitlines() == ["= pay: unchanged, version 3", "0 new, 0 changed, 1 unchanged."]


def test_an_earlier_version_that_holds_again_is_named(tmp_path: Path) -> None:
    again = item("pay", "again", before=held(3, attempts=9), version=1)
    result = applied("tools: {pay: {}}", "--dry-run", asked=[], folder=tmp_path, plan={"items": [again]})
    assert result.output.splitlines()[:2] == ["~ pay: version 1 again, instead of 3", "    attempts: 9 → 5"]


@pytest.mark.parametrize(
    ("words", "paths"), [(["--dry-run"], ["/v1/tools/plan"]), (["--yes"], ["/v1/tools/plan", "/v1/tools/apply"])]
)
def test_json_is_what_the_service_answered_last(words: list[str], paths: list[str], tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(TWO, "--json", *words, asked=asked, folder=tmp_path)
    assert msgspec.json.decode(result.output) == PLAN
    assert [path for _, path, _ in asked] == paths


def test_json_asks_nothing(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(TWO, "--json", asked=asked, folder=tmp_path)
    assert (result.exit_code, asked) == (2, [])
    assert "add --dry-run" in result.output


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "is_anybody_there", lambda: True)


@pytest.mark.parametrize(
    ("answer", "code", "paths"), [("y", 0, ["plan", "apply"]), ("n", 1, ["plan"]), ("", 1, ["plan"])]
)
@pytest.mark.usefixtures("terminal")
def test_a_person_at_a_terminal_is_asked(answer: str, code: int, paths: list[str], tmp_path: Path) -> None:
    asked: Asked = []
    path = tmp_path / "tools.yaml"
    path.write_text(TWO)
    handler = answering(asked, lambda *_: answered(200, PLAN))
    result = run(handler, "tools", "apply", str(path), input=f"{answer}\n")
    assert (result.exit_code, [asked_path.rsplit("/", 1)[-1] for _, asked_path, _ in asked]) == (code, paths)
    assert ("Nothing was applied." in result.output) == (code == 1)


def test_where_nobody_can_be_asked_nothing_is_applied(tmp_path: Path) -> None:
    asked: Asked = []
    result = applied(TWO, asked=asked, folder=tmp_path)
    assert (result.exit_code, [path for _, path, _ in asked]) == (2, ["/v1/tools/plan"])
    assert "add --yes" in result.output


def test_the_file_comes_from_standard_input_and_may_be_json() -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": [item("pay", "new")]}))
    result = run(handler, "tools", "apply", "-", "--yes", input='{"tools": {"pay": {"declared_by": "code"}}}')
    assert result.exit_code == 0, result.output
    assert asked[0][2] == {"tools": {"pay": {"declared_by": "person"}}}


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("tools:\n  pay: {attempts: 0}\n", ["tools.yaml:2:9: /tools/pay/attempts: Expected int >= 1."]),
        ("tools:\n  pay:\n    atempts: 2\n", ["tools.yaml:3:5: /tools/pay/atempts: this field is not known."]),
        ("tools:\n  pay:\n    attempts: often\n", ["tools.yaml:3:5: /tools/pay/attempts: Expected int, got str."]),
        (
            "tools:\n  pay:\n    arguments:\n      content:\n        - /title\n        - body\n",
            ["tools.yaml:6:11: /tools/pay/arguments/content/1: this is not a JSON Pointer"],
        ),
        (
            "tools:\n  pay:\n    arguments:\n      normalisers:\n        /to: emial\n",
            ["tools.yaml:5:9: /tools/pay/arguments/normalisers/~1to: Invalid enum value 'emial'."],
        ),
        (
            "tools:\n  pay: {}\n  mail: {}\n  pay: {}\n",
            ["tools.yaml:4:3: the key 'pay' stands twice", "first in line 2"],
        ),
        ("tools:\n  pay: {\n", ["tools.yaml:3:1: not YAML: while parsing a flow"]),
        ("tools:\n\tpay: {}\n", ["tools.yaml:2:1: not YAML", "cannot start any token"]),
        ("tools:\n  a/b: {}\n", ["tools.yaml:2:3: /tools/a~1b: a tool's name has 1 to 200 characters"]),
        ("tools:\n  pay:\n", ["tools.yaml:2:3: /tools/pay: a declaration is missing; {} is one"]),
        ("tools:\n  pay: 3\n", ["tools.yaml:2:3: /tools/pay: Expected object, got int."]),
        ("tools: {}\n", ["tools.yaml:1:1: /tools: no tool is declared here."]),
        ("tools: []\n", ["tools.yaml:1:1: /tools: tools is missing"]),
        ("tool:\n  pay: {}\n", ["/tools: tools is missing", "tools.yaml:1:1: /tool: this field is not known."]),
        ("- pay\n", ["/tools: tools is missing"]),
        ("", ["tools.yaml: the document is empty."]),
        ("tools: {pay: {}}\n---\ntools: {}\n", ["tools.yaml:2:1: not YAML", "another document"]),
        ("tools:\n  <<: {pay: {}}\n", ["tools.yaml:2:3: merge keys (<<) are not read"]),
        ("tools:\n  pay: !!python/object:os.system {}\n", ["tools.yaml:2:8: the tag", "is not read."]),
        ("tools:\n  pay: \x07\n", ["tools.yaml:2:8: not YAML"]),
        (
            "tools:\n  pay: {attempts: 0}\n  mail: {lease_seconds: 0.5}\n",
            ["tools.yaml:2:9: /tools/pay/attempts", "tools.yaml:3:10: /tools/mail/lease_seconds"],
        ),
        ('{"tools": {\n "pay": {"attempts": 0}}}', ["tools.yaml:2:10: /tools/pay/attempts: Expected int >= 1."]),
        ('{"tools": {\n "pay": {},\n}}', ["tools.yaml:3:1: expected a key"]),
        ('{"tools": {\n\t"pay": {}, "pay": {}}}', ["/tools/pay: the key stands twice in one object."]),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_line_and_column_and_nothing_is_asked(
    text: str, messages: list[str], tmp_path: Path
) -> None:
    asked: Asked = []
    result = applied(text, "--yes", asked=asked, folder=tmp_path)
    assert (result.exit_code, asked) == (2, [])
    assert [message for message in messages if message not in result.output] == [], result.output
    assert "Nothing was applied." in result.output


def test_a_byte_that_is_no_character_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "tools.yaml"
    path.write_bytes(b"tools:\n  pay: {}\n  \xff: {}\n")
    result = run(answering([], lambda *_: answered(200, PLAN)), "tools", "apply", str(path), "--yes")
    assert result.exit_code == 2
    assert "tools.yaml:3:1: byte 19 is not UTF-8." in result.output


def test_what_the_service_refuses_is_named_by_its_line_and_nothing_is_applied(tmp_path: Path) -> None:
    text = "tools:\n  pay: {}\n  mail:\n    approval:\n      when: 'amount >'\n    compensation: {tool: mail}\n"
    wrong = [
        {"path": "/approval/when", "message": "this is no JMESPath expression"},
        {"path": "/compensation/tool", "message": "a tool does not take itself back"},
    ]
    plan = {"items": [item("pay", "new"), item("mail", "refused", version=None, declaration=None, errors=wrong)]}
    asked: Asked = []
    result = applied(text, "--yes", asked=asked, folder=tmp_path, plan=plan)
    assert (result.exit_code, [path for _, path, _ in asked]) == (1, ["/v1/tools/plan"])
    for line in (
        "tools.yaml:5:7: /tools/mail/approval/when: this is no JMESPath expression.",
        "tools.yaml:6:20: /tools/mail/compensation/tool: a tool does not take itself back.",
        "Nothing was applied.",
    ):
        assert line in result.output


def test_a_registry_that_changed_since_the_plan_is_said(tmp_path: Path) -> None:
    def answers(_: str, path: str) -> Reply:
        return answered(200, PLAN) if path.endswith("plan") else problem("registry-changed", 409)

    handler: Callable[[str, str], Reply] = answers
    path = tmp_path / "tools.yaml"
    path.write_text(TWO)
    result = run(answering([], handler), "tools", "apply", str(path), "--yes")
    assert result.exit_code == 1
    assert "Applied." not in result.output
