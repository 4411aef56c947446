"""What a commit stages: in its transaction, once, however late the proof comes and whoever brings it."""

from typing import Any

import pytest

from tests.integration.forks import Recorded, until
from tests.integration.staging import HOOK, MAIL, act, declared, mail, message, shown, staged
from tests.service import Reply, ServiceProcess

ERROR = {"type": "Lost", "message": "no answer"}


def states(service: ServiceProcess, run: str) -> list[str]:
    """Return the states of a run's messages, in the order of their staging."""
    return [line["state"] for line in staged(service, run)]


def effect(service: ServiceProcess, grant: Reply) -> Any:
    """Read an effect."""
    return service.ask("GET", f"/v1/effects/{grant.body['key']}").body


def in_doubt(service: ServiceProcess, run: str, **fields: Any) -> Reply:
    """Begin, and report that nobody knows."""
    grant = service.begin(run, **fields)
    assert service.report("fail", grant, kind="unknown", error=ERROR).body["state"] == "in_doubt"
    return grant


def resolved(service: ServiceProcess, grant: Reply, how: str = "applied", **said: Any) -> Reply:
    """Settle an effect."""
    word = {"as": how, "fence": grant.body["fence"], "reason": "seen at the provider"}
    return service.ask("POST", f"/v1/effects/{grant.body['key']}/resolve", word | said)


def test_a_commit_stages_with_its_outcome_and_in_its_order(service: ServiceProcess, run: str) -> None:
    hook, post = declared(service), declared(service, MAIL)
    grant = service.begin(run)
    outbox = [message(hook, 1), mail(post, "a@x.example", "b@x.example"), {"destination": hook, "text": "plain"}]
    assert service.report("commit", grant, result=7, outbox=outbox).status == 200
    lines = staged(service, run)
    assert [(line["destination"], line["recipient"]) for line in lines] == [
        (hook, None), (post, "a@x.example"), (post, "b@x.example"), (hook, None)
    ]  # fmt: skip
    assert {(line["key"], line["state"]) for line in lines} == {(grant.body["key"], "pending")}
    assert effect(service, grant)["messages"] == [line["id"] for line in lines]
    assert (shown(service, lines[3]["id"])["body"], effect(service, grant)["outcome"]) == ("plain", {"result": 7})


def test_mail_of_a_commit_is_from_the_agent_of_its_run(service: ServiceProcess, run: str) -> None:
    post = declared(service, MAIL)
    service.ask("POST", "/v1/runs", {"run": run, "about": {"agent": "bob"}})
    service.report("commit", service.begin(run), result=1, outbox=[mail(post, "a@x.example")])
    assert "From: Bob <bob@acme.example>" in shown(service, staged(service, run)[0]["id"])["body"]


def test_a_repeated_commit_stages_once(service: ServiceProcess, run: str) -> None:
    grant, outbox = service.begin(run), [message(declared(service))]
    first = service.report("commit", grant, result=1, outbox=outbox)
    assert service.report("commit", grant, result=1, outbox=outbox).body == first.body
    assert service.report("commit", grant, result=1, outbox=[*outbox, *outbox]).body == first.body
    assert states(service, run) == ["pending"]


