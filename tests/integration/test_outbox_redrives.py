"""What is sent again all at once: in the order of its staging, and what is left is told with the reason."""

from typing import Any
from uuid import uuid4

from tests.integration.staging import HOOK, MAIL, act, declared, mail, message, redrive, shown, stage, staged
from tests.service import ServiceProcess


def line(service: ServiceProcess, name: str) -> float | None:
    """Read how many are parked of a destination, by the meter."""
    start = f'twiceshy_outbox_parked{{destination="{name}"}} '
    lines = service.ask("GET", "/metrics").body.splitlines()
    return next((float(one.removeprefix(start)) for one in lines if one.startswith(start)), None)


def test_a_lane_that_could_not_be_rendered_keeps_its_order_when_all_is_sent_again(
    service: ServiceProcess, run: str
) -> None:
    name, effects = f"later-{run}", range(1, 5)
    for n in effects:
        outbox = [message(name, {"n": n}, lane="a", type=f"m{n}")]
        service.report("commit", service.begin(run, arguments={"n": n}), result=1, outbox=outbox)
    service.ask("PUT", f"/v1/destinations/{name}", HOOK)
    behind = stage(service, run, message(name, lane="a", type="m5")).body["messages"]
    assert redrive(service, state="parked", destination=name, limit=3).body["redriven"] == 3
    assert redrive(service, state="parked", destination=name).body["redriven"] == 1
    lines = staged(service, run)
    assert [(one["type"], one["state"]) for one in lines] == [(f"m{n}", "pending") for n in (1, 2, 3, 4, 5)]
    assert lines[-1]["id"] == behind[0]


def test_a_lane_of_which_only_some_were_rendered_goes_in_its_order(service: ServiceProcess, run: str) -> None:
    name = f"later-{run}"
    service.ask("PUT", f"/v1/destinations/{name}", HOOK)
    for n, taken in ((1, False), (2, True), (3, False)):
        outbox = [mail(name, "a@x.example") | {"lane": "a"} if taken else message(name, {"n": n}, lane="a")]
        service.report("commit", service.begin(run, arguments={"n": n}), result=1, outbox=outbox)
    act(service, name, "remove")
    assert [one["state"] for one in staged(service, run)] == ["parked"] * 3
    service.ask("PUT", f"/v1/destinations/{name}", HOOK)
    told = redrive(service, state="parked", destination=name).body
    first, second, third = staged(service, run)
    assert (told["redriven"], told["left"]) == (2, 1)
    [reason] = told["reasons"]
    assert reason.startswith(f"Message {second['id']} to {name} could not be rendered when it was staged, and still")
    assert "takes no `mail`" in reason
    assert [first["state"], second["state"], third["state"]] == ["pending", "parked", "pending"]


def test_what_is_parked_for_no_destination_is_counted_and_told(service: ServiceProcess, run: str) -> None:
    name = f"later-{run}"
    service.report("commit", service.begin(run), result=1, outbox=[message(name), message(name)])
    assert service.ask("GET", "/v1/destinations").body["undeclared"][name]["parked"] == 2
    assert (line(service, "(undeclared)") or 0) >= 2
    told = redrive(service, state="parked", destination=name).body
    assert (told["redriven"], told["left"]) == (0, 2)
    assert [f"no destination is named {name!r}" in reason for reason in told["reasons"]] == [True, True]
    service.ask("PUT", f"/v1/destinations/{name}", MAIL)
    assert name not in service.ask("GET", "/v1/destinations").body["undeclared"]
    assert service.ask("GET", f"/v1/destinations/{name}").body["queue"]["parked"] == 2
    assert line(service, name) == 2


def taken_back(service: ServiceProcess, run: str, *messages: dict[str, Any]) -> list[str]:
    """Stage in a saga that fails, and take its effect back; return the ids."""
    tool, undo, saga = f"do-{run}", f"undo-{run}", f"saga-{run}"
    service.ask("PUT", f"/v1/tools/{undo}", {})
    service.ask("PUT", f"/v1/tools/{tool}", {"compensation": {"tool": undo, "arguments": {"x": 1}}})
    service.ask("POST", "/v1/runs", {"run": run})
    service.ask("POST", "/v1/sagas", {"saga": saga, "run": run})
    staged_now = stage(service, run, *messages, tool=tool, saga=saga)
    assert staged_now.status == 201, staged_now.body
    key = staged_now.body["key"]
    assert service.ask("POST", f"/v1/sagas/{saga}/fail", {"reason": "no"}).status == 200
    call = {"tool": undo, "arguments": {"x": 1}, "run": run, "attempt": str(uuid4()), "saga": saga}
    grant = service.ask("POST", "/v1/effects", call | {"compensates": key, "step": f"compensate:{key}"})
    assert service.report("commit", grant, result=1).status == 200
    assert service.ask("POST", f"/v1/sagas/{saga}/next", {}).status == 200
    ids: list[str] = staged_now.body["messages"]
    return ids


def test_a_message_whose_effect_was_taken_back_is_sent_again_only_anew(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    first, second = taken_back(service, run, message(hook), message(hook))
    act(service, hook, "remove")
    service.ask("PUT", f"/v1/destinations/{hook}", HOOK)
    refused = redrive(service, id=first)
    assert (refused.status, refused.code) == (409, "message-state")
    assert "its effect was taken back: send it `anew`" in refused.body["detail"]
    told = redrive(service, state="parked", destination=hook).body
    assert (told["redriven"], told["left"]) == (0, 2)
    assert ["its effect was taken back" in reason for reason in told["reasons"]] == [True, True]
    assert redrive(service, "anew", state="parked", destination=hook).body["redriven"] == 2
    assert [(shown(service, id_)["state"], shown(service, id_)["epoch"]) for id_ in (first, second)] == [
        ("pending", 2)
    ] * 2
