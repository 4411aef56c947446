"""Tools that claim a resource, over HTTP: the hold of an effect, its loser, and its end."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess

RESOURCE = {"name": "${arguments.room}", "start": "/start", "minutes": "/minutes"}


class Calendar:
    """A tool that books a room of its own, and what stands in the room's calendar."""

    def __init__(self, service: ServiceProcess, **declaration: object) -> None:
        self.service = service
        self.tool = f"book-{uuid4().hex[:12]}"
        self.room = f"room-{uuid4().hex[:12]}"
        declared = {"class": "side_effect", "resource": RESOURCE, "settle_seconds": 0, "backoff_seconds": 0}
        reply = service.ask("PUT", f"/v1/tools/{self.tool}", declared | declaration)
        assert reply.status == 200, reply.body

    def book(self, worker: str, at: str = "14:00", minutes: int = 30, **fields: object) -> Reply:
        """Begin a booking in a run of the worker's own."""
        arguments = {"room": self.room, "start": f"2026-10-12T{at}:00Z", "minutes": minutes, "title": worker}
        return self.service.begin(f"{self.room}-{worker}", self.tool, arguments, worker=worker, **fields)

    def holds(self) -> list[str]:
        """Return what the calendar shows."""
        items = self.service.ask("GET", f"/v1/holds?resource={self.room}").body["items"]
        return [f"{item['start'][11:16]} {item['holder']} {item['state']}" for item in items]

    def hold_of(self, reply: Reply) -> Any:
        """Return the newest hold of an effect."""
        return self.service.ask("GET", f"/v1/holds?key={reply.body['key']}").body["items"][-1]


@pytest.fixture
def calendar(service: ServiceProcess) -> Calendar:
    return Calendar(service)


ERROR = {"type": "Busy", "message": "no"}


def test_success_books_the_time_and_the_next_one_hears_who_has_it(calendar: Calendar) -> None:
    ann = calendar.book("ann")
    assert ann.status == 201
    assert calendar.holds() == ["14:00 ann held"]
    assert (calendar.hold_of(ann)["key"], calendar.hold_of(ann)["run"]) == (ann.body["key"], ann.body["run"])
    bob = calendar.book("bob", "14:15")
    assert (bob.status, bob.code) == (409, "resource-held")
    assert (
        f"Tool '{calendar.tool}' was not begun: ann holds '{calendar.room}' from 2026-10-12T14:00:00Z"
        in (bob.body["detail"])
    )
    assert (bob.body["hold"]["holder"], bob.body["retry_after_seconds"]) == ("ann", 1.0)
    assert calendar.service.report("commit", ann, result="h-1").status == 200
    assert calendar.holds() == ["14:00 ann committed"]
    late = calendar.book("bob", "14:15", priority=1000)
    assert late.code == "resource-held"
    assert "retry_after_seconds" not in late.body
    assert calendar.book("ann").body["decision"] == "replay"
    assert calendar.book("bob", "14:30").status == 201


@pytest.mark.parametrize("kind", ["rejected", "not_applied"])
def test_a_booking_that_was_not_applied_frees_the_time(calendar: Calendar, kind: str) -> None:
    ann = calendar.book("ann")
    assert calendar.service.report("fail", ann, kind=kind, error=ERROR).status == 200
    assert calendar.book("bob").status == 201
    assert sorted(calendar.holds()) == ["14:00 ann released", "14:00 bob held"]


def test_doubt_keeps_the_time_until_it_is_settled(calendar: Calendar) -> None:
    service, ann = calendar.service, calendar.book("ann")
    assert service.report("fail", ann, kind="unknown", error=ERROR).status == 200
    assert calendar.book("bob", priority=9).code == "resource-held"
    refused = service.ask("POST", f"/v1/holds/{calendar.hold_of(ann)['id']}/release", {"holder": "ann"})
    assert (refused.status, refused.code) == (409, "not-possible")
    assert "Settle the effect, then the hold is free" in refused.body["detail"]
    settle = {"as": "not_applied", "fence": 1, "reason": "the calendar shows nothing"}
    assert service.ask("POST", f"/v1/effects/{ann.body['key']}/resolve", settle).status == 200
    assert calendar.book("bob", priority=9).status == 201


def test_a_denied_or_cancelled_booking_frees_the_time(calendar: Calendar) -> None:
    ann = calendar.book("ann")
    calendar.service.report("fail", ann, kind="not_applied", error=ERROR, retry_after=60)
    calendar.service.ask("POST", f"/v1/effects/{ann.body['key']}/cancel", {"reason": "no need"})
    assert calendar.holds() == ["14:00 ann released"]


def test_begin_is_the_same_hold_when_it_comes_again(calendar: Calendar) -> None:
    attempt = str(uuid4())
    first, again = calendar.book("ann", attempt=attempt), calendar.book("ann", attempt=attempt)
    assert (first.status, again.status) == (201, 201)
    assert calendar.book("ann").code == "in-progress"
    assert calendar.holds() == ["14:00 ann held"]


