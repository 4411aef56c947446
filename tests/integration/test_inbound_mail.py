"""Mail that comes in over HTTP, on both databases: believed where it is signed, kept once, beside what it answers."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email import message_from_string
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.forks import Recorded
from tests.integration.inbound import INBOUND_SECRETS, NEW, OLD, Desk, id_of, post, reply_to
from tests.service import Reply, ServiceProcess


@pytest.fixture
def desk(service: ServiceProcess) -> Desk:
    """A destination of mail that nothing leaves."""
    return Desk(service)


@pytest.fixture(scope="module")
def guarded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that has tokens, and secrets for mail."""
    path = tmp_path_factory.mktemp("mail") / "guard.db"
    with ServiceProcess(
        f"sqlite:///{path}", TWICESHY_TOKENS="s3cret", TWICESHY_INBOUND_SECRETS=INBOUND_SECRETS
    ) as process:
        yield process


def replies(service: ServiceProcess, run: str, query: str = "") -> list[dict[str, Any]]:
    found = service.ask("GET", f"/v1/runs/{run}/replies{query}")
    assert found.status == 200, found.body
    items: list[dict[str, Any]] = found.body["items"]
    return items


def test_a_reply_is_found_at_the_run_that_sent_the_mail(service: ServiceProcess, run: str, desk: Desk) -> None:
    first = desk.send(run, thread="room 5")
    other = desk.send(f"{run}-other")
    taken = post(service, reply_to(id_of(other), desk.root("room 5"), id_of(first), message_id=f"<{run}@x.example>"))
    assert (taken.status, taken.body) == (
        201,
        {"id": taken.body["id"], "state": "matched", "known": False, "run": run, "thread": "room 5", "message": first},
    )
    (reply,) = replies(service, run)
    assert reply == {
        "id": taken.body["id"], "run": run, "thread": "room 5", "message": first, "received_at": reply["received_at"],
        "message_id": f"<{run}@x.example>", "from": "Ann <ann@x.example>", "to": ["desk@acme.example"], "cc": [],
        "subject": "Re: Room", "date": None, "text": "Yes, please.\n", "html": None, "automatic": False, "cut": False,
        "attachments": [],
    }  # fmt: skip
    assert replies(service, f"{run}-other") == []
    assert service.ask("GET", "/v1/runs/none-such/replies").status == 404
    assert service.ask("GET", f"/v1/runs/{run}").body["events"] == 0


def test_our_next_mail_of_the_thread_answers_the_newest_reply(service: ServiceProcess, run: str, desk: Desk) -> None:
    first = desk.send(run, thread="room 5")
    root = desk.root("room 5")
    headers = message_from_string(desk.body_of(first))
    assert (headers["In-Reply-To"], headers["References"], headers["Message-ID"]) == (root, root, None)
    reply = f"<{run}@x.example>"
    post(service, reply_to(root, id_of(first), message_id=reply))
    second = desk.send(f"{run}-later", thread="room 5")
    headers = message_from_string(desk.body_of(second))
    assert (headers["In-Reply-To"], headers["References"].split()) == (reply, [root, reply])
    elsewhere = message_from_string(desk.body_of(desk.send(run, thread="room 6")))
    assert elsewhere["In-Reply-To"] == desk.root("room 6")


def test_every_recipient_gets_a_copy_whose_reply_is_matched(service: ServiceProcess, run: str, desk: Desk) -> None:
    staged = desk.stage(run, to=("ann@x.example", "bob@x.example"), bcc=["eve@x.example"])
    messages = staged.body["messages"]
    assert len(messages) == 3
    for message in messages:
        assert post(service, reply_to(id_of(message))).body["message"] == message
        assert "eve@x.example" not in desk.body_of(message)
    assert [reply["message"] for reply in replies(service, run)] == messages


def test_mail_is_from_the_agent_of_the_run_where_it_has_a_sender(service: ServiceProcess, run: str, desk: Desk) -> None:
    service.ask("POST", "/v1/runs", {"run": run, "about": {"agent": "booker"}})
    by_agent, by_name = desk.send(run), desk.send(f"{run}-other", sender="booker")
    for message in (by_agent, by_name):
        assert desk.body_of(message).startswith("From: Booker <booker@acme.example>\r\n")
    assert desk.body_of(desk.send(f"{run}-other")).startswith("From: Acme <desk@acme.example>\r\n")


def test_the_same_mail_again_is_kept_once(service: ServiceProcess, run: str, desk: Desk) -> None:
    mail = reply_to(id_of(desk.send(run)))
    first, again = post(service, mail), post(service, mail, secret=OLD)
    assert (first.status, again.status) == (201, 200)
    assert again.body == first.body | {"known": True}
    assert len(replies(service, run)) == 1


def test_the_same_mail_from_many_at_once_is_kept_once(service: ServiceProcess, run: str, desk: Desk) -> None:
    mail = reply_to(id_of(desk.send(run)))
    with ThreadPoolExecutor(8) as pool:
        answers: list[Reply] = list(pool.map(lambda _: post(service, mail), range(24)))
    assert sorted(answer.status for answer in answers) == [200] * 23 + [201]
    assert len({answer.body["id"] for answer in answers}) == 1
    assert len(replies(service, run)) == 1


