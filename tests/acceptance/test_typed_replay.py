"""Results across processes: one that starts anew gets equal values, or hears why it does not."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.service import ServiceProcess
from tests.unit.sdk.typed_values import TABLE
from twiceshy import Guard, ResultNotKept

ROOT = Path(__file__).parents[2]
Shop = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def shop(service: ServiceProcess, sink: Path) -> Shop:
    """Run the shop as a process of its own, to its end."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "tests.acceptance.shop", *words],
            cwd=sink.parent,
            env=os.environ | {"AGENT_URL": service.url, "AGENT_SINK": str(sink), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )

    return run


def effects(service: ServiceProcess) -> dict[str, dict[str, Any]]:
    items = service.ask("GET", "/v1/effects?run=shop&limit=100").body["items"]
    return {item["tool"]: service.ask("GET", f"/v1/effects/{item['key']}").body for item in items}


def test_another_process_after_a_restart_of_the_service_gets_equal_values_and_runs_nothing(
    service: ServiceProcess, shop: Shop, sink: Path
) -> None:
    first = shop("sell_everything")
    assert (first.stdout, first.stderr) == ("", "")
    sold = sink.read_text().splitlines()
    assert sold == [f"tool-{number}" for number in range(len(TABLE))]
    service.stop()
    service.start()
    again = shop("sell_everything")
    assert (again.stdout, again.stderr) == ("", "")
    assert sink.read_text().splitlines() == sold


def test_what_cannot_be_kept_succeeds_reaches_its_caller_and_is_not_replayed(
    service: ServiceProcess, shop: Shop, sink: Path
) -> None:
    names = ["cycle", "lambda", "generator", "file", "deep", "nan", "large"]
    first = shop("sell_unkept")
    assert first.stdout.splitlines() == [f"{name}: the value" for name in names]
    assert first.stderr.count("is not kept") == len(names)
    again = shop("sell_unkept").stdout.splitlines()
    expected = [
        ("dict", "the value contains itself"),
        ("function", "a function cannot be written as JSON"),
        ("generator", "a generator cannot be written as JSON"),
        ("TextIOWrapper", "a TextIOWrapper cannot be written as JSON"),
        ("list", "nested more than 64 deep"),
        ("list", "at /0: NaN and infinities are not numbers of JSON"),
        ("str", "it is larger than 1048576 bytes"),
    ]
    for line, name, (kind, reason) in zip(again, names, expected, strict=True):
        assert line.startswith(f"{name}: {name} happened before, but its result (")
        assert f".{kind}) was not kept:" in line
        assert reason in line
    assert sink.read_text().splitlines() == names
    assert {effect["state"] for effect in effects(service).values()} == {"succeeded"}
    large = effects(service)["large"]["outcome"]["result"]["$opaque"]
    assert (large["size"], len(large["sha256"])) == (2**21 + 2, 64)


def test_a_changed_return_annotation_names_both_types_and_runs_nothing(
    service: ServiceProcess, shop: Shop, sink: Path
) -> None:
    assert shop("change", "Hold").stdout == "Hold(start='noon', id=7)\n"
    assert effects(service)["create_hold"]["outcome"] == {
        "result": {"start": "noon", "id": 7},
        "result_type": "__main__.Hold",
    }
    said = shop("change", "Booking").stdout
    assert (
        "the record holds a __main__.Hold (a dict with the members start, id), the annotation now says Booking: "
        "Object missing required field `room`"
    ) in said
    assert shop("change", "Hold").stdout == "Hold(start='noon', id=7)\n"
    assert sink.read_text().splitlines() == ["create_hold"]


def test_a_result_that_only_the_service_finds_too_large_is_opaque_and_not_replayed(
    service: ServiceProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("twiceshy._results.MAX_BYTES", 2**22)
    value = "x" * 2**21

    def serving(ran: list[int]) -> str:
        with Guard(service.url) as guard, guard.run("shop"):

            @guard.tool
            def fetch() -> str:
                ran.append(1)
                return value

            return fetch()

    ran: list[int] = []
    assert serving(ran) is value
    assert "is not kept: the service refused it" in caplog.text
    with pytest.raises(ResultNotKept, match=r"\(builtins\.str\) was not kept: the service refused it"):
        serving(ran)
    assert ran == [1]
    assert effects(service)["fetch"]["state"] == "succeeded"
