"""A batch: each request is answered as if it had come alone, and none fails another."""

from typing import Any
from uuid import uuid4

import pytest

from tests.service import Reply, ServiceProcess


def begin(run: str, to: str, **fields: object) -> dict[str, object]:
    body: dict[str, object] = {"tool": "pay", "arguments": {"to": to}, "run": run, "attempt": str(uuid4())}
    return {"path": "/v1/effects", "body": body | fields}


def report(verb: str, grant: dict[str, Any], **fields: object) -> dict[str, object]:
    held = {"attempt": grant["attempt"], "fence": grant["fence"]}
    return {"path": f"/v1/effects/{grant['key']}/{verb}", "body": held | fields}


def batch(service: ServiceProcess, *requests: object) -> list[dict[str, Any]]:
    reply = service.ask("POST", "/v1/batch", {"requests": list(requests)})
    assert reply.status == 200, reply
    answers: list[dict[str, Any]] = reply.body["answers"]
    assert len(answers) == len(requests)
    return answers


def test_begins_and_commits_of_a_batch_are_answered_in_their_order(service: ServiceProcess, run: str) -> None:
    granted = batch(service, *(begin(run, f"payee {n}") for n in range(5)))
    assert [(one["status"], one["body"]["decision"]) for one in granted] == [(201, "execute")] * 5
    assert sorted(one["body"]["step"] for one in granted) == [1, 2, 3, 4, 5]

    committed = batch(service, *(report("commit", one["body"], result=n) for n, one in enumerate(granted)))
    assert [(one["status"], one["body"]["outcome"]) for one in committed] == [(200, {"result": n}) for n in range(5)]

    again = batch(service, *(begin(run, f"payee {n}") for n in range(5)))
    assert [one["body"]["outcome"] for one in again] == [{"result": n} for n in range(5)]
    assert {one["body"]["decision"] for one in again} == {"replay"}


def test_of_equal_begins_in_one_batch_one_executes(service: ServiceProcess, run: str) -> None:
    answers = batch(service, *(begin(run, "bob") for _ in range(20)))
    assert sorted(one["status"] for one in answers) == [201] + [409] * 19
    assert {one["body"]["type"] for one in answers if one["status"] == 409} == {"/problems/in-progress"}


def test_a_request_that_cannot_be_taken_fails_no_other(service: ServiceProcess, run: str) -> None:
    answers = batch(
        service,
        begin(run, "bob"),
        begin(run, "eve", occurrence="two"),
        {"path": "/v1/effects", "body": {"tool": "pay"}},
        {"path": f"/v1/effects/{'0' * 64}/commit", "body": {"attempt": str(uuid4()), "fence": 1, "result": 1}},
        {"path": "/v1/effects/nonsense/commit", "body": {"attempt": str(uuid4()), "fence": 1, "result": 1}},
        {"path": "/v1/runs", "body": {"run": run}},
        {"path": "/v1/batch", "body": {"requests": []}},
        begin(run, "zoe", wait_seconds=1),
        begin(run, "mia", arguments={"at": {"$dt": "yesterday"}}),
        begin(run, "tom"),
    )
    assert [one["status"] for one in answers] == [201, 400, 400, 404, 404, 404, 404, 400, 400, 201]
    errors = [one["body"].get("errors", [{}])[0].get("path") for one in answers]
    assert errors == [
        None,
        "/occurrence",
        "/arguments",
        None,
        None,
        None,
        None,
        "/wait_seconds",
        "/arguments/at/$dt",
        None,
    ]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "/requests"),
        ({"requests": []}, "/requests"),
        ({"requests": [{"path": "/v1/effects"}]}, "/requests/0/body"),
        ({"requests": [{"path": 1, "body": {}}]}, "/requests/0/path"),
        ({"requests": [{"path": "/v1/effects", "body": []}]}, "/requests/0/body"),
        ({"requests": [{"path": "/v1/effects", "body": {}, "method": "GET"}]}, "/requests/0/method"),
        ({"requests": [{"path": "/v1/effects", "body": {}}] * 513}, "/requests"),
        (b'{"requests":[{"path":"/v1/effects","body":{"tool":"pay","tool":"refund"}}]}', "/requests/0/body/tool"),
    ],
)
def test_a_batch_that_cannot_be_read_does_nothing_and_says_where(
    service: ServiceProcess, body: object, path: str
) -> None:
    reply = service.ask("POST", "/v1/batch", body)
    assert (reply.status, reply.code) == (400, "invalid-request")
    assert reply.body["errors"][0]["path"].startswith(path)


def test_a_batch_takes_no_key_in_its_header(service: ServiceProcess, run: str) -> None:
    body = {"requests": [begin(run, "bob")]}
    reply = service.ask("POST", "/v1/batch", body, Idempotency_Key="order-7")
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, "/business_key")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/batch", "POST"),
        ("PUT", "/v1/effects", "GET, POST"),
        ("GET", f"/v1/effects/{'0' * 64}/commit", "POST"),
        ("DELETE", f"/v1/effects/{'0' * 64}/renew", "POST"),
    ],
)
def test_a_method_that_a_hot_path_has_not_is_refused_with_those_it_has(
    service: ServiceProcess, method: str, path: str, allowed: str
) -> None:
    reply: Reply = service.ask(method, path)
    assert (reply.status, reply.code, reply.headers["allow"]) == (405, "method-not-allowed", allowed)


def test_every_hot_verb_is_described_where_it_is_served(service: ServiceProcess) -> None:
    paths = service.ask("GET", "/schema/openapi.json").body["paths"]
    about = {path: sorted(item) for path, item in paths.items() if path.startswith(("/v1/effects", "/v1/batch"))}
    assert about == {
        "/v1/batch": ["post"],
        "/v1/effects": ["get", "post"],
        "/v1/effects/release": ["post"],
        "/v1/effects/{key}": ["get"],
        "/v1/effects/{key}/cancel": ["post"],
        "/v1/effects/{key}/commit": ["post"],
        "/v1/effects/{key}/fail": ["post"],
        "/v1/effects/{key}/renew": ["post"],
        "/v1/effects/{key}/reopen": ["post"],
        "/v1/effects/{key}/resolve": ["post"],
    }
    for path in ("/v1/batch", "/v1/effects", f"/v1/effects/{'0' * 64}/fail", f"/v1/effects/{'0' * 64}/renew"):
        assert service.ask("POST", path, {}).status == 400


def test_a_body_as_deep_as_it_may_be_alone_may_be_as_deep_in_a_batch(service: ServiceProcess, run: str) -> None:
    deep: object = 1
    for _ in range(63):
        deep = [deep]
    too_deep = begin(run, "eve", arguments={"at": [deep, [deep]]})
    (granted,) = batch(service, begin(run, "bob", arguments={"at": deep}))
    error = {"type": "Declined", "message": "no", "data": {"at": deep}}
    failed, refused = batch(service, report("fail", granted["body"], kind="rejected", error=error), too_deep)
    assert (failed["status"], refused["status"]) == (200, 400)


def test_a_batch_of_large_replays_lets_the_last_be_asked_for_alone(service: ServiceProcess, run: str) -> None:
    granted = service.begin(run)
    service.report("commit", granted, result="x" * 1_000_000)
    answers = batch(service, *(begin(run, "bob") for _ in range(20)), begin(run, "eve"))
    assert [one["status"] for one in answers] == [200] * 16 + [413] * 4 + [201]
    assert service.begin(run).status == 200
