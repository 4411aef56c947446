"""Holds over HTTP, on both databases: who has a resource, who takes it over, and what the others hear."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

DAY = "2026-10-12T"


@pytest.fixture
def room() -> str:
    """A room that no other test uses."""
    return f"room-{uuid4().hex[:12]}"


def place(service: ServiceProcess, room: str, holder: str, start: str, end: str, /, **fields: object) -> Reply:
    """Place a hold, with a new id unless one is given."""
    body: dict[str, object] = {
        "id": str(uuid4()), "resource": room, "holder": holder, "start": f"{DAY}{start}", "end": f"{DAY}{end}"
    }  # fmt: skip
    sent = {name: value for name, value in (body | fields).items() if value is not None}
    return service.ask("POST", "/v1/holds", sent)


def change(service: ServiceProcess, verb: str, hold: Reply, **fields: object) -> Reply:
    """Commit, release or renew a hold as its holder."""
    body = {"holder": hold.body["holder"]} | fields
    return service.ask("POST", f"/v1/holds/{hold.body['id']}/{verb}", body)


def read(service: ServiceProcess, hold: Reply) -> Any:
    return service.ask("GET", f"/v1/holds/{hold.body['id']}").body


def listed(service: ServiceProcess, query: str) -> list[str]:
    page = service.ask("GET", f"/v1/holds?{query}").body
    return [f"{item['start'][11:16]} {item['holder']} {item['state']}" for item in page["items"]]


def test_a_hold_is_placed_committed_and_released(service: ServiceProcess, room: str) -> None:
    hold = place(service, room, "ann", "14:00:00Z", "14:30:00Z", run="trip-7", priority=2)
    assert hold.status == 201
    assert hold.body["resource"] == room
    assert (hold.body["start"], hold.body["end"]) == (f"{DAY}14:00:00.000000Z", f"{DAY}14:30:00.000000Z")
    assert (hold.body["holder"], hold.body["priority"], hold.body["run"]) == ("ann", 2, "trip-7")
    assert (hold.body["state"], hold.body["key"], hold.body["lost_to"]) == ("held", None, None)
    assert hold.body["expires_at"] is not None
    committed = change(service, "commit", hold)
    assert (committed.status, committed.body["state"], committed.body["expires_at"]) == (200, "committed", None)
    assert change(service, "commit", hold).body["state"] == "committed"
    assert change(service, "renew", hold).body["state"] == "committed"
    assert change(service, "release", hold).body["state"] == "released"
    assert change(service, "release", hold).status == 200
    late = change(service, "commit", hold)
    assert (late.status, late.code) == (409, "hold-lost")
    assert "was released" in late.body["detail"]
    assert place(service, room, "bob", "14:00:00Z", "14:30:00Z").status == 201


def test_whoever_comes_second_hears_who_has_the_time(service: ServiceProcess, room: str) -> None:
    first = place(service, room, "ann", "14:00:00Z", "14:30:00Z")
    second = place(service, room, "bob", "16:29:00+02:00", "16:40:00+02:00", priority=0)
    assert (second.status, second.code) == (409, "resource-held")
    assert second.body["hold"] == {
        name: first.body[name] for name in ("id", "resource", "start", "end", "holder", "priority", "state")
    }
    assert (
        f"ann holds '{room}' from {DAY}14:00:00Z to {DAY}14:30:00Z with priority 0 (hold {first.body['id']}), which "
        f"overlaps from {DAY}14:29:00Z to {DAY}14:40:00Z." in second.body["detail"]
    )
    assert 50 < second.body["retry_after_seconds"] <= 60
    change(service, "commit", first)
    third = place(service, room, "bob", "14:00:00Z", "14:30:00Z", priority=1000)
    assert third.code == "resource-held"
    assert "ann has booked" in third.body["detail"]
    assert "Retry-After".lower() not in third.headers


def test_adjacent_times_and_time_zones(service: ServiceProcess, room: str) -> None:
    assert place(service, room, "ann", "14:00:00Z", "14:30:00Z").status == 201
    assert place(service, room, "bob", "14:30:00Z", "15:00:00Z").status == 201
    assert place(service, room, "cid", "15:30:00+02:00", "16:00:00+02:00").status == 201
    assert place(service, room, "dan", "16:29:59.999999+02:00", "", minutes=1, end=None).code == "resource-held"
    assert listed(service, f"resource={room}") == ["13:30 cid held", "14:00 ann held", "14:30 bob held"]


def test_a_higher_priority_takes_over_and_the_loser_is_told(service: ServiceProcess, room: str) -> None:
    low = place(service, room, "intern", "14:00:00Z", "14:30:00Z")
    also_low = place(service, room, "student", "14:30:00Z", "15:00:00Z", priority=1)
    high = place(service, room, "director", "14:15:00Z", "14:45:00Z", priority=5)
    assert high.status == 201
    for loser in (low, also_low):
        told = change(service, "commit", loser)
        assert (told.status, told.code) == (409, "hold-lost")
        assert f"was taken over by director with priority 5 (hold {high.body['id']})" in told.body["detail"]
        assert change(service, "renew", loser).code == "hold-lost"
        seen = read(service, loser)
        assert seen["state"] == "lost"
        assert seen["lost_to"] == {"id": high.body["id"], "holder": "director", "priority": 5}
        assert change(service, "release", loser).body["state"] == "lost"
    assert listed(service, f"resource={room}&state=lost") == ["14:00 intern lost", "14:30 student lost"]
    assert change(service, "commit", high).status == 200


def test_a_take_over_of_several_happens_whole_or_not_at_all(service: ServiceProcess, room: str) -> None:
    place(service, room, "ann", "14:00:00Z", "14:30:00Z")
    strong = place(service, room, "bob", "14:30:00Z", "15:00:00Z", priority=7)
    refused = place(service, room, "cid", "14:00:00Z", "15:00:00Z", priority=7)
    assert refused.body["hold"]["id"] == strong.body["id"]
    assert listed(service, f"resource={room}") == ["14:00 ann held", "14:30 bob held"]


def test_asking_again_with_the_same_id_is_the_same_hold(service: ServiceProcess, room: str) -> None:
    id_ = str(uuid4())
    first = place(service, room, "ann", "14:00:00Z", "14:30:00Z", id=id_)
    again = place(service, room, "ann", "16:00:00+02:00", "16:30:00+02:00", id=id_)
    assert (first.status, again.status) == (201, 200)
    assert again.body["placed_at"] == first.body["placed_at"]
    other = place(service, room, "ann", "14:00:00Z", "14:31:00Z", id=id_)
    assert (other.status, other.code, other.body["paths"]) == (422, "hold-differs", ["/end"])
    place(service, room, "bob", "14:00:00Z", "14:30:00Z", priority=1)
    assert place(service, room, "ann", "14:00:00Z", "14:30:00Z", id=id_).code == "hold-lost"


def test_nobody_releases_or_commits_the_hold_of_another(service: ServiceProcess, room: str) -> None:
    """The first request deletes the second owner's lock: a change names the hold and its holder (idempotency 13)."""
    first = place(service, room, "ann", "14:00:00Z", "14:30:00Z")
    change(service, "release", first)
    second = place(service, room, "bob", "14:00:00Z", "14:30:00Z")
    assert change(service, "release", first).body["id"] == first.body["id"]
    foreign = change(service, "release", second, holder="ann")
    assert (foreign.status, foreign.code) == (403, "forbidden")
    assert read(service, second)["state"] == "held"


