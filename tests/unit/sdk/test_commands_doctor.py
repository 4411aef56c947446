"""`twiceshy doctor`: what it asks, how it judges each answer, and how it exits."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import UUID

import click
import msgspec
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from tests.unit.sdk.commands import KEY, Asked, answering
from tests.unit.sdk.commands import run as run_command
from tests.unit.sdk.real_server import serving
from tests.unit.sdk.scripted import answered, problem
from twiceshy._commands import checks, main
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_record import Undelivered
from twiceshy._transports.base import Reply
from twiceshy_contract.status import DatabaseStatus, DatabaseView, EffectTally, OutboxTally, StatusView

GIB = 2**30
FILE = DatabaseView(
    kind="sqlite", version="3.40.1", revision="0002", needed="0002", is_current=True,
    durability={"journal_mode": "wal", "synchronous": "full"}, is_durable=True, free_bytes=2 * GIB,
)  # fmt: skip
STATUS = StatusView(
    version=metadata.version("twiceshy"), contract=5, now="2026-10-12T14:00:00Z", lanes=1, database=FILE,
    effects=EffectTally(in_doubt=0, executing=2),
)  # fmt: skip
EPOCH = datetime(2026, 10, 12, 14, tzinfo=UTC).timestamp()
HEALTHY = [
    "settings",
    "service",
    "token",
    "versions",
    "clock",
    "database",
    "durability",
    "room",
    "doubt",
    "outbox",
    "spool",
]


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("TWICESHY_SPOOL", "TWICESHY_URL", "TWICESHY_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def told(status: Callable[[], Reply], *words: str, asked: Asked | None = None) -> Result:
    def answers(_: str, path: str) -> Reply:
        return answered(200, {"status": "live"}) if path == "/health/live" else status()

    return run_command(answering([] if asked is None else asked, answers), "doctor", *words)


def served(**changed: Any) -> Callable[[], Reply]:
    return lambda: answered(200, msgspec.to_builtins(replace(STATUS, now=now(), **changed)))


def levels(result: Result) -> dict[str, str]:
    """Return the level of each line, in order."""
    return {line.split()[1]: line.split()[0] for line in result.output.splitlines()}


def test_a_healthy_service_is_ok_line_by_line() -> None:
    asked: Asked = []
    result = told(served(), asked=asked)
    assert result.exit_code == 0, result.output
    assert levels(result) == dict.fromkeys(HEALTHY, "ok")
    assert [(method, path) for method, path, _ in asked] == [("GET", "/health/live"), ("GET", "/v1/status")]


def test_the_findings_are_json_as_well() -> None:
    report = msgspec.json.decode(told(served(), "--json").output)
    assert (report["ok"], [finding["check"] for finding in report["checks"]]) == (True, HEALTHY)
    assert set(report["checks"][0]) == {"check", "level", "found", "advice"}


@pytest.mark.parametrize(
    ("changed", "check", "level", "words"),
    [
        ({"version": "9.9.9"}, "versions", "warn", "Install the same version of both"),
        ({"contract": 99}, "versions", "warn", "contract 99"),
        ({"effects": EffectTally(in_doubt=3, executing=0)}, "doubt", "warn", "twiceshy effects list --state in_doubt"),
        ({"outbox": OutboxTally(dead=2, unknown=1)}, "outbox", "warn", "twiceshy outbox redrive"),
        ({"database": replace(FILE, revision="0001", is_current=False)}, "database", "fail", "twiceshy migrate"),
        ({"database": replace(FILE, free_bytes=GIB // 2)}, "room", "warn", "0.5 GiB"),
        ({"database": replace(FILE, free_bytes=1)}, "room", "fail", "Make room"),
        (
            {"database": replace(FILE, kind="postgresql", durability={"fsync": "off"}, is_durable=False)},
            "durability", "fail", "Set fsync to on",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_to_do(changed: dict[str, Any], check: str, level: str, words: str) -> None:
    result = told(served(**changed))
    assert result.exit_code == (1 if level == "fail" else 0)
    assert levels(result) == {**dict.fromkeys(HEALTHY, "ok"), check: level}
    assert words in result.output


@pytest.mark.parametrize(
    ("reply", "check", "words"),
    [
        (problem("unauthorized", 401), "token", "unauthorized"),
        (problem("store-unavailable", 503), "database", "store-unavailable"),
        (problem("not-found", 404), "versions", "older than this command"),
        (answered(200, {"version": 1}), "status", "not the guard's answer"),
    ],
)
def test_a_status_that_is_not_given_fails_in_its_own_line(reply: Reply, check: str, words: str) -> None:
    result = told(lambda: reply)
    assert result.exit_code == 1
    assert levels(result) == {"settings": "ok", "service": "ok", check: "fail", "spool": "ok"}
    assert words in result.output


def test_without_a_service_the_rest_is_still_looked_at() -> None:
    with serving(lambda *_: answered(200, {})) as url:
        pass
    result = CliRunner().invoke(main, ["doctor", "--url", url])
    assert (result.exit_code, levels(result)) == (1, {"settings": "ok", "service": "fail", "spool": "ok"})
    assert "doctor --database URL" in result.output


def test_something_else_at_the_url_is_no_service() -> None:
    result = run_command(lambda *_: answered(200, {"status": "up"}), "doctor")
    assert levels(result) == {"settings": "ok", "service": "fail", "spool": "ok"}


def test_settings_are_named_without_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_TOKENS", "top-secret")
    monkeypatch.setenv("TWICESHY_DATABASE", "postgresql://me:hidden@host/db")
    with serving(lambda *_: answered(200, {})) as url:
        result = CliRunner().invoke(main, ["doctor", "--url", url, "--token", "sesame"])
    assert "TWICESHY_DATABASE, TWICESHY_TOKENS set" in result.output
    for secret in ("top-secret", "hidden", "sesame"):
        assert secret not in result.output


def test_a_misspelt_setting_fails_with_the_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_TOKNE", "top-secret")
    result = CliRunner().invoke(main, ["doctor"])
    assert (result.exit_code, levels(result)) == (1, {"settings": "fail", "spool": "ok"})
    assert "did you mean TWICESHY_TOKEN" in result.output
    assert "top-secret" not in result.output


@pytest.mark.parametrize(
    ("before", "after", "level", "words"),
    [
        (EPOCH - 0.1, EPOCH + 0.1, "ok", "0.000 s behind this machine's, give or take 0.100 s"),
        (EPOCH - 0.9, EPOCH - 0.7, "ok", "0.800 s ahead of this machine's, give or take 0.100 s"),
        (EPOCH + 1.4, EPOCH + 1.6, "warn", "1.500 s behind this machine's, give or take 0.100 s"),
        (EPOCH - 3, EPOCH + 0, "ok", "1.500 s ahead of this machine's, give or take 1.500 s"),
    ],
)
def test_clocks_differ_by_what_the_round_trip_does_not_explain(
    before: float, after: float, level: str, words: str
) -> None:
    finding = checks.clock("2026-10-12T14:00:00Z", before, after)
    assert finding.level == level
    assert words in finding.found


def test_undelivered_outcomes_are_counted_and_left_where_they_are(tmp_path: Path) -> None:
    outcome = Undelivered(
        url="http://guard.test", key=KEY, tool="pay", run="r", attempt=UUID(int=1), fence=1, verb="commit",
        kind="succeeded", since=datetime.now(UTC), body=msgspec.Raw(b"{}"),
    )  # fmt: skip
    file = SpoolFile.create(tmp_path / "twiceshy.spool")
    file.keep(outcome)
    file.let_go()
    before = file.path.read_bytes()
    result = told(served())
    assert (levels(result)["spool"], result.exit_code) == ("warn", 0)
    assert "1 outcome waits in" in result.output
    assert "twiceshy spool drain" in result.output
    assert file.path.read_bytes() == before


def test_a_spool_that_cannot_be_read_fails_and_one_that_is_off_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "twiceshy.spool").write_text("a file, not a folder")
    assert levels(told(served()))["spool"] == "fail"
    monkeypatch.setenv("TWICESHY_SPOOL", "off")
    result = CliRunner().invoke(main, ["doctor", "--url", "http://127.0.0.1:1"])
    assert levels(result)["spool"] == "ok"
    assert "switched off" in result.output


def entry_point(monkeypatch: pytest.MonkeyPatch, *points: metadata.EntryPoint) -> None:
    known = metadata.entry_points
    monkeypatch.setattr(
        metadata,
        "entry_points",
        lambda **wanted: metadata.EntryPoints(points) if wanted == {"group": "twiceshy.doctor"} else known(**wanted),
    )


def examine(database: str) -> DatabaseStatus:
    """Stand in for the server's look at a database."""
    if database == "bad":
        raise click.ClickException("It is bad.")
    at = datetime.fromtimestamp(time.time(), UTC).isoformat()
    return DatabaseStatus(now=at, database=replace(FILE, free_bytes=None), effects=EffectTally(in_doubt=0, executing=0))


def test_a_database_is_looked_at_through_the_server_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry_point(monkeypatch, metadata.EntryPoint("database", f"{__name__}:examine", "twiceshy.doctor"))
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda _: examine)
    result = CliRunner().invoke(main, ["doctor", "--database", "good"])
    assert result.exit_code == 0, result.output
    assert levels(result) == dict.fromkeys(
        ["settings", "clock", "database", "durability", "doubt", "outbox", "spool"], "ok"
    )
    refused = CliRunner().invoke(main, ["doctor", "--database", "bad"])
    assert (refused.exit_code, "It is bad." in refused.output) == (1, True)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ((), "pip install twiceshy[server]"),
        ((metadata.EntryPoint("database", "no.such.module:x", "twiceshy.doctor"),), "cannot be loaded"),
    ],
)
def test_without_a_working_server_no_database_can_be_looked_at(
    points: tuple[metadata.EntryPoint, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry_point(monkeypatch, *points)
    result = CliRunner().invoke(main, ["doctor", "--database", "any"])
    assert (result.exit_code, levels(result)["database"]) == (1, "fail")
    assert words in result.output
