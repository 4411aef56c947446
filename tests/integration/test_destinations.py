"""/v1/destinations: declared, read, paused, resumed, removed; what nothing could be delivered by is refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.staging import HOOK, MAIL, act, declared, message, shown, stage
from tests.service import ServiceProcess
from twiceshy_contract.wire import CONTRACT_VERSION


def test_a_destination_is_declared_once_for_equal_settings(service: ServiceProcess) -> None:
    name = f"hook-{uuid4().hex[:8]}"
    first = service.ask("PUT", f"/v1/destinations/{name}", HOOK)
    assert (first.status, first.body["version"], first.body["state"]) == (200, 1, "active")
    assert first.body["settings"]["url"] == HOOK["url"]
    assert service.ask("PUT", f"/v1/destinations/{name}", HOOK | {"concurrency": 8}).body["version"] == 1
    assert service.ask("PUT", f"/v1/destinations/{name}", HOOK | {"concurrency": 9}).body["version"] == 2
    assert service.ask("GET", f"/v1/destinations/{name}").body["settings"]["concurrency"] == 9
    names = [item["name"] for item in service.ask("GET", "/v1/destinations").body["items"]]
    assert (names.count(name), names) == (1, sorted(names))


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({}, "/kind"),
        ({"kind": "webhok", "url": "https://x.example"}, "/kind"),
        ({"kind": "webhook"}, "/url"),
        (HOOK | {"ulr": "x"}, "/ulr"),
        (HOOK | {"url": "ftp://x.example"}, "/url"),
        (HOOK | {"url": "https://:80/x"}, "/url"),
        (HOOK | {"url": "https://x.example:99999"}, "/url"),
        (HOOK | {"url": "https://u:p@x.example"}, "/url"),
        (HOOK | {"secrets": ["env:HOME"]}, "/secrets/0"),
        (HOOK | {"headers": {"Host": "x"}}, "/headers/Host"),
        (HOOK | {"headers": {"Authorization": "Bearer x"}}, "/headers/Authorization"),
        (HOOK | {"url": "https://x.example/?access_token=x"}, "/url"),
        (HOOK | {"events": ["approval.asked"]}, "/events/0"),
        (MAIL | {"sender": "nobody"}, "/sender"),
        (MAIL | {"senders": {"bob": "nobody"}}, "/senders/bob"),
        (MAIL | {"username": "u"}, "/password"),
        (MAIL | {"events": ["approval.requested"]}, "/events"),
        ({"kind": "redis", "url": "redis://:secret@x.example", "stream": "s"}, "/url"),
        ({"kind": "nats", "servers": ["nats://a.example", "http://b.example"], "subject": "s"}, "/servers/1"),
        ({"kind": "rabbitmq", "url": "https://x.example", "routing_key": "q"}, "/url"),
        ({"kind": "kafka", "servers": [], "topic": "t"}, "/servers"),
    ],
)
def test_settings_that_nothing_could_be_delivered_by_are_refused_with_their_place(
    service: ServiceProcess, settings: dict[str, Any], place: str
) -> None:
    name = f"bad-{uuid4().hex[:8]}"
    refused = service.ask("PUT", f"/v1/destinations/{name}", settings)
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, place)
    assert service.ask("GET", f"/v1/destinations/{name}").status == 404


def test_a_dry_run_says_what_would_be_refused_and_declares_nothing(service: ServiceProcess) -> None:
    name = f"dry-{uuid4().hex[:8]}"
    checked = service.ask("PUT", f"/v1/destinations/{name}?dry_run=true", HOOK)
    assert (checked.status, checked.body["name"], checked.body["settings"]["url"]) == (200, name, HOOK["url"])
    refused = service.ask("PUT", f"/v1/destinations/{name}?dry_run=true", MAIL | {"sender": "nobody"})
    assert (refused.status, refused.body["errors"][0]["path"]) == (400, "/sender")
    assert service.ask("PUT", f"/v1/destinations/{name}?dry=true", HOOK).body["errors"][0]["path"] == "/dry"
    assert service.ask("GET", f"/v1/destinations/{name}").status == 404


def test_a_reason_that_says_nothing_is_refused(service: ServiceProcess) -> None:
    name = declared(service)
    refused = service.ask("POST", f"/v1/destinations/{name}/pause", {"reason": " \n "})
    assert (refused.status, refused.body["errors"][0]) == (
        400,
        {"path": "/reason", "message": "say why, in words: this is blank, or has a null character"},
    )


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("POST", "/v1/effects", {}), ("POST", "/v1/outbox", {}), ("GET", "/v1/outbox", None), ("GET", "/nowhere", None)],
)
def test_every_answer_says_which_contract_the_service_speaks(
    service: ServiceProcess, method: str, path: str, body: object
) -> None:
    assert service.ask(method, path, body).headers["twiceshy-contract"] == str(CONTRACT_VERSION)


def test_a_name_that_is_none_is_refused(service: ServiceProcess) -> None:
    refused = service.ask("PUT", "/v1/destinations/a%20b", HOOK)
    assert (refused.status, refused.code) == (400, "invalid-request")


def test_a_destination_is_paused_and_resumed_with_the_reason(service: ServiceProcess) -> None:
    name = declared(service)
    for what, state, note in (
        ("pause", "paused", "paused by ann: a test"),
        ("resume", "active", "resumed by ann: a test"),
    ):
        moved = act(service, name, what)
        assert (moved.status, moved.body["state"], moved.body["note"]) == (200, state, note)
    assert act(service, name, "stop").status == 404
    assert service.ask("POST", f"/v1/destinations/{name}/pause", {}).body["errors"][0]["path"] == "/reason"


def test_a_removed_destination_parks_what_waits_and_can_be_declared_again(service: ServiceProcess, run: str) -> None:
    name = declared(service)
    [id_] = stage(service, run, message(name)).body["messages"]
    assert act(service, name, "remove").body["state"] == "removed"
    assert shown(service, id_)["state"] == "parked"
    for answer in (service.ask("GET", f"/v1/destinations/{name}"), act(service, name, "resume")):
        assert (answer.status, answer.code) == (404, "not-found")
    assert name not in [item["name"] for item in service.ask("GET", "/v1/destinations").body["items"]]
    again = service.ask("PUT", f"/v1/destinations/{name}", HOOK)
    assert (again.status, again.body["state"]) == (200, "active")


def test_what_is_not_there_is_not_found_and_what_is_near_is_named(service: ServiceProcess) -> None:
    name = declared(service)
    for answer in (service.ask("GET", f"/v1/destinations/{name}x"), act(service, f"{name}x", "pause")):
        assert (answer.status, f"did you mean {name}?" in answer.body["detail"]) == (404, True)
    assert service.ask("POST", f"/v1/destinations/{name}x/check").status == 404


def test_a_destination_is_reached_from_the_service_without_delivering_anything(
    service: ServiceProcess, run: str
) -> None:
    log, hook = Path(f"{run}.jsonl"), declared(service, {"kind": "webhook", "url": "http://127.0.0.1:9/x"})
    [id_] = stage(service, run, message(hook)).body["messages"]
    for name, ok in ((declared(service, {"kind": "log", "path": str(log)}), True), (hook, False)):
        seen = service.ask("POST", f"/v1/destinations/{name}/check")
        assert (seen.status, seen.body["ok"], seen.body["milliseconds"] >= 0) == (200, ok, True)
        assert seen.body["detail"]
    assert (shown(service, id_)["state"], log.exists()) == ("pending", False)


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"kind": "log", "path": "/etc/messages.jsonl"}, "TWICESHY_RELAY_FILES"),
        (HOOK | {"secret_headers": {"Authorization": "file:/proc/self/environ"}}, "TWICESHY_SECRET_FILES"),
        (
            {"kind": "smtp", "host": "127.0.0.1", "port": 9, "sender": "a@b.example", "security": "none"},
            "TWICESHY_RELAY_ALLOW=127.0.0.1/32",
        ),
    ],
)
def test_a_destination_reaches_no_further_than_an_operator_lets_it(
    service: ServiceProcess, settings: dict[str, object], seen: str
) -> None:
    answer = service.ask("POST", f"/v1/destinations/{declared(service, settings)}/check").body
    assert (answer["ok"], seen in answer["detail"]) == (False, True)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that knows an agent and an approver by their tokens."""
    folder: Path = tmp_path_factory.mktemp("destinations")
    url = f"sqlite:///{folder / 'guard.db'}"
    with ServiceProcess(url, TWICESHY_TOKENS="agent-1", TWICESHY_APPROVERS="alice:a-secret") as process:
        yield process


