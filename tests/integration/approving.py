"""Tools that a person must approve, and what that person says."""

from typing import Any
from uuid import uuid4

from tests.service import Reply, ServiceProcess

APPROVED: dict[str, Any] = {"class": "side_effect", "approval": {}}


def declared(service: ServiceProcess, **said: Any) -> str:
    """Declare a tool, approved unless it says otherwise; return its name."""
    name = f"refund-{uuid4().hex[:8]}"
    assert service.ask("PUT", f"/v1/tools/{name}", APPROVED | said).status == 200
    return name


def decide(service: ServiceProcess, awaiting: Reply, verdict: str = "approve", by: str = "alice", **said: Any) -> Reply:
    """Decide the approval that a begin awaits."""
    path = f"/v1/approvals/{awaiting.body['approval']}/decide"
    return service.ask("POST", path, {"verdict": verdict, "by": by} | said)


def approval(service: ServiceProcess, awaiting: Reply) -> Any:
    """Read the approval that a begin awaits."""
    return service.ask("GET", f"/v1/approvals/{awaiting.body['approval']}").body
