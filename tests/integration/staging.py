"""Destinations of their own for the tests, and messages that are staged for them."""

from typing import Any
from uuid import uuid4

from tests.service import Reply, ServiceProcess

HOOK: dict[str, Any] = {"kind": "webhook", "url": "https://hooks.example/x"}
MAIL: dict[str, Any] = {
    "kind": "smtp",
    "host": "mail.example",
    "sender": "Desk <desk@acme.example>",
    "senders": {"bob": "Bob <bob@acme.example>"},
}


def declared(service: ServiceProcess, settings: dict[str, Any] | None = None, **said: Any) -> str:
    """Declare a destination that no other test uses; return its name."""
    name = f"d-{uuid4().hex[:10]}"
    reply = service.ask("PUT", f"/v1/destinations/{name}", (settings or HOOK) | said)
    assert reply.status == 200, reply.body
    return name


def act(service: ServiceProcess, name: str, what: str) -> Reply:
    """Pause, resume or remove a destination."""
    return service.ask("POST", f"/v1/destinations/{name}/{what}", {"reason": "a test", "by": "ann"})


def message(destination: str, payload: object = None, **said: Any) -> dict[str, Any]:
    """Return a message with a payload."""
    return {"destination": destination, "payload": {"n": 1} if payload is None else payload, **said}


def mail(destination: str, *to: str, **said: Any) -> dict[str, Any]:
    """Return a message that is a mail."""
    return {"destination": destination, "mail": {"to": to, "subject": "Hello", "text": "Dear you"} | said}


def stage(service: ServiceProcess, run: str | None, *messages: dict[str, Any], **fields: object) -> Reply:
    """Stage messages under a call, with a new attempt unless one is given."""
    scope = {} if run is None else {"run": run}
    call = {"tool": "notify", "arguments": {"to": "bob"}, "attempt": str(uuid4()), "messages": messages}
    return service.ask("POST", "/v1/outbox", call | scope | fields)


def staged(service: ServiceProcess, run: str, **query: str) -> list[dict[str, Any]]:
    """List the messages of a run that are not over, oldest first."""
    asked = "".join(f"&{name}={value}" for name, value in query.items())
    reply = service.ask("GET", f"/v1/outbox?run={run}{asked}")
    assert reply.status == 200, reply.body
    items: list[dict[str, Any]] = reply.body["items"]
    return items[::-1]


def shown(service: ServiceProcess, id_: str) -> Any:
    """Read one message."""
    reply = service.ask("GET", f"/v1/outbox/{id_}")
    assert reply.status == 200, reply.body
    return reply.body


def redrive(service: ServiceProcess, how: str = "retry", **which: object) -> Reply:
    """Send messages again."""
    return service.ask("POST", "/v1/outbox/redrive", {"as": how, "reason": "a test", "by": "ann"} | which)


def cancel(service: ServiceProcess, id_: str) -> Reply:
    """Take a message back."""
    return service.ask("POST", f"/v1/outbox/{id_}/cancel", {"reason": "a test", "by": "ann"})
