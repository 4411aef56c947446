"""What operators do with messages: list, read, send again, take back; every word of theirs is done or refused."""

from typing import Any
from uuid import uuid4

import pytest

from tests.integration.staging import MAIL, act, cancel, declared, mail, message, redrive, shown, stage, staged
from tests.service import ServiceProcess

ONE = {"redriven": 1, "left": 0, "reasons": []}


def parked(service: ServiceProcess, run: str, *outbox: dict[str, Any]) -> list[str]:
    """Commit messages for destinations that are not there; return their ids."""
    assert service.report("commit", service.begin(run), result=1, outbox=outbox).status == 200
    lines = staged(service, run)
    assert {line["state"] for line in lines} == {"parked"}
    return [line["id"] for line in lines]


def test_messages_are_listed_by_run_state_and_destination_in_pages(service: ServiceProcess, run: str) -> None:
    one, other = declared(service), declared(service)
    for number, hook in enumerate((one, one, other)):
        stage(service, run, message(hook), arguments={"n": number})
    ids = [line["id"] for line in staged(service, run)]
    assert [line["id"] for line in staged(service, run, destination=one)] == ids[:2]
    cancel(service, ids[0])
    assert [line["id"] for line in staged(service, run)] == ids[1:]
    assert [line["id"] for line in staged(service, run, state="cancelled")] == ids[:1]
    assert staged(service, run, state="dead") == []
    first = service.ask("GET", f"/v1/outbox?run={run}&limit=1").body
    second = service.ask("GET", f"/v1/outbox?run={run}&limit=1&after={first['next']}").body
    assert [page["items"][0]["id"] for page in (first, second)] == ids[:0:-1]


@pytest.mark.parametrize(
    ("query", "place"),
    [("after=x", "/after"), ("state=gone", "/state"), ("limit=0", "/limit"), ("destinaton=x", "/destinaton")],
)
def test_a_listing_that_cannot_be_understood_is_refused(service: ServiceProcess, query: str, place: str) -> None:
    refused = service.ask("GET", f"/v1/outbox?{query}")
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)


def test_what_is_not_there_is_not_found(service: ServiceProcess) -> None:
    for id_ in (str(uuid4()), "nonsense"):
        assert service.ask("GET", f"/v1/outbox/{id_}").status == 404
        assert cancel(service, id_).status == 404
    assert redrive(service, id=str(uuid4())).status == 404


def test_a_message_that_waits_is_taken_back_once(service: ServiceProcess, run: str) -> None:
    [id_] = stage(service, run, message(declared(service))).body["messages"]
    for _ in range(2):
        taken = cancel(service, id_)
        assert (taken.status, taken.body["state"]) == (200, "cancelled")
    assert shown(service, id_)["note"] == "taken back by ann: a test"


def test_what_waits_is_not_sent_again_and_what_is_over_only_anew(service: ServiceProcess, run: str) -> None:
    [id_] = stage(service, run, message(declared(service))).body["messages"]
    for how in ("retry", "anew"):
        refused = redrive(service, how, id=id_)
        assert (refused.status, refused.code) == (409, "message-state")
    cancel(service, id_)
    refused = redrive(service, id=id_)
    assert (refused.status, refused.code) == (409, "message-state")
    assert redrive(service, "anew", id=id_).body == ONE
    view = shown(service, id_)
    assert (view["state"], view["epoch"], view["note"]) == ("pending", 2, "sent again (anew) by ann: a test")


def test_an_unrendered_message_is_rendered_once_its_destination_is_there(service: ServiceProcess, run: str) -> None:
    name = f"later-{run}"
    [id_] = parked(service, run, message(name, {"n": {"$dec": "1.5"}}, lane="a", type="t"))
    refused = redrive(service, id=id_)
    assert (refused.status, refused.code) == (409, "message-state")
    assert f"no destination is named {name!r}" in refused.body["detail"]
    assert service.ask("PUT", f"/v1/destinations/{name}", {"kind": "log"}).status == 200
    assert redrive(service, id=id_).body == ONE
    view = shown(service, id_)
    assert (view["state"], view["body"], view["lane"], view["type"]) == ("pending", '{"n":"1.5"}', "a", "t")
    assert view["key"] == service.ask("GET", f"/v1/effects?run={run}").body["items"][0]["key"]
    assert redrive(service, id=id_).code == "message-state"


