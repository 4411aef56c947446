"""A fork as whoever has nothing but its credential drives it."""

from typing import Any
from uuid import uuid4

from tests.integration.forks import CUT, Recorded
from tests.service import Reply, ServiceProcess


class Driver:
    """Asks the service with the credential of a fork."""

    def __init__(self, made: Recorded, name: str = "f", at: int = CUT, **terms: object) -> None:
        self.service: ServiceProcess = made.service
        self.made = made
        terms = {"fork": f"{made.run}-{name}", "at": at} | terms
        reply = made.service.ask("POST", f"/v1/runs/{made.run}/forks", terms)
        assert reply.status == 200, reply.body
        self.fork = str(reply.body["run"])
        self.credential = str(reply.body["credential"])

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Send one request with the credential."""
        return self.service.ask(method, path, body, Authorization=f"Bearer {self.credential}", **headers)

    def begin(self, run: str | None, arguments: object = None, tool: str | None = None, **fields: object) -> Reply:
        """Begin in a run, or without one."""
        scope = {} if run is None else {"run": run}
        body = {"tool": tool or self.made.tool, "arguments": {} if arguments is None else arguments}
        return self.ask("POST", "/v1/effects", body | scope | {"attempt": str(uuid4())} | fields)

    def report(self, verb: str, grant: Reply, **fields: object) -> Reply:
        """Commit, fail or renew under a grant."""
        held = {"attempt": grant.body["attempt"], "fence": grant.body["fence"]}
        return self.ask("POST", f"/v1/effects/{grant.body['key']}/{verb}", held | fields)

    def child(self, name: str, parent: str | None = None, **fields: object) -> Reply:
        """Open a child of the fork, or of a run below it."""
        parent = parent or self.fork
        return self.ask("POST", "/v1/runs", {"run": f"{parent}.{name}", "parent": parent} | fields)

    def pauses(self, run: str | None = None) -> list[dict[str, Any]]:
        """List where the fork stopped."""
        items: list[dict[str, Any]] = self.service.ask("GET", f"/v1/runs/{run or self.fork}/pauses").body["items"]
        return items

    def answer(self, stopped: Reply, run: str | None = None, **said: object) -> Reply:
        """Answer a call at which the fork stopped, as a person without a token of their own."""
        return self.service.ask("POST", f"/v1/runs/{run or self.fork}/pauses/{stopped.body['pause']}", said)
