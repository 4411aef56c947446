"""Which effect a call means, by DESIGN 4: slots, generations, runs, steps, and the registry's versions.

Nothing of the guard is imported. An effect is found by its slot and by nothing else.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.acceptance.machine import verbs
from tests.acceptance.machine.oracle import Effect, EffectClass, Tool, Word

Rule = Literal["once", "step", "business_key"]
Slot = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool: `to` is its identity, `note` its content."""

    tool: str
    to: str
    note: str
    run: str | None
    rule: Rule
    occurrence: int = 1

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments that count."""
        return {"to": self.to, "note": self.note}

    @property
    def slot(self) -> Slot:
        """What makes two calls the same intent."""
        if self.rule == "business_key":
            return ("business_key", self.occurrence)
        return (self.rule, self.run, self.tool, self.occurrence, self.to if self.rule == "once" else "the step")


@dataclass(kw_only=True)
class Record:
    """An effect with what names it."""

    call: Call
    effect: Effect
    step: int | None
    key: str = ""
    generation: int = 0


@dataclass(kw_only=True)
class Run:
    """One execution of an agent."""

    is_open: bool = True
    effects: int = 0
    pins: dict[str, int] = field(default_factory=dict)


class Intents:
    """All that one example has called."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.versions = {tool.name: 1 for tool in tools}
        """The version of each tool that holds."""
        self.runs: dict[str, Run] = {}
        self._slots: dict[Slot, list[Record]] = {}

    @property
    def records(self) -> list[Record]:
        """All effects, the unfinished first, then the newest."""
        every = [record for slot in reversed(self._slots.values()) for record in reversed(slot)]
        return sorted(every, key=lambda record: record.effect.is_final)

    def begin(self, call: Call, ask: verbs.Ask) -> tuple[Word, Record | None]:
        """Find the effect or make it, and ask for its lease. A finished run serves its record and no new try."""
        is_open, ask = self._enter(call), replace(ask, version=self._version(call))
        found = self._find(call)
        if isinstance(found, tuple):
            return found
        if found is None:
            if not is_open:
                return "run-finished", None
            found = self._make(call)
        found.effect.touch(ask.now)
        before = deepcopy(found.effect)
        word = verbs.begin(found.effect, ask)
        if not is_open and found.effect.fence > before.fence:
            found.effect = before
            return "run-finished", None
        return word, found

    def release(self, call: Call, token: str, now: int) -> tuple[Word, Record]:
        """Find the effect or make it, and end the token, even where the begin would have been refused."""
        self._enter(call)
        found = self._find(call)
        if isinstance(found, tuple):
            if found[0] == "key-used-by-another-tool":
                return "ok", found[1]
            found = found[1]
        found = self._make(call) if found is None else found
        return verbs.release(found.effect, token, now), found

    def declare(self, name: str, class_: EffectClass, version: int, *, is_code: bool) -> EffectClass:
        """Declare a tool's class anew, under the version that the service says; return the class that holds."""
        tool = self.tools[name]
        holds = "side_effect" if is_code and tool.class_ == "side_effect" else class_
        self.tools[name] = replace(tool, class_=holds)
        self.versions[name] = version
        for record in self.records:
            if record.call.tool == name:
                record.effect.tool = self.tools[name]
        return holds

    def _find(self, call: Call) -> Record | tuple[Word, Record] | None:
        """Return the effect of the call, None where it is new, or why it may not be asked for."""
        slot = self._slots.get(call.slot, [])
        for record in slot:
            if record.call.tool != call.tool:
                return "key-used-by-another-tool", record
            if record.effect.state == "failed" and record.effect.arguments != call.arguments:
                continue
            if record.effect.arguments["to"] != call.to:
                return "arguments-changed", record
            return record
        return None

    def _enter(self, call: Call) -> bool:
        """Open the run where it is new, pin the tool's version, and say whether the run is open."""
        if call.run is None:
            return True
        run = self.runs.setdefault(call.run, Run())
        run.pins.setdefault(call.tool, self.versions[call.tool])
        return run.is_open

    def _make(self, call: Call) -> Record:
        slot = self._slots.setdefault(call.slot, [])
        step = None
        if call.run is not None:
            self.runs[call.run].effects += 1
            step = self.runs[call.run].effects
        effect = Effect(tool=self.tools[call.tool], arguments=call.arguments, tool_version=self._version(call))
        slot.append(Record(call=call, effect=effect, step=step))
        return slot[-1]

    def _version(self, call: Call) -> int:
        """A run keeps to the version that it used first."""
        return self.versions[call.tool] if call.run is None else self.runs[call.run].pins[call.tool]
