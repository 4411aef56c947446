"""Which effect a call means, by DESIGN 4: slots, generations, runs, steps, and the registry's versions.

Nothing of the guard is imported. An effect is found by its slot and by nothing else.
"""

from copy import deepcopy
from dataclasses import dataclass, field, replace

from tests.acceptance.machine import verbs
from tests.acceptance.machine.oracle import Effect, EffectClass, Rule, Tool, Version, Word, stricter

Slot = tuple[object, ...]


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a tool: `to` is its identity, `note` its content, if its tool says so; else both are its identity."""

    tool: str
    to: str
    note: str
    run: str | None
    rule: Rule
    occurrence: int = 1
    is_distinct: bool = False

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments that count."""
        return {"to": self.to, "note": self.note}


@dataclass(kw_only=True)
class Record:
    """An effect with what names it."""

    call: Call
    effect: Effect
    step: int | None
    generation: int
    is_of_many: bool
    """Whether its slot may have many instances, by the rules under which it was made or met."""
    key: str = ""


@dataclass(kw_only=True)
class Run:
    """One execution of an agent."""

    is_open: bool = True
    effects: int = 0
    pins: dict[str, Version] = field(default_factory=dict)


class Intents:
    """All that one example has called."""

    def __init__(self, tools: list[Tool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.versions = {tool.name: Version(number=1, class_=tool.class_) for tool in tools}
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
        self._deliver(call, ask)
        found = self._find(call, ask.token)
        if isinstance(found, tuple):
            return found
        if found is None:
            refused = self._bar(call, ask, is_open=is_open, is_first=True)
            if refused is not None:
                return refused
            found = self._make(call)
            return verbs.begin(found.effect, ask), found
        before = deepcopy(found.effect)
        word = verbs.begin(found.effect, ask)
        if found.effect.fence > before.fence:
            refused = self._bar(call, ask, is_open=is_open, is_first=before.fence == 0)
            if refused is not None:
                found.effect = before
                return refused
        return word, found

    def _bar(self, call: Call, ask: verbs.Ask, *, is_open: bool, is_first: bool) -> tuple[Word, Record | None] | None:
        """Say what keeps a new try from being made: a finished run; from a first one, doubt in other words too."""
        if not is_open:
            return "run-finished", None
        siblings = [record for record in self.records if self._is_sibling(record, call)] if is_first else []
        if not siblings:
            return None
        return "sibling-in-doubt", next((one for one in siblings if one.key == ask.shown), siblings[0])

    def _is_sibling(self, record: Record, call: Call) -> bool:
        """Say whether an effect in open doubt may be the call in other words: nobody has said what names a call."""
        tool, named = self.tools[call.tool], record.call
        is_guarded = stricter(tool.class_, self._version(call).class_) == "side_effect" and not tool.has_roles
        is_asked = is_guarded and not call.is_distinct and call.run is not None
        is_alike = (named.tool, named.run, named.rule, call.rule) == (call.tool, call.run, "once", "once")
        is_doubtful = record.effect.state == "in_doubt" and not record.effect.is_closed
        return is_asked and is_alike and is_doubtful and record.effect.arguments != call.arguments

    def _deliver(self, call: Call, ask: verbs.Ask) -> None:
        """The run's agent knows how these effects ended, those that are the run's and over."""
        for record in self.records:
            if record.key in ask.delivers and record.call.run == call.run is not None and record.effect.is_final:
                record.effect.is_delivered = True

    def release(self, call: Call, token: str, now: int) -> tuple[Word, Record]:
        """Find the effect or make it, and end the token, even where the begin would have been refused.

        A token that ended without a lease ends in what comes after as well.
        """
        self._enter(call)
        found = self._find(call, token)
        if isinstance(found, tuple):
            if found[0] == "key-used-by-another-tool":
                return "ok", found[1]
            found = found[1]
        found = self._make(call) if found is None else found
        mine = found.effect.attempts.get(token)
        if mine is not None and mine.fence == 0 and self._is_past(found, call):
            found = self._next(found, call) or self._make(call)
        return verbs.release(found.effect, token, now), found

    def declare(self, name: str, class_: EffectClass, version: int, *, is_code: bool) -> EffectClass:
        """Declare a tool's class anew, under the version that the service says; return the class that holds."""
        tool = self.tools[name]
        holds = "side_effect" if is_code and tool.class_ == "side_effect" else class_
        self.tools[name] = replace(tool, class_=holds)
        self.versions[name] = Version(number=version, class_=holds)
        for record in self.records:
            if record.call.tool == name:
                record.effect.tool = self.tools[name]
        return holds

    def _find(self, call: Call, token: str) -> Record | tuple[Word, Record] | None:
        """Return the effect of the call, None where it is new, or why it may not be asked for."""
        instances = self._slots.get(self._slot(call), [])
        if not instances:
            return None
        if instances[0].call.tool != call.tool:
            return "key-used-by-another-tool", instances[0]
        record = self._meant(instances, call, token)
        if record is None or (token not in record.effect.attempts and self._is_past(record, call)):
            return None
        if not self._is_same(record, call):
            return "arguments-changed", record
        return record

    def _meant(self, instances: list[Record], call: Call, token: str) -> Record | None:
        """Return the instance of its slot that a call means: an attempt's own; else the first that is not past.

        Where there may be many, a later one comes right after the first, and before it where the first is known or the
        tenant's, so that it may be an answer again because other rules hold now.
        """
        own = next((record for record in instances if token in record.effect.attempts), None)
        if own is not None:
            return own
        has_many = self.tools[call.tool].may_repeat or self._version(call).class_ == "idempotent"
        place, is_later = 0, False
        while place < len(instances):
            record = instances[place]
            is_past = self._is_past(record, call)
            record.is_of_many |= is_past and has_many
            if not is_past and (is_later or not self._may_hide(record, call)):
                return record
            is_later |= record.is_of_many
            place = self._later(instances, place + is_past, call) if record.is_of_many else place + 1
        return None

    @staticmethod
    def _later(instances: list[Record], start: int, call: Call) -> int:
        """Return the place of the instance that was refused with these very arguments, else of the newest."""
        many = [place for place, record in enumerate(instances) if record.is_of_many]
        alike = [place for place in many if instances[place].effect.arguments == call.arguments]
        if alike and alike[-1] >= start and instances[alike[-1]].effect.state == "failed":
            return alike[-1]
        return max(start, many[-1])

    @staticmethod
    def _may_hide(record: Record, call: Call) -> bool:
        """Say whether an instance may stand before newer ones which were made while other rules held."""
        is_known = record.effect.is_delivered or call.rule == "business_key"
        return record.is_of_many and record.effect.is_final and is_known

    def _is_past(self, record: Record, call: Call) -> bool:
        """Say whether an instance is over for a call: a failure is so for other arguments, all else for the same."""
        is_refused = record.effect.state == "failed" and record.effect.arguments != call.arguments
        return is_refused or (self._is_same(record, call) and record.effect.is_over(call.rule))

    def _is_same(self, record: Record, call: Call) -> bool:
        return self._identity(call.tool, record.effect.arguments) == self._identity(call.tool, call.arguments)

    def _slot(self, call: Call) -> Slot:
        """Return what makes two calls the same intent."""
        if call.rule == "business_key":
            return ("business_key", call.occurrence)
        identity = self._identity(call.tool, call.arguments) if call.rule == "once" else "the step"
        return (call.rule, call.run, call.tool, call.occurrence, identity)

    def _identity(self, tool: str, arguments: dict[str, object]) -> object:
        """Return what two calls of a tool must agree in: all of it where nobody has said what names a call."""
        return arguments["to"] if self.tools[tool].has_roles else (arguments["to"], arguments["note"])

    def _enter(self, call: Call) -> bool:
        """Open the run where it is new, pin the tool's version, and say whether the run is open."""
        if call.run is None:
            return True
        run = self.runs.setdefault(call.run, Run())
        run.pins.setdefault(call.tool, self.versions[call.tool])
        return run.is_open

    def _make(self, call: Call) -> Record:
        instances = self._slots.setdefault(self._slot(call), [])
        step = None
        if call.run is not None:
            self.runs[call.run].effects += 1
            step = self.runs[call.run].effects
        effect = Effect(tool=self.tools[call.tool], version=self._version(call), arguments=call.arguments)
        is_of_many = effect.tool.may_repeat or effect.version.class_ == "idempotent"
        generation = call.occurrence + len(instances)
        instances.append(Record(call=call, effect=effect, step=step, generation=generation, is_of_many=is_of_many))
        return instances[-1]

    def _next(self, record: Record, call: Call) -> Record | None:
        """Return the instance after one."""
        instances = self._slots[self._slot(call)]
        place = next(place for place, one in enumerate(instances) if one is record) + 1
        return instances[place] if place < len(instances) else None

    def _version(self, call: Call) -> Version:
        """A run keeps to the version that it used first."""
        return self.versions[call.tool] if call.run is None else self.runs[call.run].pins[call.tool]
