"""Retention on a running service: what was kept long enough is a tombstone, and nobody executes it again for that.

All that the tests look at is done once; then the service is away while time passes, and comes back.
"""

import asyncio
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from guard.store.sql.tables import effects, runs
from tests.contract.plans import plans
from tests.service import Reply, ServiceProcess

ERROR = {"type": "Declined", "message": "no"}
SECRETS = {"to": "bob", "text": "secret"}
KEPT = {"brief": 60, "long": 90 * 86_400, "sent": 60, "digest": 3600}
AGES = {"june": timedelta(days=30, hours=1), "may": timedelta(days=29, hours=23), "monday": timedelta(hours=2)}
"""How long ago each run ended."""
ALONE = {"old": timedelta(hours=73), "fresh": timedelta(hours=71), "refused": timedelta(hours=73)}
"""How long ago each effect ended that has a business key and no run."""
Grants = dict[str, Reply]


@pytest.fixture(scope="module")
def grants(shared_service: ServiceProcess, shared_url: str) -> Grants:
    """What was begun, by a name; by now all has expired that must."""
    for tool, kept in KEPT.items():
        key = {"scope": "tenant", "window_seconds": 86_400} if tool == "digest" else {}
        assert shared_service.ask("PUT", f"/v1/tools/{tool}", {"retention_seconds": kept, "key": key}).status == 200
    made = _made(shared_service)
    for run in AGES:
        assert shared_service.ask("POST", f"/v1/runs/{run}/finish").status == 200
    shared_service.stop()
    asyncio.run(plans(shared_url, _let_time_pass))
    shared_service.start()
    for name in ("june key", "june", "brief", "digest", "old", "refused"):
        _wait_until_expired(shared_service, made[name])
    return made


def _made(service: ServiceProcess) -> Grants:
    made = {
        "june key": done(service, "june", business_key="invoice-7", worker="w-1"),
        "june": done(service, "june"),
        "may": done(service, "may", business_key="invoice-8"),
        "open": done(service, "july"),
        "brief": done(service, "june", "brief"),
        "long": done(service, "june", "long"),
        "digest": done(service, "monday", "digest"),
        "old": done(service, None, business_key="old"),
        "fresh": done(service, None, business_key="fresh"),
        "sent": service.begin("june", "sent", SECRETS),
        "refused": service.begin(None, "pay", SECRETS, business_key="refused"),
    }
    assert service.report("fail", made["sent"], kind="unknown", error=ERROR).status == 200
    assert service.report("fail", made["refused"], kind="rejected", error=ERROR).status == 200
    return made


