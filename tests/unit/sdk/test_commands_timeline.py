"""`twiceshy runs show` and `diff` on files, and on what a service says."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.commands import Asked, answering, numbered, run
from tests.unit.sdk.scripted import answered
from twiceshy._commands import main, run_diff
from twiceshy._recording import Recording
from twiceshy_contract.runs import RunAbout


def contract(code: str = "GB-SCT", *, found: tuple[str, ...] = ()) -> Recording:
    about = RunAbout(workflow="contracts", agent="reviewer", agent_version="3", model="gpt-x", temperature=0.5)
    writing = Writing(about=about, facts={"outcome": "low"})
    for n in range(6):
        writing.tool("read", {"page": n}, f"page {n}")
    writing.tool("lookup", {"jurisdiction": code}, [*found])
    writing.tool("file", {"risk": "low"})
    return writing.recording()


@pytest.fixture
def case(tmp_path: Path) -> str:
    path = tmp_path / "case.jsonl"
    contract().save(path)
    return str(path)


def twiceshy(*words: str) -> Result:
    return CliRunner().invoke(main, ["runs", *words])


def test_a_file_is_shown_with_its_head_and_the_calls_that_are_asked_for(case: str) -> None:
    shown = twiceshy("show", "--file", case, "--events", "13-14")
    assert shown.exit_code == 0, shown.output
    head, _, cards = shown.output.partition("\n\n")
    assert ["run", "contract-7"] in [line.split() for line in head.splitlines()]
    for fact in ("reviewer 3", "gpt-x, temperature 0.5", "outcome=low", "contracts"):
        assert fact in head
    assert cards.splitlines() == [
        "   13  tool_call  1.5 ms  empty",
        "       Called lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list).",
    ]


def test_a_file_as_json_has_a_card_for_each_call(case: str) -> None:
    shown = msgspec.json.decode(twiceshy("show", "--file", case, "--json", "--full").stdout)
    assert (shown["run"]["run"], len(shown["timeline"])) == ("contract-7", 8)
    card = shown["timeline"][6]
    assert (card["seq"], card["delivery"], card["kind"], card["marks"]) == (13, 14, "tool_call", ["empty"])
    assert (card["arguments"], card["value"]) == ({"jurisdiction": "GB-SCT"}, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--events", "0"], "names no events: write 5-20, 5-, -20 or 5."),
        (["--events", "7-3"], "names no events"),
        (["--events", "x"], "names no events"),
        (["nobody"], "has no run 'nobody'"),
    ],
)
def test_what_cannot_be_shown_is_refused(case: str, words: list[str], said: str) -> None:
    shown = twiceshy("show", "--file", case, *words)
    assert (shown.exit_code, said in shown.output) == (2, True), shown.output


def test_nothing_to_show_and_no_recording_are_said(case: str, tmp_path: Path) -> None:
    assert "Name a run, or a file with --file." in twiceshy("show").output
    beyond = "No calls there: the log has 16 events and ends before event 90."
    assert beyond in twiceshy("show", "--file", case, "--events", "90-").output
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(Path(case).read_bytes()[:-40])
    shown = twiceshy("show", "--file", str(cut))
    assert (shown.exit_code, "cut.jsonl" in shown.output, "line" in shown.output) == (1, True, True), shown.output


def test_two_runs_that_are_the_same_end_with_0(case: str) -> None:
    compared = twiceshy("diff", case, case)
    assert (compared.exit_code, compared.output) == (
        0,
        "contract-7 and contract-7 are the same: 8 calls, with the same outcomes.\n",
    )


def test_two_runs_that_differ_end_with_1_and_say_where_they_part(case: str, tmp_path: Path) -> None:
    other = str(tmp_path / "other.jsonl")
    contract("GB", found=("act",)).save(other)
    compared = twiceshy("diff", case, other)
    assert compared.exit_code == 1
    assert compared.output.splitlines() == [
        "contract-7 and contract-7 differ: 1 changed, 7 equal.",
        "They part at 13.",
        "",
        "  … 4 equal calls",
        "      9  Called read with page 4; it returned 'page 4'.",
        "     11  Called read with page 5; it returned 'page 5'.",
        "-    13  Called lookup with jurisdiction 'GB-SCT'; it returned nothing (empty list).",
        "+    13  Called lookup with jurisdiction 'GB'; it returned ['act'].",
        "        argument /jurisdiction: 'GB-SCT' → 'GB'",
        "        outcome /0: nothing → 'act'",
        "     15  Called file with risk 'low'; it returned nothing.",
    ]
    told = msgspec.json.decode(twiceshy("diff", case, other, "--json").stdout)
    (difference,) = told["differences"]
    assert (told["is_same"], told["counts"]["equal"], difference["verdict"]) == (False, 7, "changed")
    assert difference["arguments"] == [{"path": "/jurisdiction", "left": "GB-SCT", "right": "GB"}]
    assert difference["outcome"] == [{"path": "/0", "right": "act"}]


def test_long_texts_are_cut_around_their_first_difference(case: str, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    contract("clause " * 40 + "GB" + " end" * 40).save(one)
    contract("clause " * 40 + "FR" + " end" * 40).save(other)
    (told,) = (line for line in twiceshy("diff", str(one), str(other)).output.splitlines() if "/jurisdiction" in line)
    before, after = "…se clause clause clause ", " end" * 11 + "…"
    assert told.strip() == f"argument /jurisdiction: '{before}GB{after}' → '{before}FR{after}'"
    contract("clause " * 40).save(one)
    contract("clause " * 40 + "FR").save(other)
    (told,) = (line for line in twiceshy("diff", str(one), str(other)).output.splitlines() if "/jurisdiction" in line)
    assert told.strip() == f"argument /jurisdiction: '{before}' → '{before}FR'"


def test_on_a_terminal_two_runs_stand_in_columns(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_diff, "Console", lambda: Console(force_terminal=True, width=95))
    other = str(tmp_path / "other.jsonl")
    contract("GB", found=("act",)).save(other)
    lines = twiceshy("diff", case, other).output.splitlines()
    assert lines[3:] == [
        f"  {'contract-7':<45} │ contract-7",
        "  … 4 equal calls",
        "      9  Called read with page 4; it returned … │     9  Called read with page 4; it returned …",
        "     11  Called read with page 5; it returned … │    11  Called read with page 5; it returned …",
        "~    13  Called lookup with jurisdiction 'GB-S… │    13  Called lookup with jurisdiction 'GB';…",
        "        argument /jurisdiction: 'GB-SCT' → 'GB'",
        "        outcome /0: nothing → 'act'",
        "     15  Called file with risk 'low'; it retur… │    15  Called file with risk 'low'; it retur…",
    ]


def test_a_file_of_several_runs_is_asked_which(case: str, tmp_path: Path) -> None:
    several = tmp_path / "several.jsonl"
    second = Writing("other")
    second.tool("read", {"page": 0}, "page 0")
    second.recording().save(tmp_path / "second.jsonl")
    several.write_bytes(Path(case).read_bytes() + (tmp_path / "second.jsonl").read_bytes())
    asked = twiceshy("diff", str(several), case)
    assert (asked.exit_code, f"Name one: {several}::contract-7" in asked.output) == (2, True), asked.output
    assert twiceshy("diff", f"{several}::contract-7", case).exit_code == 0
    assert twiceshy("diff", f"{several}::other", case).exit_code == 1


KEY = f"{3:064x}"
APPROVAL: dict[str, Any] = {
    "id": "0199c0de-0000-7000-8000-000000000002", "key": KEY, "round": 1, "state": "approved", "tool": "pay",
    "tool_version": 1, "run": "a b", "summary": "", "arguments": {}, "edited": {"cents": 4}, "evidence": {},
    "requester": None, "quorum": 1, "four_eyes": False, "asked_at": "2026-10-12T14:00:00Z", "expires_at": None,
    "decided_at": "2026-10-12T14:05:00Z", "cancelled_by": None, "reason": None, "as_of": "2026-10-12T14:06:00Z",
    "decisions": [{"by": "ann", "verdict": "approve", "at": "2026-10-12T14:05:00Z", "reason": None, "edited": True}],
}  # fmt: skip
VIEW = {
    **numbered(3), "state": "succeeded", "ended_at": "2026-10-12T15:00:00Z", "as_of": "2026-10-12T16:00:00Z",
    "caller_step": None, "arguments": {}, "outcome": None, "downstream_key": KEY, "retry_at": None, "settles_at": None,
    "resolution": "the bank has it", "attempts": [], "evidence": [],
}  # fmt: skip


def test_a_call_in_doubt_says_that_it_was_settled_later_and_who_approved_it() -> None:
    writing = Writing("a b")
    writing.tool("pay", {"cents": 5}, None, outcome="unknown", effect=KEY)
    recording = writing.recording()
    events = [msgspec.to_builtins(event) for event in recording.events]
    pages: dict[str, Any] = {
        "/v1/runs/a%20b": msgspec.to_builtins(recording.head),
        "/v1/effects?run=a+b&limit=500": {"items": [VIEW], "next": None},
        "/v1/runs/a%20b/events?after=0": {"items": events, "next": None},
        "/v1/approvals?run=a+b&limit=500": {"items": [APPROVAL], "next": None},
        f"/v1/effects/{KEY}": VIEW,
    }
    asked: Asked = []
    shown = run(answering(asked, lambda _, path: answered(200, pages[path])), "runs", "show", "a b")
    assert shown.exit_code == 0, shown.output
    assert shown.output.splitlines()[-4:] == [
        "    1  tool_call  1.5 ms  unknown",
        "       Called pay with cents 5; nobody knows whether it happened (an error that was not kept).",
        "       later resolved as applied on 2026-10-12T15:00:00Z (the bank has it)",
        "       approved by ann on 2026-10-12T14:05:00Z, with changed arguments",
    ]
    told = run(answering(asked, lambda _, path: answered(200, pages[path])), "runs", "show", "a b", "--json")
    assert len(msgspec.json.decode(told.stdout)["timeline"][0]["notes"]) == 2
