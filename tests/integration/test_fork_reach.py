"""Every route there is, asked with the credential of a fork: what its table does not name is refused."""

from uuid import uuid4

from tests.integration.fork_driver import Driver
from tests.integration.forks import paid
from tests.service import ServiceProcess

OPEN = {"/health/live", "/health/ready"}
ANSWERED = {
    ("POST", "/v1/batch"), ("POST", "/v1/blobs/read"), ("PUT", "/v1/tools/{name}"), ("GET", "/v1/tools"),
    ("GET", "/v1/tools/{name}"), ("GET", "/v1/tools/{name}/versions"), ("PUT", "/v1/tools/plan"),
}  # fmt: skip
HIDDEN = [
    ("GET", "/metrics"), ("PUT", "/v1/tools/plan"), ("GET", "/v1/outbox"), ("POST", "/v1/outbox"),
    ("DELETE", "/v1/runs/{run}"), ("PATCH", "/v1/tools/{name}"), ("GET", "//v1/runs"),
    ("GET", "/v1/runs/"), ("GET", "/v1//runs"), ("POST", "/v1/effects/"),
]  # fmt: skip


def test_every_route_is_refused_that_the_table_does_not_name(service: ServiceProcess, run: str) -> None:
    made = paid(service, run, "ann", "bob", "cid")
    driver = Driver(made)
    other = f"other-{made.run}"
    grant = made.service.begin(other, made.tool, {"to": "x"})
    call = {"tool": made.tool, "arguments": {}, "attempt": str(uuid4()), "run": other}
    decisions = {"calls": [{"tool": made.tool}], "fork": {"parent": driver.fork, "at": 0}}
    bodies = {
        "/v1/effects": call, "/v1/effects/release": call,
        "/v1/outbox": call | {"messages": [{"destination": "d", "payload": 1}]}, "/v1/runs": {"run": f"new-{other}"},
        "/v1/sagas": {"saga": f"s-{other}", "run": other}, "/v1/policy/decisions": decisions,
        "/v1/effects/{key}/commit": {"attempt": grant.body["attempt"], "fence": 1, "result": 1},
        "/v1/effects/{key}/renew": {"attempt": grant.body["attempt"], "fence": 1},
        "/v1/effects/{key}/fail": {
            "attempt": grant.body["attempt"], "fence": 1, "kind": "unknown", "error": {"type": "E", "message": "m"}
        },
    }  # fmt: skip
    filled = {"run": other, "key": grant.body["key"], "name": "pay", "saga": "s", "approval": str(uuid4())}
    filled |= {"hold": str(uuid4()), "flag": str(uuid4()), "code": "expired", "id": str(uuid4())}
    paths = made.service.ask("GET", "/schema/openapi.json").body["paths"]
    routes = [(method.upper(), path) for path, item in paths.items() for method in item if method != "parameters"]
    assert len(routes) > 50
    unnamable = dict.fromkeys(filled, "a%00b")
    for method, path in routes + HIDDEN:
        if path in OPEN or (method, path) in ANSWERED:
            continue
        for names, query in ((filled, ""), (unnamable, ""), (filled, "?run=a%00b")):
            body = bodies.get(path, {}) if method in ("POST", "PUT") else None
            reply = driver.ask(method, path.format(**names) + query, body)
            expected = (403, 404) if names is unnamable else (403,)
            assert reply.status in expected, (method, path, names, query, reply.body)
    for path in ("/v1/tools/a%00b", "/v1/tools/a%00b/versions"):
        assert driver.ask("GET", path).status == 404
    assert driver.ask("PUT", "/v1/tools/a%00b", {"class": "read"}).status == 400
    assert made.service.ask("GET", f"/v1/runs/new-{other}").status == 404
