"""Those who ask in a soak: agents that begin, execute, fail, vanish and come late; an operator who settles doubt."""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec.structs import replace

from tests.soak.history import EffectClass, Executed, Journal, Operation
from tests.soak.world import World
from twiceshy import Guard, current_effect

LEASE_SECONDS: Final = 1.0
HOT_KEYS: Final = 12
_TOOLS: Final[dict[EffectClass, str]] = {"side_effect": "pay", "idempotent": "sync"}
_TRIES: Final = 40
_PAUSE_SECONDS: Final = 0.02
_PATIENCE_SECONDS: Final = 5.0


class Line:
    """Asks one of the replicas; when a connection is lost, another. What it asks goes into the journal."""

    def __init__(self, name: str, ports: Sequence[int], journal: Journal, chance: random.Random) -> None:
        self.name, self._ports, self._journal, self._chance = name, ports, journal, chance

    def ask(self, path: str, body: object, describe: Callable[[dict[str, Any] | None], Operation]) -> dict[str, Any]:
        """Ask once; an answer of a service that cannot is as lost as none. Returns nothing where it was lost."""
        started = time.monotonic()
        answer = self.send("POST", path, body)
        operation = describe(answer)
        self._journal.write(_timed(operation, started))
        return answer or {}

    def send(self, method: str, path: str, body: object = None) -> dict[str, Any] | None:
        """Send one request; None where no answer came."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._chance.choice(self._ports), timeout=_PATIENCE_SECONDS
        )
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, _JSON)
            answer = connection.getresponse()
            said: dict[str, Any] = json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()
        return None if answer.status >= 500 else said


_JSON: Final = {"Content-Type": "application/json"}


def word(answer: dict[str, Any] | None) -> str | None:
    """Return an answer in one word: the decision, the state, or the problem."""
    if answer is None:
        return None
    if "decision" in answer:
        return str(answer["decision"])
    return str(answer.get("state") if "type" not in answer else str(answer["type"]).removeprefix("/problems/"))


def outcome_of(answer: dict[str, Any] | None) -> object:
    """Return the result that an answer tells."""
    told = (answer or {}).get("outcome")
    return told.get("result") if isinstance(told, dict) else None


class Agent(threading.Thread):
    """Does one call after the other on keys that others want too, and does not always do well."""

    def __init__(self, number: int, world: World, ports: Sequence[int], seed: int) -> None:
        super().__init__(name=f"agent-{number}")
        self._world = world
        self._chance = random.Random(seed * 1000 + number)  # noqa: S311  it need be repeatable, not secret
        self._line = Line(self.name, ports, world.journal, self._chance)

    def run(self) -> None:
        """Call until the soak is over."""
        while not self._world.is_over.wait(_PAUSE_SECONDS):
            self._call()

    def _call(self) -> None:
        chance = self._chance
        tool: EffectClass = "side_effect" if chance.random() < 0.7 else "idempotent"
        number = self._world.hot_number(chance.randrange(HOT_KEYS)) if chance.random() < 0.6 else chance.getrandbits(40)
        attempt = str(UUID(int=chance.getrandbits(128), version=4))
        wait = 2 if chance.random() < 0.3 else 0
        for _ in range(_TRIES):
            granted = self._begin(tool, number, attempt, wait)
            if granted or self._world.is_over.is_set():
                break
            time.sleep(0.05)
        else:
            return
        if granted.get("decision") != "execute":
            return
        if chance.random() < 0.1:
            self._begin(tool, number, attempt, 0)  # the same again: its answer may have been lost
        self._act(tool, granted, attempt)

    def _begin(self, tool: EffectClass, number: int, attempt: str, wait: int) -> dict[str, Any]:
        body: dict[str, object] = {"tool": _TOOLS[tool], "arguments": {"n": number}, "run": f"soak-{number}"}
        body |= {"attempt": attempt, "wait_seconds": wait, "lease_seconds": LEASE_SECONDS}
        return self._line.ask("/v1/effects", body, lambda answer: self._told("begin", tool, attempt, answer))

    def _act(self, tool: EffectClass, granted: dict[str, Any], attempt: str) -> None:
        """Do one of what agents do with a lease."""
        chance = self._chance.random()
        if chance < 0.08:
            self._report("fail", tool, granted, attempt, kind="not_applied", error={"type": "E", "message": "no"})
        elif chance < 0.11:
            self._report("fail", tool, granted, attempt, kind="unknown", error={"type": "E", "message": "who knows"})
        elif chance < 0.17:
            pass  # killed before its tool ran
        elif chance < 0.22:
            self._world.execute(self.name, tool, granted, attempt)  # killed after it
        elif chance < 0.26:
            time.sleep(LEASE_SECONDS * 1.5)  # a pause longer than the lease, and then it goes on
            self._finish(tool, granted, attempt)
        elif chance < 0.32:
            self._report("renew", tool, granted, attempt, lease_seconds=LEASE_SECONDS)
            time.sleep(LEASE_SECONDS / 2)
            self._finish(tool, granted, attempt)
        else:
            self._finish(tool, granted, attempt)

    def _finish(self, tool: EffectClass, granted: dict[str, Any], attempt: str) -> None:
        receipt = self._world.execute(self.name, tool, granted, attempt)
        for _ in range(_TRIES):
            if self._report("commit", tool, granted, attempt, result=receipt) or self._world.is_over.is_set():
                return
            time.sleep(0.05)

    def _report(
        self, verb: Any, tool: EffectClass, granted: dict[str, Any], attempt: str, **fields: object
    ) -> dict[str, Any]:
        body = {"attempt": attempt, "fence": granted["fence"], **fields}
        what = str(fields.get("kind", ""))
        return self._line.ask(
            f"/v1/effects/{granted['key']}/{verb}",
            body,
            lambda answer: self._told(verb, tool, attempt, answer, key=granted["key"], what=what),
        )

    def _told(
        self, verb: Any, tool: EffectClass, attempt: str, answer: dict[str, Any] | None, key: str = "", what: str = ""
    ) -> Operation:
        told = answer or {}
        return Operation(
            client=self.name,
            verb=verb,
            key=str(told.get("key") or key),
            tool=tool,
            started=0.0,
            ended=0.0,
            said=word(answer),
            attempt=attempt,
            fence=int(told.get("fence") or 0),
            lease=float(told.get("lease_seconds_left") or 0.0),
            what=what,
            outcome=outcome_of(answer),
        )


def _timed(operation: Operation, started: float) -> Operation:
    return replace(operation, started=started, ended=time.monotonic())


class Program(threading.Thread):
    """An agent with the SDK: a tool is called, and what it returns is the record of the call."""

    def __init__(self, number: int, world: World, port: int) -> None:
        super().__init__(name=f"program-{number}")
        self._world, self._port = world, port

    def run(self) -> None:
        """Call until the soak is over; what the guard refuses is refused."""
        guard = Guard(f"http://127.0.0.1:{self._port}")
        known: list[tuple[str, str]] = []

        @guard.tool
        def note(number: int) -> str:
            effect = current_effect()
            receipt = f"note {number} of {effect.key}"
            known.append((effect.key, receipt))
            self._world.receipts[effect.key] = receipt
            self._world.journal.write(
                Executed(
                    client=self.name,
                    key=effect.key,
                    tool="side_effect",
                    attempt=str(effect.attempt),
                    downstream_key=effect.downstream_key,
                    receipt=receipt,
                    at=time.monotonic(),
                )
            )
            return receipt

        number = 0
        with guard, guard.run(self.name):
            while not self._world.is_over.wait(_PAUSE_SECONDS):
                number += 1
                self._called(note, number, known)

    def _called(self, note: Callable[[int], str], number: int, known: list[tuple[str, str]]) -> None:
        for _ in range(2):
            started = time.monotonic()
            try:
                receipt = note(number)
            except Exception:  # noqa: BLE001  a call that fails tells no outcome
                return
            key = next((key for key, told in known if told == receipt), "")
            operation = Operation(
                client=self.name, verb="call", key=key, tool="side_effect", started=started, ended=0.0,
                said="returned", outcome=receipt,
            )  # fmt: skip
            self._world.journal.write(_timed(operation, started))


class Operator(threading.Thread):
    """Looks at what is in doubt, looks whether it was applied, and says so."""

    def __init__(self, world: World, ports: Sequence[int], seed: int) -> None:
        super().__init__(name="operator")
        self._world = world
        self._line = Line(self.name, ports, world.journal, random.Random(seed))  # noqa: S311

    def run(self) -> None:
        """Settle until the soak is over."""
        while not self._world.is_over.wait(0.2):
            listed = self._line.send("GET", "/v1/effects?state=in_doubt&limit=50") or {}
            for item in listed.get("items", ()):
                self._settle(item)

    def _settle(self, item: dict[str, Any]) -> None:
        key, tool = item["key"], self._world.class_of(item["tool"])
        receipt = self._world.receipts.get(key)
        what = "not_applied" if receipt is None else "applied"
        body = {"as": what, "fence": item["fence"], "reason": "the sink says so"}
        body |= {} if receipt is None else {"result": receipt}

        def told(answer: dict[str, Any] | None) -> Operation:
            return Operation(
                client=self.name, verb="resolve", key=key, tool=tool, started=0.0, ended=0.0, said=word(answer),
                fence=item["fence"], what=what, outcome=outcome_of(answer),
            )  # fmt: skip

        self._line.ask(f"/v1/effects/{key}/resolve", body, told)
