"""One example: it does a thing to the services and to the oracle, and holds the two answers against each other."""

import itertools
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

from tests.acceptance.machine import agreement, verbs
from tests.acceptance.machine.clock import Clock
from tests.acceptance.machine.events import AsOf
from tests.acceptance.machine.intents import Call, Intents, Record
from tests.acceptance.machine.ledger import Ledger
from tests.acceptance.machine.line import Ask, Line, word
from tests.acceptance.machine.oracle import EffectClass
from tests.acceptance.machine.tools import declaration, tools
from tests.service import Reply

_LATE_SECONDS: Final = 1.0


@dataclass(kw_only=True)
class World:
    """What outlives an example: the services, the database's clock, unused names, a tally."""

    asks: list[Ask]
    clock: Clock
    nonce: str = field(default_factory=lambda: uuid4().hex[:8])
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    tally: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How often a verb met an effect in a state and was answered with a word."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """Who speaks of an effect, and under which fence."""

    token: str
    fence: int


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What a begin may ask besides its call: a lease, another row of tries; and tell: that it knows all outcomes."""

    lease: int | None = None
    reopen: bool = False
    delivers: bool = False


_PLAIN: Final = Terms()


class Example:
    """Names of its own on services that live longer."""

    def __init__(self, world: World) -> None:
        self.name = f"{world.nonce}-{next(world.numbers)}"
        self.now = 0
        self.intents = Intents(tools(self.name))
        self._world = world
        self._line = Line(world.asks)
        self._ledger = Ledger()
        self._read_at: dict[str, tuple[int, datetime]] = {}
        self._moved_at = time.monotonic()
        self._declared: set[str] = set()

    def touched(self) -> list[Record]:
        """Return all effects as they stand now."""
        records = self.intents.records
        for record in records:
            record.effect.touch(self.now)
        return records

    def tool(self, number: int) -> str:
        """Return the name of one of the tools."""
        return list(self.intents.tools)[number]

    def run(self, number: int) -> str:
        """Return the name of one of the runs."""
        return f"run-{self.name}-{number}"

    @property
    def told(self) -> str:
        """All that was said so far."""
        return self._line.told()

    def begin(self, at: int, call: Call, token: str, terms: Terms = _PLAIN) -> None:
        """Begin, and take what is granted into the ledger."""
        keys = sorted(record.key for record in self.intents.records) if terms.delivers else []
        body = self._body(call, token) | ({} if terms.lease is None else {"lease_seconds": terms.lease})
        body |= {"reopen": True} if terms.reopen else {}
        reply = self._ask(at, "POST", "/v1/effects", body | ({"delivered": keys} if keys else {}))
        before = self._states()
        ask = verbs.Ask(
            token=token,
            arguments=call.arguments,
            lease=self.intents.tools[call.tool].lease if terms.lease is None else terms.lease,
            now=self.now,
            reopen=terms.reopen,
            delivers=frozenset(keys),
            said=word(reply),
            shown=str(reply.body.get("key")),
        )
        wanted, record = self.intents.begin(call, ask)
        self._answered("begin", reply, wanted, record, before)
        if record is None:
            return
        if wanted == "replay":
            agreement.expect_replay(reply, record, call)
        if wanted == "execute":
            self._granted(reply, record, call, ask)
        self.look(at, record)

    def _granted(self, reply: Reply, record: Record, call: Call, ask: verbs.Ask) -> None:
        runs = reply.body["arguments"] or call.arguments
        agreement.expect("arguments to run", {name: runs[name] for name in call.arguments}, record.effect.arguments)
        agreement.expect("attempt", reply.body["attempt"], ask.token)
        agreement.expect("lease_seconds", reply.body["lease_seconds"], float(ask.lease))
        tool = record.effect.tool
        is_harmless = record.effect.class_ == "idempotent" or tool.window is not None
        self._ledger.granted(reply.body, ask.token, self.now + ask.lease, self.now, is_harmless=is_harmless)

    def release(self, at: int, call: Call, token: str) -> None:
        """Say that the token was never started."""
        reply = self._ask(at, "POST", "/v1/effects/release", self._body(call, token))
        before = self._states()
        wanted, record = self.intents.release(call, token, self.now)
        self._answered("release", reply, wanted, record, before, is_judged=record.call.tool == call.tool)
        self._ledger.let_go(record.key, token)
        fences = {attempt.fence for attempt in record.effect.attempts.values() if attempt.report == "released"}
        self._ledger.cleared(record.key, fences, is_spent=False)
        self.look(at, record)

    def commit(self, at: int, record: Record, held: Held, result: object) -> None:
        """Report a success."""
        reply = self._report(at, record, "commit", held, {"result": result})
        before = self._states()
        wanted = verbs.commit(record.effect, self._said_by(held), result)
        self._answered("commit", reply, wanted, record, before)
        if wanted == "ok":
            self._ledger.seen(record.key, record.effect.fence, reply.body["outcome"])
        self.look(at, record)

    def fail(self, at: int, record: Record, held: Held, kind: verbs.FailKind, retry_after: int | None) -> None:
        """Report a failure."""
        body: dict[str, object] = {"kind": kind, "error": verbs.ERROR}
        body |= {} if retry_after is None else {"retry_after": retry_after}
        reply = self._report(at, record, "fail", held, body)
        before = self._states()
        wanted = verbs.fail(record.effect, self._said_by(held), kind, retry_after)
        self._answered(f"fail {kind}", reply, wanted, record, before)
        if wanted == "ok":
            self._ledger.let_go(record.key, held.token)
            if kind != "unknown":
                self._ledger.cleared(record.key, {held.fence}, is_spent=True)
        self.look(at, record)

    def renew(self, at: int, record: Record, held: Held, lease: int) -> None:
        """Go on."""
        reply = self._report(at, record, "renew", held, {"lease_seconds": lease})
        before = self._states()
        wanted = verbs.renew(record.effect, self._said_by(held), lease)
        self._answered("renew", reply, wanted, record, before)
        if wanted == "ok":
            self._ledger.renewed(record.key, held.token, self.now + lease)
        self.look(at, record)

    def resolve(
        self, at: int, record: Record, fence: int, settlement: verbs.Settlement, result: object, as_of: AsOf | None
    ) -> None:
        """Settle as an operator, with word that is as old as the last look, or from the future."""
        moment, text = self._as_of(record, as_of)
        body: dict[str, object] = {"as": settlement, "fence": fence, "reason": "asked"}
        body |= {} if result == verbs.UNTOLD else {"result": result}
        reply = self._ask(at, "POST", f"/v1/effects/{record.key}/resolve", body | ({"as_of": text} if text else {}))
        before = self._states()
        doubtful = {attempt.fence for attempt in record.effect.unresolved()}
        verdict = verbs.Verdict(settlement=settlement, fence=fence, result=result, now=self.now, as_of=moment)
        wanted = verbs.resolve(record.effect, verdict)
        self._answered(f"resolve {settlement}", reply, wanted, record, before)
        if wanted == "ok" and settlement == "not_applied":
            self._ledger.cleared(record.key, doubtful, is_spent=True)
        self.look(at, record)

    def reconsider(self, at: int, record: Record, verb: verbs.Reconsidered) -> None:
        """End what waits as an operator, or let it be tried again."""
        reply = self._ask(at, "POST", f"/v1/effects/{record.key}/{verb}", {"reason": verbs.CANCELLED["message"]})
        before = self._states()
        wanted = verbs.reconsider(record.effect, verb, self.now)
        self._answered(verb, reply, wanted, record, before)
        self.look(at, record)

    def _as_of(self, record: Record, which: AsOf | None) -> tuple[int, str | None]:
        """Return the moment of the word in the oracle's time and as text."""
        if which is None or record.key not in self._read_at:
            return self.now, None
        moment, read = self._read_at[record.key]
        late = timedelta(seconds=1000 if which == "future" else 0)
        return moment + late.seconds, (read + late).isoformat()

    def look(self, at: int, record: Record, *, is_remembered: bool = False) -> None:
        """Read the effect; the first moment of reading, and later ones if told so, is kept for word as old as that."""
        if not record.key:
            return
        reply = self._ask(at, "GET", f"/v1/effects/{record.key}")
        record.effect.touch(self.now)
        agreement.expect_view(reply.body, record, self.now)
        self._ledger.seen(record.key, reply.body["fence"], reply.body["outcome"])
        if is_remembered or record.key not in self._read_at:
            self._read_at[record.key] = (self.now, datetime.fromisoformat(reply.body["as_of"]))

    def finish(self, at: int, run: str) -> None:
        """Finish a run; a run that nobody used is not found."""
        reply = self._ask(at, "POST", f"/v1/runs/{run}/finish", {})
        if run not in self.intents.runs:
            agreement.expect("finish", word(reply), "not-found")
            return
        agreement.expect("finish", word(reply), "ok")
        self.intents.runs[run].is_open = False

    def declare(self, name: str, class_: EffectClass, *, is_code: bool) -> None:
        """Declare a tool's class anew, to every service; leases that ran out before are judged before."""
        self._declare(name)
        for record in self.intents.records:
            if record.call.tool == name and record.key:
                self.renew(0, record, Held(token=str(uuid4()), fence=record.effect.fence), 25)
        body = declaration(self.intents.tools[name]) | {"class": class_}
        replies = self._line.ask_all("PUT", f"/v1/tools/{name}", body | ({"declared_by": "code"} if is_code else {}))
        version = int(replies[0].body["version"])
        holds = self.intents.declare(name, class_, version, is_code=is_code)
        for reply in replies:
            agreement.expect("class", reply.body["declaration"]["class"], holds)
            agreement.expect("version", reply.body["version"], version)

    def list(self, at: int, run: str) -> None:
        """The listing of a run shows each of its effects as it stands."""
        reply = self._ask(at, "GET", f"/v1/effects?run={run}&limit=500")
        shown = {item["key"]: item for item in reply.body["items"]}
        for record in self.touched():
            if record.call.run == run:
                agreement.expect_carried(shown[record.key], record, is_judged=False)

    def close(self) -> None:
        """Read, list and ask once more for everything."""
        for record in self.intents.records:
            self.begin(0, record.call, str(uuid4()))
        for run in self.intents.runs:
            self.list(1, run)

    def pass_time(self, seconds: int) -> None:
        """Let time pass for every effect of the example; what really passed meanwhile counts towards it."""
        late = time.monotonic() - self._moved_at
        self._moved_at += late
        moved = timedelta(seconds=seconds - late)
        self._world.clock.move([record.key for record in self.intents.records if record.key], moved)
        self._read_at = {key: (moment, text - moved) for key, (moment, text) in self._read_at.items()}
        self.now += seconds
        if seconds:
            self._line.note(f"{seconds} s pass")

    def _body(self, call: Call, token: str) -> dict[str, object]:
        self._declare(call.tool)
        why = {"why": token} if self.intents.tools[call.tool].has_roles else {}
        body: dict[str, object] = {"tool": call.tool, "arguments": call.arguments | why, "attempt": token}
        body |= {"distinct": True} if call.is_distinct else {}
        body |= {} if call.run is None else {"run": call.run}
        body |= {} if call.occurrence == 1 else {"occurrence": call.occurrence}
        if call.rule == "business_key":
            body["business_key"] = f"key-{self.name}"
        return body | ({"step": "7"} if call.rule == "step" else {})

    def _declare(self, name: str) -> None:
        if name not in self._declared:
            self._declared.add(name)
            self._line.ask_all("PUT", f"/v1/tools/{name}", declaration(self.intents.tools[name]))

    def _ask(self, at: int, method: str, path: str, body: object = None) -> Reply:
        if time.monotonic() - self._moved_at > _LATE_SECONDS:
            self.pass_time(0)
        return self._line.ask(at, method, path, body)

    def _report(self, at: int, record: Record, verb: str, held: Held, body: dict[str, object]) -> Reply:
        held_by: dict[str, object] = {"attempt": held.token, "fence": held.fence}
        return self._ask(at, "POST", f"/v1/effects/{record.key}/{verb}", held_by | body)

    def _said_by(self, held: Held) -> verbs.Report:
        return verbs.Report(token=held.token, fence=held.fence, now=self.now)

    def _states(self) -> dict[int, str]:
        """Return how each effect stands when a verb meets it."""
        return {id(record): record.effect.state for record in self.touched()}

    def _answered(
        self,
        verb: str,
        reply: Reply,
        wanted: str,
        record: Record | None,
        states: dict[int, str],
        *,
        is_judged: bool = True,
    ) -> None:
        agreement.expect_answer(reply, wanted, record, is_judged=is_judged)
        is_first = record is None or record.generation == record.call.occurrence
        found = states.get(id(record), "new" if is_first else "over")
        self._world.tally[verb, found, wanted] += 1
