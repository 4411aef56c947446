"""Runs that a test records over HTTP."""

from typing import Any

from tests.service import Reply, ServiceProcess

DIGEST = "ab" * 32


def recorded(service: ServiceProcess, run: str, *calls: dict[str, Any], **opening: object) -> Reply:
    """Record a run of these calls; each says its name, its arguments and how it ended."""
    epoch = service.ask("POST", "/v1/runs", {"run": run, "record": True, **opening}).body["epoch"]
    events: list[dict[str, Any]] = []
    for call in calls:
        seq = len(events) + 1
        entered = {"name": call["name"], "arguments": call["arguments"], "digest": DIGEST, "kind": "tool_call"}
        events.append({"phase": "intent", "seq": seq, "at": 1_700_000_000_000_000 + seq, **entered})
        end = {"outcome": "result", **call.get("end", {})}
        events.append({"phase": "delivery", "seq": seq + 1, "at": 1_700_000_000_000_000 + seq, "intent": seq, **end})
    return service.ask("POST", f"/v1/runs/{run}/events", {"epoch": epoch, "events": events})


def lookup(jurisdiction: str, *, name: str = "lookup", empty: bool = True, **end: object) -> dict[str, Any]:
    """Return a look-up, an empty one unless it is said otherwise."""
    arguments = {"jurisdiction": jurisdiction, "limit": 5}
    return {"name": name, "arguments": arguments, "end": {"value": [], "empty": empty, **end}}