def test_where_approvers_are_known_they_alone_look_after_what_waits_and_in_their_own_name(
    guarded: ServiceProcess,
) -> None:
    agent, alice = ({"Authorization": f"Bearer {token}"} for token in ("agent-1", "a-secret"))
    guarded.ask("PUT", "/v1/destinations/kept", HOOK, **alice)
    call = {"tool": "t", "arguments": {"n": 1}, "run": "r", "attempt": str(uuid4()), "messages": [message("kept")]}
    [id_] = guarded.ask("POST", "/v1/outbox", call, **agent).body["messages"]
    words: list[tuple[str, dict[str, Any]]] = [
        *((f"/v1/destinations/kept/{what}", {}) for what in ("pause", "resume", "remove")),
        ("/v1/outbox/redrive", {"as": "retry", "state": "parked", "destination": "kept"}),
        (f"/v1/outbox/{id_}/cancel", {}),
    ]
    for path, said in words:
        for who, name in ((agent, {"by": "alice"}), (agent, {}), (alice, {"by": "bob"})):
            refused = guarded.ask("POST", path, {"reason": "r"} | said | name, **who)
            assert (refused.status, refused.code) == (403, "forbidden"), path
    assert guarded.ask("POST", "/v1/destinations/kept/check", **agent).status == 403
    assert guarded.ask("GET", "/v1/destinations/kept", **agent).body["state"] == "active"
    for path, said in (words[0], words[2]):
        assert guarded.ask("POST", path, {"reason": "r"} | said, **alice).body["note"].endswith(" by alice: r")
    guarded.ask("PUT", "/v1/destinations/kept", HOOK, **alice)
    assert guarded.ask("POST", "/v1/outbox/redrive", words[3][1] | {"reason": "r"}, **alice).body["redriven"] == 1
    assert guarded.ask("GET", f"/v1/outbox/{id_}", **alice).body["note"] == "sent again (retry) by alice: r"
    taken = guarded.ask("POST", f"/v1/outbox/{id_}/cancel", {"reason": "r", "by": "alice"}, **alice)
    assert (taken.status, taken.body["note"]) == (200, "taken back by alice: r")


def test_where_approvers_are_known_no_agent_says_where_secrets_go(guarded: ServiceProcess) -> None:
    agent, alice = ({"Authorization": f"Bearer {token}"} for token in ("agent-1", "a-secret"))
    refused = guarded.ask("PUT", "/v1/destinations/hook", HOOK, **agent)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert guarded.ask("GET", "/v1/destinations/hook", **agent).status == 404
    assert guarded.ask("PUT", "/v1/destinations/hook", HOOK, **alice).status == 200
    assert guarded.ask("POST", "/v1/destinations/hook/pause", {"reason": "r"}, **alice).status == 200
    assert guarded.ask("GET", "/v1/destinations/hook", **agent).body["state"] == "paused"
    call = {"tool": "t", "arguments": {}, "run": "r", "attempt": str(uuid4()), "messages": [message("hook")]}
    assert guarded.ask("POST", "/v1/outbox", call, **agent).status == 201
    assert guarded.ask("POST", "/v1/outbox", call, **alice).status == 403
