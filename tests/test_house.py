"""The house: what every room promises, whoever lives in it."""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import twiceshy

ROOT = Path(__file__).parent.parent
CONTRACTS = {
    "the contract is a leaf": ("sdk/twiceshy_contract/names.py", "import guard.core.effects"),
    "the SDK never imports the server": ("sdk/twiceshy/_lease.py", "import guard.core.effects"),
    "the server never imports the SDK": ("guard/service/outcomes.py", "import twiceshy"),
    "the demo is a client": ("guard/demo/__init__.py", "import guard.core.effects"),
    "the rooms of the guard stand in layers": ("guard/core/effects.py", "import guard.ports.store"),
    "web never reaches the store": ("guard/web/instants.py", "import guard.store.sql.engine"),
    "the relay never reaches service, web or app": ("outbox_relay/__init__.py", "import guard.service.outcomes"),
    "the core is pure": ("guard/core/lease.py", "import random"),
}


def project(path: str) -> dict[str, object]:
    table: dict[str, object] = tomllib.loads((ROOT / path).read_text())["project"]
    return table


def test_the_two_distributions_have_one_version() -> None:
    assert project("pyproject.toml")["version"] == project("sdk/pyproject.toml")["version"]


def test_the_face_of_the_sdk_is_sorted_and_complete() -> None:
    assert twiceshy.__all__ == sorted(twiceshy.__all__)
    public = {name for name in vars(twiceshy) if not name.startswith("_")}
    inner = {module.name for module in pkgutil.iter_modules(twiceshy.__path__)}
    assert set(twiceshy.__all__) == public - inner


def modules(*rooms: str) -> list[Path]:
    found = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]


def named(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def test_every_module_says_what_it_is_for() -> None:
    rooms = modules("guard", "sdk", "outbox_relay", "bench", "examples", "migrations")
    assert named([path for path in rooms if not ast.get_docstring(ast.parse(path.read_text()))]) == []


def test_no_file_has_outgrown_its_room() -> None:
    rooms = modules("guard", "sdk", "outbox_relay", "bench", "examples", "tests")
    assert named([path for path in rooms if len(path.read_text().splitlines()) > 320]) == []


def test_nothing_is_promised_and_left_undone() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|type: ignore|pytest\.skip|xfail)\b")
    rooms = modules("guard", "sdk", "outbox_relay", "bench", "examples", "migrations")
    assert named([path for path in rooms if words.search(path.read_text())]) == []


def test_no_test_is_skipped_where_a_service_is_missing() -> None:
    words = re.compile(r"\b(pytest\.(skip|xfail|importorskip)|mark\.(skip|xfail))\b")
    assert named([path for path in modules("tests") if words.search(path.read_text())]) == []


@pytest.mark.parametrize("name", CONTRACTS)
def test_an_import_against_the_arrows_is_found(name: str, tmp_path: Path) -> None:
    path, forbidden = CONTRACTS[name]
    sdk = ("sdk/twiceshy", "sdk/twiceshy_command", "sdk/twiceshy_contract", "sdk/twiceshy_pytest")
    for room in ("guard", "outbox_relay", *sdk):
        _copy_modules(ROOT / room, tmp_path / room)
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    with (tmp_path / path).open("a") as module:
        module.write(f"\n{forbidden}\n")
    command = [
        sys.executable,
        "-c",
        "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())",
    ]
    environment = {"PYTHONPATH": f"{tmp_path}:{tmp_path / 'sdk'}", "PATH": ""}
    found = subprocess.run(
        [*command, "--no-cache"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1, found.stdout + found.stderr
    broken = [line for line in found.stdout.splitlines() if line.endswith("BROKEN")]
    assert any(line.startswith(name) for line in broken), found.stdout


def _copy_modules(source: Path, target: Path) -> None:
    for path in source.rglob("*.py"):
        copied = target / path.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_text(path.read_text())


def test_the_reference_pages_are_those_that_the_code_prints() -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        pages = importlib.import_module("make_reference").PAGES
    finally:
        sys.path.remove(str(ROOT / "docs"))
    for name, page in pages.items():
        assert (ROOT / "docs" / "reference" / name).read_text() == page(), (
            f"run: python docs/make_reference.py ({name})"
        )


def test_the_pins_name_no_place_to_download_from() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line) for line in lines)
