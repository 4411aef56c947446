"""POST /v1/outbox: an intent is done by staging its messages, once, under the key and the rules of a begin."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.staging import HOOK, MAIL, act, declared, mail, message, shown, stage, staged
from tests.service import ServiceProcess


def test_an_intent_is_done_by_staging_its_messages(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    sent = message(hook, {"price": {"$dec": "1.50"}}, type="order.created", lane="order-7", headers={"X-A": "b"})
    reply = stage(service, run, sent)
    assert (reply.status, reply.body["decision"], reply.body["state"]) == (201, "staged", "succeeded")
    [id_] = reply.body["messages"]
    effect = service.ask("GET", f"/v1/effects/{reply.body['key']}").body
    assert (effect["outcome"], effect["messages"]) == ({"result": {"staged": [id_]}}, [id_])
    assert effect["ended_at"] == reply.body["committed_at"]
    view = shown(service, id_)
    assert (view["state"], view["epoch"], view["attempts"], view["tries"]) == ("pending", 1, 0, [])
    assert (view["destination"], view["lane"], view["type"]) == (hook, "order-7", "order.created")
    assert (view["key"], view["run"]) == (reply.body["key"], run)
    assert (view["body"], view["content_type"]) == ('{"price":"1.50"}', "application/json")
    assert view["headers"] == {"X-A": "b"}


def test_the_same_key_again_is_answered_from_the_record_and_nothing_is_staged_twice(
    service: ServiceProcess, run: str
) -> None:
    sent, attempt = message(declared(service)), str(uuid4())
    first = stage(service, run, sent, attempt=attempt)
    for again in (stage(service, run, sent, attempt=attempt), stage(service, run, sent)):
        assert (again.status, again.headers["idempotent-replayed"]) == (200, "true")
        assert again.body["outcome"] == {"result": {"staged": first.body["messages"]}}
    assert [line["id"] for line in staged(service, run)] == first.body["messages"]


def test_of_many_who_stage_one_key_at_once_one_does(service: ServiceProcess, run: str) -> None:
    hook, other = declared(service), f"{run}-b"
    with ThreadPoolExecutor(12) as pool:
        asked = [pool.submit(stage, service, name, message(hook)) for _ in range(6) for name in (run, other)]
        replies = [one.result() for one in asked]
    for name in (run, other):
        [line] = staged(service, name)
        mine = [reply for reply in replies if reply.body["run"] == name]
        assert sorted(reply.status for reply in mine) == [200] * 5 + [201]
        ids = {str(reply.body.get("messages") or reply.body["outcome"]["result"]["staged"]) for reply in mine}
        assert ids == {str([line["id"]])}


def test_mail_is_one_message_for_everybody_who_is_sent_a_copy(service: ServiceProcess, run: str) -> None:
    post = declared(service, MAIL)
    service.ask("POST", "/v1/runs", {"run": run, "about": {"agent": "bob"}})
    reply = stage(service, run, mail(post, "a@x.example", "b@x.example", cc=["c@x.example"], thread="t"))
    lines = staged(service, run)
    assert [line["recipient"] for line in lines] == ["a@x.example", "b@x.example", "c@x.example"]
    assert [line["id"] for line in lines] == reply.body["messages"]
    bodies = {shown(service, line["id"])["body"] for line in lines}
    assert len(bodies) == 1
    assert "From: Bob <bob@acme.example>\r\n" in bodies.pop()


def test_mail_without_an_agent_is_from_the_destinations_own_sender(service: ServiceProcess, run: str) -> None:
    reply = stage(service, run, mail(declared(service, MAIL), "a@x.example"))
    assert "From: Desk <desk@acme.example>\r\n" in shown(service, reply.body["messages"][0])["body"]


def test_an_unknown_destination_is_refused_before_anything_is_written(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    reply = stage(service, run, message(hook), message(f"{hook}s"))
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, "/messages/1/destination")
    assert f"did you mean {hook}" in reply.body["detail"]
    assert service.ask("GET", f"/v1/runs/{run}").status == 404
    assert staged(service, run) == []


@pytest.mark.parametrize(
    ("settings", "said", "place"),
    [
        (HOOK, {"mail": {"to": ["a@x.example"], "subject": "s", "text": "t"}}, "/messages/0/destination"),
        (MAIL, {"payload": 1}, "/messages/0/destination"),
        (MAIL, {"mail": {"to": ["a@x.example"], "subject": "s", "html": "", "sender": "e"}}, "/messages/0/destination"),
        (HOOK, {"payload": {"$dec": "x"}}, "/messages/0/payload/$dec"),
        (HOOK, {"payload": {"a": [1, {"$nope": 1}]}}, "/messages/0/payload/a/1/$nope"),
        (HOOK, {"payload": 1, "text": "t"}, "/messages/0"),
        (HOOK, {}, "/messages/0"),
        (MAIL, {"mail": {"to": ["a"], "subject": "s", "text": "t"}}, "/messages/0/mail/to/0"),
        (MAIL, {"mail": {"to": ["a@x.example"], "subject": "a\r\nBcc: b@x", "text": "t"}}, "/messages/0/mail/subject"),
    ],
)  # fmt: skip
def test_what_cannot_be_delivered_as_it_is_meant_is_refused_with_its_place(
    service: ServiceProcess, run: str, settings: dict[str, Any], said: dict[str, Any], place: str
) -> None:
    reply = stage(service, run, {"destination": declared(service, settings)} | said)
    assert (reply.status, reply.code, reply.body["errors"][0]["path"]) == (400, "invalid-request", place)
    assert service.ask("GET", f"/v1/runs/{run}").status == 404


def test_copies_of_mail_count_as_messages(service: ServiceProcess, run: str) -> None:
    post = declared(service, MAIL)
    many = [mail(post, *(f"a{number}@x.example" for number in range(51)), text=f"{part}") for part in range(2)]
    reply = stage(service, run, *many)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, "/messages")
    assert stage(service, run, many[0]).status == 201


def test_the_record_answers_when_its_destination_is_gone(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    first = stage(service, run, message(hook))
    assert act(service, hook, "remove").status == 200
    again = stage(service, run, message(hook))
    assert (again.status, again.body["outcome"]) == (200, {"result": {"staged": first.body["messages"]}})
    new = stage(service, run, message(hook), arguments={"to": "eve"})
    assert (new.status, new.body["errors"][0]["path"]) == (400, "/messages/0/destination")


def test_a_paused_destination_is_staged_for(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    act(service, hook, "pause")
    reply = stage(service, run, message(hook))
    assert (reply.status, shown(service, reply.body["messages"][0])["state"]) == (201, "pending")


def test_keys_are_those_of_a_begin(service: ServiceProcess, run: str) -> None:
    sent, key = message(declared(service)), f"key-{run}"
    first = stage(service, None, sent, business_key=key)
    assert first.status == 201
    call = {"tool": "notify", "arguments": {"to": "bob"}, "attempt": str(uuid4()), "messages": [sent]}
    assert service.ask("POST", "/v1/outbox", call, Idempotency_Key=key).body["key"] == first.body["key"]
    other = stage(service, None, sent, business_key=key, arguments={"to": "eve"})
    assert (other.status, other.code) == (422, "arguments-changed")
    preview = service.ask("POST", "/v1/keys", {"tool": "notify", "arguments": {"to": "bob"}, "business_key": key})
    assert preview.body["key"] == first.body["key"]
    begun = service.ask("POST", "/v1/effects", {name: call[name] for name in call if name != "messages"}
                        | {"business_key": key})  # fmt: skip
    assert (begun.status, begun.body["decision"]) == (200, "replay")


def test_an_intended_repeat_stages_messages_of_its_own(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    first, second = (stage(service, run, message(hook), occurrence=number) for number in (1, 2))
    assert (first.status, second.status, second.body["generation"]) == (201, 201, 2)
    assert first.body["messages"] != second.body["messages"]
    tool = f"again-{run}"
    service.ask("PUT", f"/v1/tools/{tool}", {"repeat": "allow"})
    replies = [stage(service, run, message(hook), tool=tool) for _ in range(3)]
    assert [reply.status for reply in replies] == [201] * 3
    assert len({reply.body["messages"][0] for reply in replies}) == 3


def test_a_finished_run_stages_nothing_new(service: ServiceProcess, run: str) -> None:
    hook = declared(service)
    assert stage(service, run, message(hook)).status == 201
    service.ask("POST", f"/v1/runs/{run}/finish", {})
    refused = stage(service, run, message(hook), arguments={"to": "eve"})
    assert (refused.status, refused.code) == (409, "run-finished")
    assert len(staged(service, run)) == 1


def test_several_are_staged_by_one_batch(service: ServiceProcess, run: str) -> None:
    sent = message(declared(service))
    calls = [{"tool": "notify", "arguments": {"n": number}, "run": run, "attempt": str(uuid4()), "messages": [sent]}
             for number in (1, 2)]  # fmt: skip
    body = {"requests": [{"path": "/v1/outbox", "body": call} for call in calls]}
    answers = service.ask("POST", "/v1/batch", body).body["answers"]
    assert [answer["status"] for answer in answers] == [201, 201]
    assert len(staged(service, run)) == 2
