"""A run with a record, and the forks that the tests make of it."""

import time
from collections.abc import Callable
from typing import Any

from tests.service import Reply, ServiceProcess

CUT = 2


class Recorded:
    """A run that has a record, and its forks."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.service = service
        self.run = run
        self.tool = f"pay-{run}"

    def declare(self, **said: object) -> None:
        """Declare the tool as a person."""
        self.service.ask("PUT", f"/v1/tools/{self.tool}", {"class": "side_effect"} | said)

    def did(self, arguments: object, result: object, run: str | None = None, **fields: object) -> Reply:
        """Begin and commit."""
        grant = self.service.begin(run or self.run, self.tool, arguments, **fields)
        assert grant.status == 201, grant.body
        assert self.service.report("commit", grant, result=result).status == 200
        return grant

    def fork(self, name: str = "f", at: int = CUT, of: str | None = None, **terms: object) -> str:
        """Fork the run."""
        made = self.service.ask(
            "POST", f"/v1/runs/{of or self.run}/forks", {"fork": f"{self.run}-{name}", "at": at} | terms
        )
        assert made.status == 200, made.body
        return str(made.body["run"])

    def fork_of_nothing(self, live: list[dict[str, object]]) -> str:
        """Fork the run at its very start; it may not have begun at all."""
        self.service.ask("POST", "/v1/runs", {"run": self.run})
        return self.fork(at=0, live=live)

    def call(self, fork: str, arguments: object, **fields: object) -> Reply:
        """Begin in a fork."""
        return self.service.begin(fork, self.tool, arguments, **fields)

    def effects_of(self, run: str) -> list[dict[str, Any]]:
        """List the effects of a run."""
        items: list[dict[str, Any]] = self.service.ask("GET", f"/v1/effects?run={run}").body["items"]
        return items

    def decide(self, reply: Reply, verdict: str = "approve") -> None:
        """Decide about what was asked."""
        decision = {"verdict": verdict, "by": "ann"}
        decided = self.service.ask("POST", f"/v1/approvals/{reply.body['approval']}/decide", decision)
        assert decided.status == 200, decided.body


def said(reply: Reply) -> tuple[int, str]:
    """Return the status of a begin and what decided: a stub's rule, or a problem's code."""
    return reply.status, reply.body["rule"] if reply.status == 200 else reply.body.get("decision") or reply.code


def paid(service: ServiceProcess, run: str, *names: str) -> Recorded:
    """Return a run that paid these."""
    recorded = Recorded(service, run)
    recorded.declare()
    for name in names:
        recorded.did({"to": name}, f"paid {name}")
    return recorded


def until(ask: Callable[[], object], wanted: object) -> None:
    """Ask until the answer is the one that is waited for: time passes by the database's clock."""
    deadline = time.monotonic() + 15
    while ask() != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"never {wanted!r}")