def _let_time_pass(connection: Connection) -> None:
    for run, age in AGES.items():
        earlier = {name: runs.c[name] - age // timedelta(microseconds=1) for name in ("ended_at", "kept_until")}
        connection.execute(sa.update(runs).where(runs.c.name == run).values(**earlier))
    for name, age in ALONE.items():
        earlier = {"ended_at": effects.c.ended_at - age // timedelta(microseconds=1)}
        connection.execute(sa.update(effects).where(effects.c.business_key == name).values(**earlier))


def done(service: ServiceProcess, run: str | None, tool: str = "pay", **fields: Any) -> Reply:
    grant = service.begin(run, tool, SECRETS, **fields)
    assert grant.status == 201, grant.body
    assert service.report("commit", grant, result="secret").status == 200
    return grant


def shown(service: ServiceProcess, grant: Reply) -> dict[str, Any]:
    body: dict[str, Any] = service.ask("GET", f"/v1/effects/{grant.body['key']}").body
    return body


def _wait_until_expired(service: ServiceProcess, grant: Reply) -> None:
    deadline = time.monotonic() + 20
    while shown(service, grant)["expired_at"] is None:
        assert time.monotonic() < deadline, shown(service, grant)


def test_the_effects_of_a_run_expire_thirty_days_after_its_end_and_are_not_executed_again(
    shared_service: ServiceProcess, grants: Grants
) -> None:
    tombstone = shown(shared_service, grants["june key"])
    assert (tombstone["state"], tombstone["arguments"], tombstone["outcome"]) == ("succeeded", {}, None)
    assert (tombstone["worker"], tombstone["business_key"], tombstone["fence"]) == (None, "invoice-7", 1)
    assert "secret" not in str(tombstone)
    late = shared_service.begin("august", "pay", SECRETS, business_key="invoice-7")
    assert (late.status, late.code, late.body["state"]) == (410, "expired", "succeeded")
    assert late.body["key"] == grants["june key"].body["key"]
    assert shared_service.begin("june", "pay", SECRETS).status == 410
    own = shared_service.begin("june", "pay", SECRETS, attempt=grants["june"].body["attempt"])
    assert own.code == "expired"
    other = shared_service.begin("august", "pay", {"to": "eve"}, business_key="invoice-7")
    assert (other.status, other.code, other.body.get("paths")) == (422, "arguments-changed", None)


def test_until_then_and_while_their_run_is_open_they_are_kept(shared_service: ServiceProcess, grants: Grants) -> None:
    may = shared_service.begin("august", "pay", SECRETS, business_key="invoice-8")
    assert (may.status, may.body["outcome"]) == (200, {"result": "secret"})
    assert shown(shared_service, grants["open"])["outcome"] == {"result": "secret"}


def test_a_listing_shows_tombstones_as_such(shared_service: ServiceProcess, grants: Grants) -> None:
    listed = shared_service.ask("GET", "/v1/effects?run=june").body["items"]
    expired = {item["key"] for item in listed if item["expired_at"] is not None}
    assert expired == {grants[name].body["key"] for name in ("june key", "june", "brief")}
    assert len(listed) == 5


def test_an_effect_without_a_run_expires_three_days_after_its_own_end(
    shared_service: ServiceProcess, grants: Grants
) -> None:
    assert shared_service.begin(None, "pay", SECRETS, business_key="old").code == "expired"
    assert shared_service.begin(None, "pay", SECRETS, business_key="fresh").body["decision"] == "replay"
    assert shown(shared_service, grants["fresh"])["expired_at"] is None


def test_what_a_tool_says_of_its_retention_holds_and_doubt_never_expires(
    shared_service: ServiceProcess, grants: Grants
) -> None:
    assert shown(shared_service, grants["long"])["arguments"] == SECRETS
    doubtful = shown(shared_service, grants["sent"])
    assert (doubtful["state"], doubtful["expired_at"], doubtful["arguments"]) == ("in_doubt", None, SECRETS)


def test_late_word_about_a_tombstone_is_answered_clearly_and_kept_where_it_contradicts(
    shared_service: ServiceProcess, grants: Grants
) -> None:
    committed, refused = grants["old"], grants["refused"]
    again = shared_service.report("commit", committed, result="secret")
    assert (again.status, again.body["state"], again.body.get("outcome")) == (200, "succeeded", None)
    stranger = shared_service.report("commit", committed, result="secret", attempt=str(uuid4()))
    assert (stranger.status, stranger.code, stranger.body["state"]) == (410, "expired", "succeeded")
    contradicting = shared_service.report("commit", refused, result="done")
    assert (contradicting.status, contradicting.code) == (409, "superseded")
    (kept,) = shown(shared_service, refused)["evidence"]
    assert (kept["kind"], kept["body"]) == ("success", {"result": "done"})
    path = f"/v1/effects/{committed.body['key']}/resolve"
    resolved = shared_service.ask("POST", path, {"as": "applied", "fence": 1, "reason": "it is there"})
    assert (resolved.status, resolved.code) == (410, "expired")
    assert shared_service.report("renew", committed).code == "superseded"
    assert shared_service.report("fail", committed, kind="unknown", error=ERROR).code == "superseded"
    with_other_arguments = shared_service.begin(None, "pay", {"to": "eve"}, business_key="refused")
    assert (with_other_arguments.status, with_other_arguments.body["generation"]) == (201, 2)


def test_a_window_that_has_passed_comes_before_retention(
    shared_service: ServiceProcess, shared_url: str, grants: Grants
) -> None:
    assert shared_service.begin("tuesday", "digest", SECRETS).code == "expired"

    def work(connection: Connection) -> None:
        earlier = effects.c.ended_at - timedelta(days=2) // timedelta(microseconds=1)
        connection.execute(sa.update(effects).where(effects.c.tool == "digest").values(ended_at=earlier))

    asyncio.run(plans(shared_url, work))
    second = shared_service.begin("tuesday", "digest", SECRETS)
    assert (second.status, second.body["generation"]) == (201, 2)
    assert second.body["key"] != grants["digest"].body["key"]