def test_mail_that_answers_nothing_is_kept_and_listed(service: ServiceProcess, run: str) -> None:
    taken = post(service, reply_to("<somebody@else.example>"))
    assert (taken.status, taken.body["state"], taken.body["run"], taken.body["message"]) == (
        201,
        "unmatched",
        None,
        None,
    )
    newest = service.ask("GET", "/v1/replies?matched=false&limit=1").body["items"][0]
    assert newest["id"] == taken.body["id"]
    assert service.ask("GET", f"/v1/replies?run={run}").body == {"items": [], "next": None}


def test_json_of_a_provider_is_taken_as_well(service: ServiceProcess, run: str, desk: Desk) -> None:
    message = desk.send(run)
    sent = {
        "message_id": f"{run}@x.example", "from": "ann@x.example", "to": "desk@acme.example, bob@x.example",
        "subject": "Re", "text": "Yes", "in_reply_to": id_of(message), "spam_score": 0.1,
    }  # fmt: skip
    taken = post(service, json.dumps(sent).encode(), "application/json")
    assert (taken.status, taken.body["message"]) == (201, message)
    (reply,) = replies(service, run)
    assert (reply["message_id"], reply["to"]) == (f"<{run}@x.example>", ["desk@acme.example", "bob@x.example"])


def test_replies_come_in_their_order_a_page_at_a_time(service: ServiceProcess, run: str, desk: Desk) -> None:
    messages = [desk.send(run, thread=thread) for thread in ("a", "b", "a")]
    for message in messages:
        post(service, reply_to(id_of(message)))
    page = service.ask("GET", f"/v1/runs/{run}/replies?limit=2").body
    rest = service.ask("GET", f"/v1/runs/{run}/replies?limit=2&after={page['next']}").body
    assert [one["message"] for one in (*page["items"], *rest["items"])] == messages
    assert rest["next"] is None
    assert [one["message"] for one in replies(service, run, "?thread=a")] == [messages[0], messages[2]]
    listed = service.ask("GET", f"/v1/replies?run={run}&matched=true").body["items"]
    assert [one["message"] for one in listed] == messages[::-1]
    for path in (f"/v1/runs/{run}/replies?after=x", "/v1/replies?after=x"):
        assert (service.ask("GET", path).status, service.ask("GET", path).body["errors"][0]["path"]) == (400, "/after")


def test_large_mail_is_taken_without_what_is_attached(service: ServiceProcess) -> None:
    taken = post(service, reply_to() + b"x" * 3_000_000)
    assert taken.status == 201
    newest = service.ask("GET", "/v1/replies?limit=1").body["items"][0]
    assert (newest["id"], newest["cut"], len(newest["text"])) == (taken.body["id"], True, 262_144)


@pytest.mark.parametrize(
    ("secret", "late", "said"),
    [
        (None, 0, "It is not signed"),
        (b"x" * 32, 0, "No secret of the service made its signature"),
        (NEW, 400, "more than 300 seconds from now"),
        (NEW, -400, "more than 300 seconds from now"),
    ],
)
def test_mail_that_nobody_vouches_for_is_refused(
    service: ServiceProcess, secret: bytes | None, late: int, said: str
) -> None:
    mail = reply_to(message_id=f"<{uuid4().hex}@x.example>")
    refused = post(service, mail, secret=secret, late=late)
    assert (refused.status, refused.code, said in refused.body["detail"]) == (403, "forbidden", True)
    assert post(service, mail).status == 201


def test_bad_mail_is_refused_with_its_place(service: ServiceProcess) -> None:
    assert post(service, b"x", "text/plain").status == 415
    missing = post(service, b'{"message_id": "a@x"}', "application/json")
    assert (missing.status, missing.body["errors"][0]["path"]) == (400, "/from")
    assert post(service, b"{", "application/json").status == 400


def test_the_signature_is_the_credential_and_a_token_is_none(guarded_service: ServiceProcess) -> None:
    mail = reply_to()
    assert post(guarded_service, mail).status == 201
    assert post(guarded_service, mail, secret=None, Authorization="Bearer s3cret").status == 403
    assert guarded_service.ask("GET", "/v1/replies").status == 401
    assert guarded_service.ask("GET", "/v1/replies", Authorization="Bearer s3cret").status == 200


def test_a_fork_posts_no_mail(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    service.ask("POST", "/v1/runs", {"run": run})
    forked = service.ask("POST", f"/v1/runs/{run}/forks", {"fork": f"{made.run}-why", "at": 0})
    credential = f"Bearer {forked.body['credential']}"
    refused = post(service, reply_to(), Authorization=credential)
    assert (refused.status, refused.code) == (403, "forbidden")
    assert service.ask("GET", f"/v1/runs/{made.run}-why/replies", Authorization=credential).status == 200
    assert service.ask("GET", "/v1/replies", Authorization=credential).status == 403


def test_without_secrets_no_mail_is_taken(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("closed") / "guard.db"
    with ServiceProcess(f"sqlite:///{path}") as closed:
        refused = post(closed, reply_to())
    assert (refused.status, "TWICESHY_INBOUND_SECRETS" in refused.body["detail"]) == (403, True)
