"""A saga of a hold and a payment over HTTP, as an agent that is not ours would drive it."""

import time
from collections.abc import Callable
from typing import Any

from tests.service import Reply, ServiceProcess

_PATIENCE_SECONDS = 20.0


class Booking:
    """A saga in a run of its own name, with tools of its own."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.service = service
        self.run = run
        self.saga = f"saga-{run}"
        for tool, back in (("hold", "release"), ("pay", "refund")):
            self.declare(tool, compensation={"tool": self.tool(back), "arguments": {"id": "${result.id}"}})

    def tool(self, name: str) -> str:
        """The full name of a tool."""
        return f"{name}-{self.run}"

    def declare(self, tool: str, **said: object) -> None:
        """Declare a tool as a person."""
        said = {"class": "side_effect", "settle_seconds": 0} | said
        assert self.service.ask("PUT", f"/v1/tools/{self.tool(tool)}", said).status == 200

    def open(self, **said: object) -> Reply:
        """Open the saga, or find it."""
        return self.service.ask("POST", "/v1/sagas", {"saga": self.saga, "run": self.run} | said)

    def begin(self, tool: str, **fields: object) -> Reply:
        """Begin a step."""
        named = {"saga": self.saga} | fields
        return self.service.begin(self.run, self.tool(tool), {"x": 1}, **named)

    def done(self, tool: str) -> str:
        """Begin a step and commit it, and return its key."""
        grant = self.begin(tool)
        assert grant.status == 201, grant.body
        assert self.service.report("commit", grant, result={"id": f"{tool}-1"}).status == 200
        return str(grant.body["key"])

    def report(self, grant: Reply, kind: str, **said: object) -> None:
        """Report the failure of what was granted."""
        error = {"type": "Full", "message": "the house is full"}
        assert self.service.report("fail", grant, kind=kind, error=error, **said).status == 200

    def fail(self, reason: str = "the house is full") -> Reply:
        """Fail the saga."""
        return self.service.ask("POST", f"{self.path}/fail", {"reason": reason})

    def next(self) -> Any:
        """Ask what the saga needs next."""
        reply = self.service.ask("POST", f"{self.path}/next")
        assert reply.status == 200, reply.body
        return reply.body

    def due(self) -> Any:
        """Ask for the call that is due."""
        found = self.next()["due"]
        assert found is not None
        return found

    def take_back(self, due: Any, **changed: object) -> Reply:
        """Begin the call that is due."""
        asked = {
            "saga": self.saga,
            "step": due["step"],
            "occurrence": due["occurrence"],
            "compensates": due["key"] if due["purpose"] == "compensate" else None,
        } | changed
        arguments, tool = asked.pop("arguments", due["arguments"]), asked.pop("tool", due["tool"])
        asked = {name: value for name, value in asked.items() if value is not None}
        return self.service.begin(str(asked.pop("run", due["run"])), str(tool), arguments, **asked)

    def taken_back(self) -> str:
        """Make the call that is due, and return its tool."""
        due = self.due()
        grant = self.take_back(due)
        assert grant.status == 201, grant.body
        assert self.service.report("commit", grant, result=None).status == 200
        return str(due["tool"])

    def settle(self, key: str, how: str, by: str = "ann") -> Reply:
        """Settle a step as an operator."""
        said = {"as": how, "by": by, "reason": "seen to"}
        return self.service.ask("POST", f"{self.path}/steps/{key}/settle", said)

    def shown(self) -> Any:
        """Read the saga."""
        return self.service.ask("GET", self.path).body

    def steps(self) -> list[tuple[str, str]]:
        """Read what became of the steps."""
        return [(step["tool"].partition("-")[0], step["state"]) for step in self.shown()["steps"]]

    def steps_with_effects(self) -> list[tuple[str, str]]:
        """Read how the effects of the steps stand."""
        return [(step["tool"].partition("-")[0], step["effect"]) for step in self.shown()["steps"]]

    def resume(self, by: str = "ann") -> Reply:
        """Let the saga go on, as an operator."""
        return self.service.ask("POST", f"{self.path}/resume", {"by": by, "reason": "seen to"})

    def complete(self) -> Reply:
        """End the saga well."""
        return self.service.ask("POST", f"{self.path}/complete")

    def flags(self, state: str | None = None) -> list[str]:
        """Read what operators were told of the saga."""
        chosen = "" if state is None else f"&state={state}"
        found = self.service.ask("GET", f"/v1/flags?kind=saga-stuck&limit=500{chosen}").body["items"]
        return [flag["detail"] for flag in found if flag["run"] == self.run]

    def see(self, happens: Callable[[], bool]) -> None:
        """Wait until something is so."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while not happens():
            assert time.monotonic() < until
            time.sleep(0.02)

    @property
    def path(self) -> str:
        """Where the saga is."""
        return f"/v1/sagas/{self.saga}"
