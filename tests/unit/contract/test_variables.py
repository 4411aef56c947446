"""The settings of the environment: every name is known, or a slip."""

import re
from pathlib import Path

import pytest

from twiceshy_contract.variables import SECRET_PREFIX, VARIABLES, refusal_of_unknown

ROOT = Path(__file__).parents[3]
NAMES = {variable.name for variable in VARIABLES}


def test_an_environment_without_slips_is_taken() -> None:
    assert refusal_of_unknown(["HOME", "TWICE", "_TWICESHY_COMPLETE", "TWICESHY_SECRET_BANK", *NAMES]) is None


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["TWICESHY_TOKNES"],
            "TWICESHY_TOKNES is not a setting; did you mean TWICESHY_TOKENS? Unset it or correct it.",
        ),
        (["TWICESHY_X"], "TWICESHY_X is not a setting. Unset it or correct it."),
        (
            ["TWICESHY_PROT", "TWICESHY_DATABSE", "PATH"],
            (
                "TWICESHY_DATABSE is not a setting; did you mean TWICESHY_DATABASE? TWICESHY_PROT is not a setting; "
                "did you mean TWICESHY_PORT? Unset it or correct it."
            ),
        ),
    ],
)
def test_a_slip_is_refused_with_the_nearest_name(names: list[str], said: str) -> None:
    assert refusal_of_unknown(names) == said


def test_every_name_that_the_code_reads_is_known_and_every_known_name_is_read() -> None:
    sources = [path for room in ("guard", "sdk", "outbox_relay") for path in (ROOT / room).rglob("*.py")]
    read = {
        name
        for path in sources
        if path.name != "variables.py"
        for name in re.findall(r"\"(TWICESHY_(?!SECRET_)[A-Z]+(?:_[A-Z]+)*)\"", path.read_text())
    }
    assert read == {name for name in NAMES if not name.startswith(SECRET_PREFIX)}
