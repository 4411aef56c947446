"""The page on arguments tells the truth: each row of its tables is run."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from guard.core.normalisers.declared import NORMALISERS, normaliser_of
from twiceshy_contract.canonical import canonical, is_tag
from twiceshy_contract.tools import Normaliser, NormaliserWith

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "arguments.md").read_text()
ROWS = re.findall(
    r"^\| `(?P<said>[^`]+)` \| [^|]+ \| `(?P<written>[^`]+)` \| `(?P<read>[^`]+)` \|$", PAGE, re.MULTILINE
)


@pytest.mark.parametrize(("said", "written", "read"), ROWS)
def test_an_example_is_read_as_the_page_says(said: str, written: str, read: str) -> None:
    normaliser: Normaliser = msgspec.json.decode(said, type=Normaliser)
    assert normaliser_of(normaliser)(json.loads(written)) == json.loads(read)


def test_every_normaliser_has_its_row() -> None:
    said = {str(json.loads(row[0])) if row[0].startswith('"') else next(iter(json.loads(row[0]))) for row in ROWS}
    assert said >= {*NORMALISERS, *NormaliserWith.__struct_fields__}


def test_every_tag_of_the_page_is_one() -> None:
    tags = [json.loads(tag) for tag in re.findall(r"^\| `(\{\"\$[a-z0-9]+\": [^`]+)` \|", PAGE, re.MULTILINE)]
    assert [is_tag(tag) for tag in tags] == [True] * 5
    assert {key for tag in tags for key in tag} == {"$int", "$dec", "$dt", "$b64", "$uuid"}
    assert all(canonical(tag) for tag in tags)
