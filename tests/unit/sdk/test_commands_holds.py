"""`twiceshy holds`: who has which resource, on the command line."""

import msgspec
import pytest

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.scripted import answered, problem

HOLD_ID = "00000000-0000-4000-8000-000000000001"
RIVAL = {"id": "00000000-0000-4000-8000-000000000002", "holder": "director", "priority": 5}
HOLD = {
    "id": HOLD_ID, "resource": "room-1", "start": "2026-10-12T14:00:00.000000Z", "end": "2026-10-12T14:30:00.000000Z",
    "holder": "ann", "priority": 2, "state": "held", "as_of": "2026-10-01T00:00:00.000000Z", "run": None, "key": None,
    "placed_at": "2026-10-01T00:00:00.000000Z", "expires_at": "2026-10-01T00:01:00.000000Z", "ended_at": None,
    "lost_to": None, "wanted_by": None,
}  # fmt: skip


def test_holds_are_listed_by_resource_and_time() -> None:
    asked: Asked = []
    wanted = {**HOLD, "wanted_by": RIVAL}
    handler = answering(asked, lambda *_: answered(200, {"items": [HOLD, wanted], "next": "x"}))
    result = run(
        handler, "holds", "list", "--resource", "room 1", "--state", "held", "--from", "2026-10-12T14:00:00+02:00",
        "--to", "2026-10-13T00:00:00Z", "--limit", "2",
    )  # fmt: skip
    times = "from=2026-10-12T14%3A00%3A00%2B02%3A00&to=2026-10-13T00%3A00%3A00Z"
    assert asked == [("GET", f"/v1/holds?resource=room+1&state=held&{times}&limit=2", None)]
    lines = [line.split() for line in result.output.splitlines()]
    assert lines[1] == [
        "room-1", "2026-10-12T14:00:00Z", "2026-10-12T14:30:00Z", "held", "ann", "2", "-", HOLD_ID,
    ]  # fmt: skip
    assert " ".join(lines[2][3:7]) == "held (wanted by director)"
    assert "There are more" in result.output


def test_no_holds_say_so_and_json_is_the_services() -> None:
    empty = answered(200, {"items": [], "next": None})
    assert run(answering([], lambda *_: empty), "holds", "list").output == "No holds.\n"
    listed = run(answering([], lambda *_: empty), "holds", "list", "--json")
    assert msgspec.json.decode(listed.output) == {"items": [], "next": None}


def test_a_hold_is_shown_with_who_took_it_over() -> None:
    lost = {**HOLD, "state": "lost", "lost_to": RIVAL, "key": "ab" * 32}
    result = run(answering([], lambda *_: answered(200, lost)), "holds", "show", HOLD_ID)
    assert f"lost to   director with priority 5 (hold {RIVAL['id']})" in result.output
    assert "ab" * 32 in result.output
    shown = run(answering([], lambda *_: answered(200, lost)), "holds", "show", HOLD_ID, "--json")
    assert msgspec.json.decode(shown.output) == lost


def test_a_hold_is_released_in_the_name_of_its_holder() -> None:
    asked: Asked = []
    released = {**HOLD, "state": "released"}
    handler = answering(asked, lambda method, _: answered(200, HOLD if method == "GET" else released))
    result = run(handler, "holds", "release", HOLD_ID)
    assert asked[1] == ("POST", f"/v1/holds/{HOLD_ID}/release", {"holder": "ann"})
    assert result.output.startswith(f"Hold {HOLD_ID} of ann is released: room-1 is free from 2026-10-12T14:00:00")
    again = run(answering([], lambda *_: answered(200, released)), "holds", "release", HOLD_ID, "--json")
    assert msgspec.json.decode(again.output) == released


def test_what_the_service_refuses_is_one_sentence() -> None:
    refused = problem("not-possible", 409, detail="The hold cannot be released: settle the effect.")
    handler = answering([], lambda method, _: answered(200, HOLD) if method == "GET" else refused)
    result = run(handler, "holds", "release", HOLD_ID)
    assert result.exit_code == 1
    assert "settle the effect" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "room-1"), "not a valid UUID"),
        (("list", "--from", "2026-10-12"), "no date-time with its zone"),
        (("list", "--to", "soon"), "no date-time with its zone"),
        (("list", "--state", "gone"), "is not one of"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_once(words: tuple[str, ...], said: str) -> None:
    result = run(answering([], lambda *_: answered(500, {})), "holds", *words)
    assert result.exit_code == 2
    assert said in result.output