def test_of_many_at_the_same_instant_exactly_one_wins(service: ServiceProcess, room: str) -> None:
    with ThreadPoolExecutor(24) as pool:
        asked = [pool.submit(place, service, room, f"agent-{n}", "14:00:00Z", "14:30:00Z") for n in range(24)]
    replies = [one.result() for one in asked]
    winners = [reply for reply in replies if reply.status == 201]
    assert len(winners) == 1
    assert {reply.code for reply in replies if reply.status != 201} == {"resource-held"}
    assert {reply.body["hold"]["id"] for reply in replies if reply.status != 201} == {winners[0].body["id"]}


def test_of_many_with_different_priorities_the_highest_has_it_in_the_end(service: ServiceProcess, room: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        asked = [
            pool.submit(place, service, room, f"agent-{n}", "14:00:00Z", "14:30:00Z", priority=n) for n in range(16)
        ]
    assert all(one.result().status in (201, 409) for one in asked)
    assert listed(service, f"resource={room}&state=held") == ["14:00 agent-15 held"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"start": "2026-10-12T14:00:00"}, "/start"),
        ({"end": "2026-10-12T14:30:00"}, "/end"),
        ({"start": "2026-10-12"}, "/start"),
        ({"end": "2026-10-12T14:00:00Z"}, "/end"),
        ({"end": "2026-10-12T15:00:00+02:00"}, "/end"),
        ({"end": None}, "/end"),
        ({"minutes": 30}, "/end"),
        ({"end": None, "minutes": 0}, "/minutes"),
        ({"end": None, "minutes": "30"}, "/minutes"),
        ({"start": "0001-01-01T00:00:00+14:00"}, "/start"),
        ({"end": None, "minutes": 5_000_000, "start": "9999-12-31T00:00:00Z"}, "/minutes"),
        ({"resource": ""}, "/resource"),
        ({"resource": "a\u0000b"}, "/resource"),
        ({"holder": None}, "/holder"),
        ({"priority": 1001}, "/priority"),
        ({"hold_seconds": 0.5}, "/hold_seconds"),
        ({"id": "hold-1"}, "/id"),
        ({"room": "1"}, "/room"),
    ],
)
def test_what_is_no_hold_is_refused_with_its_place(
    service: ServiceProcess, room: str, fields: dict[str, object], path: str
) -> None:
    reply = place(service, room, "ann", "14:00:00Z", "14:30:00Z", **fields)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, path)
    assert listed(service, f"resource={room}") == []


def test_what_does_not_exist_and_what_no_listing_understands(service: ServiceProcess, room: str) -> None:
    assert service.ask("GET", f"/v1/holds/{uuid4()}").status == 404
    assert service.ask("GET", "/v1/holds/none").status == 404
    assert service.ask("POST", f"/v1/holds/{uuid4()}/commit", {"holder": "ann"}).status == 404
    for query, path in (("after=x", "/after"), ("from=2026-10-12", "/from"), ("state=gone", "/state")):
        reply = service.ask("GET", f"/v1/holds?{query}")
        assert (reply.status, reply.body["errors"][0]["path"]) == (400, path)


def test_a_listing_shows_what_overlaps_a_time_in_pages(service: ServiceProcess, room: str) -> None:
    for hour in range(10, 15):
        place(service, room, "ann", f"{hour}:00:00Z", f"{hour}:30:00Z")
    query = f"resource={room}&from={DAY}11:30:00Z&to={DAY}14:00:01Z"
    assert listed(service, query) == ["12:00 ann held", "13:00 ann held", "14:00 ann held"]
    page = service.ask("GET", f"/v1/holds?{query}&limit=2").body
    rest = service.ask("GET", f"/v1/holds?{query}&limit=2&after={page['next']}").body
    assert [item["start"][11:13] for item in page["items"] + rest["items"]] == ["12", "13", "14"]
    assert rest["next"] is None
