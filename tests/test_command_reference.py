"""The page of the command line is what the commands print, on whatever terminal and machine it is made."""

import importlib
import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_the_command_is_what_the_commands_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TWICESHY_URL", "http://127.0.0.1:9999")
    sys.path.insert(0, str(DOCS))
    try:
        page = importlib.import_module("make_command_reference").command()
    finally:
        sys.path.remove(str(DOCS))
    assert (DOCS / "reference" / "command.md").read_text() == page, "run: python docs/make_command_reference.py"


def test_the_page_names_no_machine_and_has_every_command() -> None:
    page = (DOCS / "reference" / "command.md").read_text()
    assert max(len(line) for line in page.splitlines()) <= 120
    assert not re.search(r"/(home|root|tmp|work|usr)/|9999", page)
    for command in ("serve", "spool drain", "tools declare", "runs finish", "keys preview", "doctor", "completion"):
        assert f"## `twiceshy {command}`" in page