def test_a_loser_that_is_under_way_is_told_at_its_next_renewal(calendar: Calendar) -> None:
    service, low = calendar.service, calendar.book("intern")
    assert service.report("renew", low).status == 200
    high = calendar.book("director", priority=5)
    assert (high.code, high.body["retry_after_seconds"], high.headers["retry-after"]) == ("resource-held", 1.0, "1")
    assert "It is asked to give way" in high.body["detail"]
    told = service.report("renew", low)
    assert (told.status, told.code) == (409, "hold-lost")
    assert "director asks for it with priority 5" in told.body["detail"]
    assert calendar.hold_of(low)["wanted_by"]["holder"] == "director"
    assert service.report("fail", low, kind="not_applied", error=ERROR).status == 200
    assert calendar.book("director", priority=5).status == 201
    lost = calendar.book("intern")
    assert (lost.status, lost.code, lost.body["hold"]["holder"]) == (409, "hold-lost", "director")
    assert "its hold was taken over" in lost.body["detail"]


def test_a_loser_that_had_sent_keeps_its_booking(calendar: Calendar) -> None:
    low = calendar.book("intern")
    calendar.book("director", priority=5)
    assert calendar.service.report("commit", low, result="h-1").status == 200
    refused = calendar.book("director", priority=5)
    assert (refused.code, refused.body["hold"]["state"]) == ("resource-held", "committed")


def test_a_loser_goes_on_where_the_winner_gave_the_time_back(calendar: Calendar) -> None:
    service, low = calendar.service, calendar.book("intern")
    calendar.book("director", priority=5)
    service.report("fail", low, kind="not_applied", error=ERROR)
    high = calendar.book("director", priority=5)
    service.report("fail", high, kind="rejected", error=ERROR)
    assert calendar.book("intern").status == 201


def test_a_booking_that_waits_for_a_person_is_taken_at_once(service: ServiceProcess) -> None:
    calendar = Calendar(service, approval={"four_eyes": False})
    waiting = calendar.book("intern")
    assert (waiting.status, waiting.body["decision"]) == (202, "await_approval")
    assert calendar.hold_of(waiting)["expires_at"] is not None  # nobody's death leaves it for ever
    plain = {
        "id": str(uuid4()), "resource": calendar.room, "holder": "director", "start": "2026-10-12T14:00:00Z",
        "minutes": 30, "priority": 1,
    }  # fmt: skip
    assert service.ask("POST", "/v1/holds", plain).status == 201
    lost = calendar.book("intern")
    assert (lost.code, lost.body["hold"]["holder"]) == ("hold-lost", "director")


def test_of_many_calls_for_one_time_at_the_same_instant_one_executes(calendar: Calendar) -> None:
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(calendar.book, f"agent-{n}") for n in range(16)]
    replies = [one.result() for one in asked]
    assert sorted(reply.status for reply in replies) == [201] + [409] * 15
    assert {reply.code for reply in replies if reply.status == 409} == {"resource-held"}


def test_an_idempotent_booking_may_be_repeated_by_whoever_has_it(service: ServiceProcess) -> None:
    calendar = Calendar(service, **{"class": "idempotent"})
    first = calendar.book("ann")
    service.report("commit", first, result="h-1")
    again = calendar.book("ann", delivered=[first.body["key"]])
    assert (again.status, again.body["generation"]) == (201, 2)
    assert calendar.book("bob").code == "resource-held"


def test_a_single_flight_of_parallel_calls(calendar: Calendar) -> None:
    """The same tool call executed several times while a slow one runs: one executes (frameworks 13)."""
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(calendar.book, "ann") for _ in range(8)]
    replies = [one.result() for one in asked]
    assert sorted(reply.status for reply in replies) == [201] + [409] * 7
    assert {reply.code for reply in replies if reply.status == 409} == {"in-progress"}
    assert calendar.holds() == ["14:00 ann held"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"room": "r", "minutes": 30}, "/arguments/start"),
        ({"room": "r", "start": "2026-10-12T14:00:00", "minutes": 30}, "/arguments/start"),
        ({"room": "r", "start": {"$dt": "2026-10-12T14:00:00"}, "minutes": 30}, "/arguments/start/$dt"),
        ({"room": "r", "start": "2026-10-12T14:00:00Z", "minutes": 0}, "/arguments/minutes"),
        ({"start": "2026-10-12T14:00:00Z", "minutes": 30}, "/arguments"),
    ],
)
def test_arguments_that_name_no_interval_are_refused(
    calendar: Calendar, arguments: dict[str, object], path: str
) -> None:
    reply = calendar.service.begin(calendar.room, calendar.tool, arguments)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, path)


def test_a_tagged_date_time_claims_the_same_moment(calendar: Calendar) -> None:
    arguments = {"room": calendar.room, "start": {"$dt": "2026-10-12T16:00:00+02:00"}, "minutes": 30}
    assert calendar.service.begin(calendar.room, calendar.tool, arguments, worker="ann").status == 201
    assert calendar.book("bob").code == "resource-held"
