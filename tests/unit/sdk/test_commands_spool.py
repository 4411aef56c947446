"""`twiceshy spool`: what it shows without sending anything, and what it delivers."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.unit.sdk.real_server import Handler, serving
from tests.unit.sdk.scripted import KEY, committed, problem
from tests.unit.sdk.spooled import URL, files, undelivered
from twiceshy._commands import main
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_record import Undelivered
from twiceshy._transports.base import Reply

OTHER = "1f" * 32


def left_behind(folder: Path, *outcomes: Undelivered) -> SpoolFile:
    """A file whose process lives until the test lets it go."""
    file = SpoolFile.create(folder)
    for outcome in outcomes:
        file.keep(outcome)
    return file


def listed(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["spool", "list", "--spool", str(folder), *more])


def drained(folder: Path, answers: Sequence[Reply], *numbers: int) -> tuple[Result, list[str]]:
    """Drain outcomes of a dead process into a service that gives the answers, in order."""
    given, asked = iter(answers), list[str]()

    def handler(_method: str, path: str, headers: dict[str, str], _body: bytes) -> Reply:
        asked.append(f"{path} {headers['Authorization']}")
        return next(given)

    return _drained(folder, handler, numbers), asked


def _drained(folder: Path, handler: Handler, numbers: Sequence[int]) -> Result:
    with serving(handler) as url:
        left_behind(folder, *(undelivered(number, url=url) for number in numbers)).let_go()
        return CliRunner().invoke(main, ["spool", "drain", "--spool", str(folder), "--url", url, "--token", "secret"])


def test_an_empty_or_missing_spool_says_so(tmp_path: Path) -> None:
    result = listed(tmp_path / "missing")
    assert (result.exit_code, result.output) == (0, f"Nothing waits in {tmp_path / 'missing'}.\n")


def test_list_shows_what_waits_and_not_what_the_tools_returned(tmp_path: Path) -> None:
    file = left_behind(tmp_path, undelivered(1, result="a secret"), undelivered(2, key=OTHER))
    file.note(undelivered(1).attempt, "connection refused")
    result = listed(tmp_path)
    file.let_go()
    assert result.exit_code == 0, result.output
    heading, first, second = result.output.splitlines()
    assert heading.split() == ["key", "tool", "outcome", "since", "tries", "process", "url", "file", "last", "reason"]
    assert first.split()[:5] == [KEY, "pay", "succeeded", "2026-10-12T14:00:00Z", "1"]
    assert "(alive)" in first
    assert first.endswith("connection refused")
    assert second.split()[:5] == [OTHER, "pay", "succeeded", "2026-10-12T14:00:00Z", "0"]
    assert "a secret" not in result.output
    assert "(dead)" in listed(tmp_path).output


def test_list_as_json_holds_the_reports(tmp_path: Path) -> None:
    left_behind(tmp_path, undelivered(1, result="a secret")).let_go()
    (item,) = msgspec.json.decode(listed(tmp_path, "--json").output)["items"]
    assert item["report"] == {"attempt": "00000000-0000-0000-0000-000000000001", "fence": 1, "result": "a secret"}
    assert (item["key"], item["owner"], item["url"], item["tries"], item["reason"]) == (KEY, "dead", URL, 0, None)


def test_drain_delivers_all_and_ends_well(tmp_path: Path) -> None:
    result, asked = drained(tmp_path, [committed(), committed()], 1, 2)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        f"{KEY} of pay is succeeded.",
        f"{KEY} of pay is succeeded.",
        "2 delivered, 0 refused for good, 0 left.",
    ]
    assert asked == [f"/v1/effects/{KEY}/commit Bearer secret"] * 2
    assert files(tmp_path) == []


def test_drain_prints_what_was_refused_for_good_and_ends_well(tmp_path: Path) -> None:
    result, _ = drained(tmp_path, [problem("not-found", 404), committed()], 1, 2)
    assert result.exit_code == 0, result.output
    assert "refused the outcome of pay for good (not-found)" in result.output
    assert '"result":14' in result.output
    assert result.output.endswith("1 delivered, 1 refused for good, 0 left.\n")


def test_list_shows_what_was_refused_for_good_with_its_whole_report_in_json(tmp_path: Path) -> None:
    with serving(lambda *_: problem("superseded", 409)) as url:
        left_behind(tmp_path, undelivered(1, url=url, result="x" * 20_000)).let_go()
        drain = CliRunner().invoke(main, ["spool", "drain", "--spool", str(tmp_path), "--url", url])
    (name,) = files(tmp_path)
    assert f"It is kept in {tmp_path / name}" in drain.output
    said = listed(tmp_path).output.splitlines()
    assert said[0] == f"Nothing waits in {tmp_path}."
    assert said[3].split()[:4] == [KEY, "pay", "succeeded", "2026-10-12T14:00:00Z"]
    (item,) = msgspec.json.decode(listed(tmp_path, "--json").output)["refused"]
    assert (item["report"]["result"], item["file"]) == ("x" * 20_000, str(tmp_path / name))


def test_drain_goes_on_with_other_effects_where_one_is_stuck(tmp_path: Path) -> None:
    with serving(lambda _method, path, *_: problem("internal", 500) if KEY in path else committed()) as url:
        outcomes = (undelivered(1, url=url), undelivered(2, url=url), undelivered(3, url=url, key=OTHER))
        left_behind(tmp_path, *outcomes).let_go()
        drain = CliRunner().invoke(main, ["spool", "drain", "--spool", str(tmp_path), "--url", url])
    assert drain.exit_code == 1
    assert "1 delivered, 0 refused for good, 2 left." in drain.output


def test_drain_ends_with_1_where_a_file_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "host_1_0000abcd.jsonl").write_bytes(b"rotten\n")
    result, _ = drained(tmp_path, [committed()], 1)
    assert result.exit_code == 1
    assert result.output.endswith("1 delivered, 0 refused for good, 0 left.\n")


def test_drain_says_what_is_stuck_and_ends_with_1(tmp_path: Path) -> None:
    result, asked = drained(tmp_path, [committed(), problem("unauthorized", 401)], 1, 2, 3)
    assert (result.exit_code, len(asked)) == (1, 2)
    said = result.output.splitlines()
    assert said[1] == "1 delivered, 0 refused for good, 2 left."
    assert said[2].startswith(f"1 stuck in {tmp_path}")
    assert said[2].endswith("unauthorized: The service says unauthorized.")
    assert said[3].endswith("behind one that could not be sent.")
    assert len(files(tmp_path)) == 1


def test_drain_leaves_the_living_and_other_services_alone_and_says_so(tmp_path: Path) -> None:
    living = left_behind(tmp_path, undelivered(1))
    left_behind(tmp_path, undelivered(2, url="http://elsewhere.test")).let_go()
    result, asked = drained(tmp_path, [committed()], 3)
    living.let_go()
    assert (result.exit_code, len(asked)) == (1, 1)
    said = result.output.splitlines()
    assert said[1] == "1 delivered, 0 refused for good, 2 left."
    assert any("left to the living process" in line for line in said)
    assert "1 for http://elsewhere.test; deliver them with --url http://elsewhere.test." in said


def test_a_spool_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = listed(tmp_path / "file")
    assert (result.exit_code, "is a file" in result.output) == (2, True)


def test_the_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_SPOOL", str(tmp_path))
    left_behind(tmp_path, undelivered(1)).let_go()
    assert KEY in CliRunner().invoke(main, ["spool", "list"]).output