def test_a_commit_that_staged_nothing_can_still_be_followed_by_its_messages(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("commit", grant, result=1)
    for _ in range(2):
        assert service.report("commit", grant, result=1, outbox=[message(declared(service))]).status == 200
        assert states(service, run) == ["pending"]


@pytest.mark.parametrize("stale", [{"fence": 2}, {"attempt": "00000000-0000-4000-8000-000000000000"}])
def test_who_never_held_the_lease_stages_nothing(service: ServiceProcess, run: str, stale: dict[str, Any]) -> None:
    grant = service.begin(run)
    refused = service.report("commit", grant, result=1, outbox=[message(declared(service))], **stale)
    assert (refused.status, refused.code, staged(service, run)) == (409, "lease-lost", [])


def test_late_proof_attaches_its_messages_once(service: ServiceProcess, run: str) -> None:
    grant, outbox = in_doubt(service, run), [message(declared(service))]
    for _ in range(2):
        assert service.report("commit", grant, result=1, outbox=outbox).body["state"] == "succeeded"
        assert states(service, run) == ["pending"]


def test_proof_that_comes_too_late_parks_what_is_stale_by_then(service: ServiceProcess, run: str) -> None:
    hook, tool = declared(service), f"slow-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"lease_seconds": 1})
    grant = service.begin(run, tool)
    until(lambda: effect(service, grant)["state"], "in_doubt")
    outbox = [message(hook, not_after_seconds=0), message(hook, lane="a", not_after_seconds=0), message(hook)]
    assert service.report("commit", grant, result=1, outbox=outbox).body["state"] == "succeeded"
    assert states(service, run) == ["parked", "parked", "pending"]
    assert "too late" in staged(service, run)[0]["note"]


def test_the_attempt_that_an_operator_spoke_for_attaches_its_messages(service: ServiceProcess, run: str) -> None:
    grant, outbox = in_doubt(service, run), [message(declared(service))]
    resolved(service, grant)
    for _ in range(2):
        answer = service.report("commit", grant, result="late", outbox=outbox)
        assert (answer.status, states(service, run)) == (409, ["pending"])


def test_an_earlier_attempt_of_an_idempotent_tool_attaches_its_messages(service: ServiceProcess, run: str) -> None:
    hook, tool = declared(service), f"put-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"class": "idempotent", "backoff_seconds": 0})
    first = service.begin(run, tool)
    service.report("fail", first, kind="unknown", error=ERROR)
    second = service.begin(run, tool)
    assert (second.status, second.body["fence"]) == (201, 2)
    assert service.report("commit", second, result=1, outbox=[message(hook, "second")]).status == 200
    service.report("commit", first, result=1, outbox=[message(hook, "first")])
    [line] = staged(service, run)
    assert shown(service, line["id"])["body"] == '"second"'


def test_what_was_rejected_stages_nothing_whoever_says_it_was_done(service: ServiceProcess, run: str) -> None:
    grant = service.begin(run)
    service.report("fail", grant, kind="rejected", error=ERROR)
    refused = service.report("commit", grant, result=1, outbox=[message(declared(service))])
    assert (refused.status, refused.code, staged(service, run)) == (409, "superseded", [])


def test_no_outcome_is_lost_for_a_message_that_cannot_be_rendered(service: ServiceProcess, run: str) -> None:
    hook, gone = declared(service), declared(service)
    act(service, gone, "remove")
    grant = service.begin(run)
    outbox = [message("nowhere-at-all"), mail(hook, "a@x.example"), message(gone), message(hook)]
    assert service.report("commit", grant, result=1, outbox=outbox).body["state"] == "succeeded"
    lines = staged(service, run)
    assert [line["state"] for line in lines] == ["parked", "parked", "parked", "pending"]
    notes = ["no destination is named 'nowhere-at-all'", "takes no `mail`", f"no destination is named {gone!r}"]
    assert [said in line["note"] for said, line in zip(notes, lines, strict=False)] == [True] * 3


@pytest.mark.parametrize(
    ("outbox", "place"),
    [
        ([{"destination": "x", "payload": {"$dec": "x"}}], "/outbox/0/payload/$dec"),
        ([{"destination": "x"}], "/outbox/0"),
        ([{"destination": "", "payload": 1}], "/outbox/0/destination"),
        ([{"destination": "x", "payload": 1}] * 101, "/outbox"),
        ([mail("x", *(f"a{n}@x.example" for n in range(60)))] * 2, "/outbox"),
    ],
)
def test_what_no_destination_could_take_is_refused_like_a_result_that_is_none(
    service: ServiceProcess, run: str, outbox: list[dict[str, Any]], place: str
) -> None:
    grant = service.begin(run)
    refused = service.report("commit", grant, result=1, outbox=outbox)
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)
    assert (effect(service, grant)["state"], staged(service, run)) == ("executing", [])


def test_what_a_fork_commits_stages_only_for_a_person_to_look_at(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    made = Recorded(service, run)
    made.declare()
    fork = made.fork_of_nothing([{"tool": made.tool}])
    made.decide(made.call(fork, {"to": "eve"}))
    grant = made.call(fork, {"to": "eve"})
    assert service.report("commit", grant, result=1, outbox=[message(hook, lane="a"), message(hook)]).status == 200
    assert states(service, fork) == ["parked", "parked"]
    assert "fork" in staged(service, fork)[0]["note"]


def test_who_settles_doubt_as_applied_may_stage(service: ServiceProcess, run: str) -> None:
    grant, outbox = in_doubt(service, run), [message(declared(service), not_after_seconds=0)]
    first = resolved(service, grant, outbox=outbox)
    assert (first.status, states(service, run)) == (200, ["pending"])
    assert (resolved(service, grant, outbox=outbox).body, states(service, run)) == (first.body, ["pending"])


def test_who_settles_doubt_corrects_what_cannot_be_staged(service: ServiceProcess, run: str) -> None:
    grant, hook = in_doubt(service, run), declared(service, HOOK)
    for how, outbox, place in (
        ("applied", [message(hook), message("nowhere-at-all")], "/outbox/1/destination"),
        ("applied", [mail(hook, "a@x.example")], "/outbox/0/destination"),
        ("not_applied", [message(hook)], "/outbox"),
    ):
        refused = resolved(service, grant, how, outbox=outbox)
        assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)
    assert (effect(service, grant)["state"], staged(service, run)) == ("in_doubt", [])
    resolved(service, grant)
    late = resolved(service, grant, outbox=[message(hook)])
    assert (late.status, late.code, staged(service, run)) == (409, "not-possible", [])