def test_a_message_beside_it_keeps_its_own_name(service: ServiceProcess, run: str) -> None:
    name, hook = f"later-{run}", declared(service)
    outbox = [message(hook, "first"), mail(name, "a@x.example", "b@x.example")]
    service.report("commit", service.begin(run), result=1, outbox=outbox)
    first, second = staged(service, run)
    service.ask("PUT", f"/v1/destinations/{name}", MAIL)
    assert redrive(service, id=second["id"]).status == 200
    lines = staged(service, run)
    assert [line["recipient"] for line in lines] == [None, "a@x.example", "b@x.example"]
    assert [line["id"] for line in lines[:2]] == [first["id"], second["id"]]
    assert len({line["id"] for line in lines}) == 3


def test_mail_for_a_destination_that_takes_none_is_refused_with_the_reason(service: ServiceProcess, run: str) -> None:
    [id_] = parked(service, run, mail(declared(service), "a@x.example"))
    refused = redrive(service, id=id_)
    assert (refused.status, refused.code) == (409, "message-state")
    assert "takes no `mail`" in refused.body["detail"]


def test_all_that_is_parked_for_a_destination_is_sent_again(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    stage(service, run, message(hook), message(hook), message(hook))
    act(service, hook, "remove")
    service.report("commit", service.begin(run), result=1, outbox=[message(hook)])
    assert [line["state"] for line in staged(service, run)] == ["parked"] * 4
    service.ask("PUT", f"/v1/destinations/{hook}", {"kind": "log"})
    some = redrive(service, state="parked", destination=hook, limit=2).body
    assert (some["redriven"], some["left"], len(some["reasons"])) == (2, 2, 2)
    assert some["reasons"][0].endswith(" is parked: no more were to be sent at once, or another holds it: ask again.")
    assert redrive(service, state="parked", destination=hook).body == ONE | {"redriven": 2}
    assert [line["state"] for line in staged(service, run)] == ["pending"] * 4
    assert redrive(service, state="parked", destination=hook).body == ONE | {"redriven": 0}


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ({"as": "again", "reason": "r", "state": "dead"}, "/as"),
        ({"as": "retry", "state": "dead"}, "/reason"),
        ({"as": "retry", "reason": "r"}, ""),
        ({"as": "retry", "reason": "r", "state": "pending"}, "/state"),
        ({"as": "retry", "reason": "r", "id": "x"}, "/id"),
    ],
)
def test_a_word_that_cannot_be_understood_is_refused(
    service: ServiceProcess, said: dict[str, object], place: str
) -> None:
    refused = service.ask("POST", "/v1/outbox/redrive", said)
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)


def meter(service: ServiceProcess, name: str, destination: str) -> float | None:
    """Read a meter of a destination."""
    lines = service.ask("GET", "/metrics").body.splitlines()
    start = f'twiceshy_outbox_{name}{{destination="{destination}"}} '
    return next((float(line.removeprefix(start)) for line in lines if line.startswith(start)), None)


def test_what_waits_is_measured_by_destination_and_told_by_the_status(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    stage(service, run, message(hook), message(hook, delay_seconds=60))
    before = service.ask("GET", "/v1/status").body["outbox"]
    parked(service, f"{run}-b", mail(hook, "a@x.example"))
    after = service.ask("GET", "/v1/status").body["outbox"]
    assert after["parked"] - before["parked"] == 1
    assert set(after) == {"pending", "dead", "unknown", "parked", "oldest_pending_seconds"}
    assert [meter(service, name, hook) for name in ("pending", "in_flight", "dead", "unknown")] == [2, 0, 0, 0]
    assert (meter(service, "oldest_pending_seconds", hook) or 0) > 0
    queue = service.ask("GET", f"/v1/destinations/{hook}").body["queue"]
    assert (queue["pending"], queue["parked"]) == (2, 1)
    act(service, hook, "remove")
    assert meter(service, "pending", hook) is None
    assert "twiceshy_staged_total" in service.ask("GET", "/metrics").body
